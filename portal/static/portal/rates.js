/** The list's live column: rate, sparkline and count of each rendezvous point. */

import { Rate, SAMPLES, WHOLE, pollEnds, rateText } from "./poll.js";
import { SessionEnded } from "./requests.js";
import { drawSparkline } from "./sparkline.js";

const FAILURES_SHOWN = 2; // one lost answer is no news

function start(box) {
  const lost = document.getElementById("lost");
  const rows = new Map();
  for (const element of box.querySelectorAll("tr[data-rp]")) {
    rows.set(element.dataset.rp, {
      rate: new Rate(),
      svg: element.querySelector("svg"),
      output: element.querySelector("[data-rate]"),
      count: element.querySelector("[data-count]"),
    });
  }
  let failures = 0;

  const onEnds = (ends, at) => {
    failures = 0;
    lost.hidden = true;
    box.classList.remove("stale");
    for (const [rp, row] of rows) {
      const end = ends[rp];
      if (!end) continue;
      const rate = row.rate.look(end.epoch, end.offset, at);
      row.count.textContent = WHOLE.format(end.offset);
      if (rate === null) continue;
      row.output.textContent = rateText(rate);
      row.output.classList.toggle("idle", rate === 0);
      drawSparkline(row.svg, row.rate.samples, SAMPLES);
    }
  };

  const onFailure = (error) => {
    failures++;
    const ended = error instanceof SessionEnded;
    if (!ended && failures < FAILURES_SHOWN) return;
    box.classList.add("stale");
    if (!lost.hidden) return;
    lost.hidden = false;
    if (ended) {
      const link = document.createElement("a");
      link.href = box.dataset.loginUrl;
      link.textContent = "Log in again";
      lost.replaceChildren("Your session has ended. ", link);
    } else {
      lost.textContent = "The domain does not answer. The numbers shown are old; they go on when it is back.";
    }
  };

  pollEnds(box.dataset.url, [...rows.keys()], onEnds, onFailure);
}

const box = document.getElementById("rates");
if (box) start(box);
