/**
 * Search in the history of an RP, its download, and the one event that the address names.
 *
 * The domain reads a bounded part of the log per request (portal/console/event_search.py); this asks on, before what it read, until there
 * are FOUND_MAX more events, nothing older is left, or the reader stops it.
 */

import { eventRow } from "../event_list.js";
import { count, plural } from "../format.js";
import { getJson } from "../requests.js";
import { instantOf, momentText } from "../times.js";
import { byId, page, setText, whenShown } from "./page.js";

const FOUND_MAX = 100; // more of them when the reader asks
const TIMES = new Set(["since", "until"]);

/** @type {{before: number | null, found: number, scanned: number} | null} */
let state = null; // of the search; null: live events are shown
let attempt = 0;

/** Wire the search, and open the event that the address names. */
export function startSearch() {
  whenShown("events-tab", openNamed);
  const form = byId("event-filters", HTMLFormElement);
  if (!form) return;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin(form);
  });
  form.addEventListener("input", () => nameExport(form));
  byId("search-stop").addEventListener("click", () => stop());
  byId("search-clear").addEventListener("click", () => {
    stop();
    form.reset();
    nameExport(form);
    show(false);
  });
}

/** What is stated, as the domain's query has it. */
function queryOf(form) {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    const text = String(value).trim();
    const at = TIMES.has(name) ? instantOf(text) : NaN;
    if (text) query.set(name, Number.isNaN(at) ? text : String(at));
  }
  return query;
}

function nameExport(form) {
  byId("search-export", HTMLAnchorElement).href = `${page.exportUrl}?${queryOf(form)}`;
}

function show(searching) {
  byId("found").hidden = !searching;
  byId("events").hidden = searching;
  byId("empty").classList.toggle("searching", searching);
  byId("search-clear").hidden = !searching;
  if (!searching) state = null;
}

function begin(form) {
  show(true);
  byId("found").replaceChildren();
  state = { before: null, found: 0, scanned: 0 };
  void look(queryOf(form), ++attempt);
}

function stop() {
  attempt++;
  byId("search-stop").hidden = true;
}

async function look(query, mine) {
  const wanted = (state?.found ?? 0) + FOUND_MAX;
  byId("search-stop").hidden = false;
  try {
    for (;;) {
      if (!state) return;
      if (state.before !== null) query.set("before", String(state.before));
      const answer = await getJson(`${page.eventsUrl}?${query}`);
      if (mine !== attempt || !state) return;
      const rows = answer.events.map(({ offset, event }) =>
        eventRow({ rp: page.rp, epoch: answer.epoch, offset, event }),
      );
      byId("found").querySelector(".mark-row")?.remove();
      byId("found").append(...rows);
      state.before = answer.back_to ?? state.before;
      state.found += rows.length;
      state.scanned += answer.scanned;
      tell(answer);
      if (answer.done || state.found >= wanted) {
        finish(query, answer.done);
        return;
      }
    }
  } catch (error) {
    if (mine !== attempt) return;
    byId("search-stop").hidden = true;
    setText(byId("search-said"), `${error.message} The search has stopped.`);
  }
}

function tell({ back_to_ms: at, first, next, done }) {
  if (!state) return;
  const back =
    at === null
      ? ""
      : ` Searched back to ${momentText(at)}: ${count(state.scanned)} of ${count(next - first)} events read.`;
  setText(
    byId("search-said"),
    `${plural(state.found, "event")} found.${back}${done ? " Nothing older can match." : ""}`,
  );
}

/** The end of the list: what else there is to do. */
function finish(query, done) {
  byId("search-stop").hidden = true;
  if (done && state?.found) return;
  const row = document.createElement("li");
  row.className = "mark-row plain";
  if (done) {
    row.textContent = "No event matches.";
  } else {
    const more = document.createElement("button");
    more.type = "button";
    more.className = "button compact";
    more.textContent = "Search further back";
    more.addEventListener("click", () => void look(query, ++attempt));
    row.append(more);
  }
  byId("found").append(row);
}

// ---- one event ----

let opened = false;

/** Open the event that the address names: ?event=EPOCH:OFFSET. */
async function openNamed() {
  const named = new URLSearchParams(location.search).get("event");
  if (!named || opened) return;
  opened = true;
  const [offset, epoch] = named.split(":").reverse();
  const box = byId("one-event");
  const query = new URLSearchParams({ rp: page.rp, offset, ...(epoch && { epoch }) });
  const list = document.createElement("ol");
  list.className = "events one";
  try {
    const found = await getJson(`${page.eventUrl}?${query}`);
    const bytes = Uint8Array.from(atob(found.bytes), (letter) => letter.charCodeAt(0));
    const event = JSON.parse(new TextDecoder().decode(bytes));
    const row = eventRow({ rp: page.rp, epoch: found.epoch, offset: found.offset, event });
    list.append(row);
    box.replaceChildren(list);
    row.querySelector("details")?.setAttribute("open", "");
  } catch (error) {
    const words = document.createElement("p");
    words.className = "notice warning";
    words.textContent = `The event of this link cannot be shown: ${error.message}`;
    box.replaceChildren(words);
  }
  box.hidden = false;
}
