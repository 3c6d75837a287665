/** Start here, with a rendezvous point: examples with a token that works, and the first events as they arrive. */

import { byId, findAll, need, pageData } from "../elements.js";
import { domainConnection, tellEnd } from "../domain_connection.js";
import { SessionEnded, postForJson } from "../requests.js";
import { snippets } from "../snippets.js";
import { startTabs } from "../tabs.js";

const ROWS_MAX = 5;
const RENEWED_BEFORE_MS = 60_000; // so long before the token's end the examples get another
const RETRY_MS = 5_000;
const page = pageData();

async function fillExamples() {
  let token;
  try {
    token = await postForJson(page.tokenUrl);
  } catch (error) {
    byId("token-note").textContent = error.message;
    if (error instanceof SessionEnded) tellEnd(error);
    else setTimeout(fillExamples, RETRY_MS);
    return;
  }
  const texts = snippets({ origin: location.origin, rp: page.rp, token: token.token });
  for (const pre of findAll(document, "[data-snippet]")) {
    const text = texts[pre.dataset.snippet ?? ""];
    pre.textContent = text;
    need(pre.parentElement ?? document, "[data-copy]", HTMLElement).dataset.copy = text;
  }
  const ends = document.createElement("time");
  ends.dateTime = token.expires_at;
  ends.dataset.countdown = "";
  byId("token-note").replaceChildren("The token expires ", ends);
  setTimeout(fillExamples, Date.parse(token.expires_at) - Date.now() - RENEWED_BEFORE_MS);
}

function arrived(event, offset) {
  byId("waiting").hidden = true;
  byId("arrived").hidden = byId("next").hidden = false;
  for (const id of ["step-publish", "step-arrive"]) {
    byId(id).classList.add("done");
    byId(id).removeAttribute("aria-current");
  }
  const row = document.createElement("li");
  row.className = "arrival";
  const head = document.createElement("span");
  head.className = "arrival-head";
  const badge = document.createElement("span");
  badge.className = "badge good";
  badge.textContent = `#${offset} arrived`;
  const time = document.createElement("time");
  time.className = "small muted";
  time.dateTime = event.time ?? new Date().toISOString();
  time.dataset.clock = "";
  head.append(badge, time);
  const data = document.createElement("pre");
  data.textContent = JSON.stringify(event.data ?? event.data_base64 ?? null, null, 2);
  row.append(head, data);
  byId("arrived").prepend(row);
  while (byId("arrived").childElementCount > ROWS_MAX) byId("arrived").lastElementChild?.remove();
}

if (page.rp) {
  startTabs();
  void fillExamples();
  domainConnection().subscribe(page.rp, {
    from: "last",
    onEvent: (event, { offset }) => arrived(event, offset),
    onState: (state, { error }) => {
      if (state === "ended" && error) tellEnd(error);
    },
  });
}
