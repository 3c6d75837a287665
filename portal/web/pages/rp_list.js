/**
 * The list of rendezvous points, live. Viewers, operators and administrators see it from domain.admin: events add, change
 * and remove rows, samples give the rates. Other users, who may not read domain.admin, get rates from the ends of the
 * logs.
 */

import { byId, findAll, need, pageData } from "../elements.js";
import { plural } from "../format.js";
import { openDomain } from "../live.js";
import { SAMPLES, pollEnds } from "../poll.js";
import { SessionEnded } from "../requests.js";
import { NameTree } from "../rp/name_tree.js";
import { ListBulk } from "../rp/list_bulk.js";
import { ListFigures } from "../rp/list_figures.js";
import { ListRates, PolledRates } from "../rp/list_rates.js";
import { ListRows } from "../rp/list_rows.js";
import { drawSparkline } from "../sparkline.js";

/** @import { RowRate } from "../rp/list_rates.js" */

const DRAWN_EVERY_MS = 1_000;
const FAILURES_SHOWN = 2; // one lost answer is no news
const RP_EVENT = /^io\.herald\.rp\.(created|changed|deleted|paused|resumed)$/;
const LEASES = new Set(["io.herald.lease.granted", "io.herald.lease.renewed"]);
const page = pageData();
const rows = new ListRows(byId("rps"), () => {
  figures.rowsChanged();
  bulk.draw();
});
const figures = new ListFigures(page.figuresUrl, rows);
const bulk = new ListBulk(byId("rps"), { figures, onDone: () => rows.look() });
bulk.draw(); // a browser keeps what was checked before a reload

// From the search field to the rows that were found, and among them, without the stops between.
document.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = document.activeElement;
  if (!step || !(at instanceof HTMLElement) || !at.matches("#q, .rp-link")) return;
  const stops = [byId("q"), ...findAll(document, ".rp-link")];
  const next = stops[stops.indexOf(at) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
});

if ("live" in page) watch();
else poll();

function watch() {
  const rates = new ListRates();
  const tree = new NameTree(byId("tree", HTMLDetailsElement), { root: page.root, prefix: page.prefix });
  const draw = () => {
    for (const [rp, row] of rows.each()) showRate(row, rates.of(rp));
  };
  const onChange = (state, events, { fresh }) => {
    byId("total").textContent = `${plural(state.counts.rps, "rendezvous point")} in all.`;
    if (fresh) for (const sample of Object.values(state.gateways)) rates.take(sample);
    for (const event of events) {
      if (event.type === "io.herald.load.sampled") rates.take(event.data);
      else if (event.type === "io.herald.gateway.lost") rates.forget(event.data.gateway);
      else if (RP_EVENT.test(event.type)) changed(event);
      else if (LEASES.has(event.type) && event.data.what === "rp") rows.lease(event.data.id, event.data.expires_at);
    }
    if (fresh) rows.look(); // something may have happened since the page was rendered, or while the connection was away
  };
  const changed = (event) => {
    rows.take(event);
    if (event.type !== "io.herald.rp.paused" && event.type !== "io.herald.rp.resumed") tree.look();
  };
  openDomain({ onChange, onState: (state) => rows.stale(state !== "live") });
  setInterval(() => {
    if (document.hidden) return;
    rates.tick(rows.ids());
    draw();
  }, DRAWN_EVERY_MS);
}

function poll() {
  const lost = byId("lost");
  const rates = new PolledRates();
  let failures = 0;
  const onEnds = (ends, at) => {
    failures = 0;
    lost.hidden = true;
    rows.stale(false);
    for (const [rp, row] of rows.each()) {
      if (ends[rp]) showRate(row, rates.look(rp, ends[rp], at));
    }
  };
  const onFailure = (error) => {
    failures++;
    const ended = error instanceof SessionEnded;
    if (!ended && failures < FAILURES_SHOWN) return;
    rows.stale(true);
    if (!lost.hidden) return;
    lost.hidden = false;
    if (ended) {
      const link = document.createElement("a");
      link.href = page.loginUrl;
      link.textContent = "Log in again";
      lost.replaceChildren("Your session has ended. ", link);
    } else {
      lost.textContent =
        "The domain does not respond. The numbers shown are out of date; updates resume automatically.";
    }
  };
  if (rows.ids().length) pollEnds(page.url, rows.ids(), onEnds, onFailure);
}

/** @param {Element} row @param {RowRate | null} rate */
function showRate(row, rate) {
  if (!rate) return;
  const input = row.querySelector("[data-rate]");
  set(input, rate.in, rate);
  const out = row.querySelector("[data-out]");
  if (out && rate.out !== undefined) set(out, rate.out, rate);
  drawSparkline(need(row, "svg", SVGSVGElement), rate.samples, rate.slots ?? SAMPLES);
}

function set(element, text, { idle, about = "" }) {
  if (element.textContent !== String(text)) element.textContent = String(text);
  element.classList.toggle("idle", idle);
  if (element.title !== about) element.title = about;
}
