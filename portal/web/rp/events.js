/** Live events of an RP, and the form that publishes one. Reading begins when the tab is first shown. */

import { need } from "../elements.js";
import { ClientClosed, Closed, Problem } from "../../../client/js/herald.js";
import { EventList, ROWS_MAX } from "../event_list.js";
import { count } from "../format.js";
import { LoggedOut, domainConnection, onAgain } from "../domain_connection.js";
import { byId, page, setText, whenShown } from "./page.js";
import { startSearch } from "./event_search.js";

const WAITING_MS = 1_000; // after this the page shows that it waits for the acknowledgement
const NONE_YET = ["No events yet", "Events appear as they are published. Publish the first one with the form."];
const NOW_EMPTY = ["Waiting for new events", "Events appear as they are published."];

const list = new EventList({
  list: byId("events"),
  empty: byId("empty"),
  newest: byId("newest"),
  onHeld: (held) => setText(byId("pause"), `Continue (${held > ROWS_MAX ? `${ROWS_MAX}+` : held} new)`),
});
/** @type {ReturnType<Client["subscribe"]> | null} */
let subscription = null;
let connected = false;

/** @import { Client } from "../../../client/js/herald.js" */

/** Wire the tab. */
export function startEvents() {
  startTools();
  startPublishing();
  startSearch();
  whenShown("events-tab", () => {
    if (subscription) list.shown();
    else read(chosenFrom());
  });
  onAgain(() => subscription && subscribe(subscription.cursor ?? chosenFrom())); // of a new connection
}

/** Stop reading: the RP no longer exists. */
export function endEvents() {
  if (!subscription) return;
  subscription.close();
  showEnd("This rendezvous point no longer exists.");
}

function chosenFrom() {
  const chosen = need(document, "input[name=from]:checked", HTMLInputElement).value;
  return chosen === "recent" ? page.recent : chosen;
}

/** Show the events from `from` on, in an empty list. */
function read(from) {
  subscription?.close();
  list.clear();
  sayEmpty(...(from === "now" ? NOW_EMPTY : NONE_YET));
  subscribe(from);
}

function subscribe(from) {
  byId("ended").hidden = true;
  byId("events").setAttribute("aria-busy", "true"); // until the domain has accepted it
  subscription = domainConnection().subscribe(page.rp, {
    from,
    onEvent: (_event, received) => list.add(received),
    onGap: (gap) => list.addGap(gap),
    onState: (state, { error }) => {
      connected = state === "live";
      byId("events").setAttribute("aria-busy", String(!connected));
      if (state === "ended" && error instanceof Problem) showEnd(ending(error));
    },
  });
}

function ending(problem) {
  return problem.code === "gone" || problem.code === "not-found"
    ? "This rendezvous point no longer exists."
    : problem.message;
}

function showEnd(says) {
  setText(byId("ended"), says);
  byId("ended").hidden = false;
}

function sayEmpty(title, hint) {
  setText(byId("empty-title"), title);
  setText(byId("empty-hint"), hint);
}

function startTools() {
  for (const choice of document.querySelectorAll("input[name=from]")) {
    choice.addEventListener("change", () => {
      resume();
      read(chosenFrom());
    });
  }
  byId("pause").addEventListener("click", () => {
    if (list.paused) {
      resume();
      return;
    }
    list.pause();
    byId("pause").setAttribute("aria-pressed", "true");
    setText(byId("pause"), "Continue");
  });
  byId("clear").addEventListener("click", () => {
    list.clear();
    sayEmpty("Cleared", "New events appear as they are published.");
    if (list.paused) setText(byId("pause"), "Continue");
  });
}

function resume() {
  list.resume();
  byId("pause").setAttribute("aria-pressed", "false");
  setText(byId("pause"), "Hold");
}

// ---- publishing ----

function answer(kind, text) {
  byId("answer").dataset.kind = kind;
  setText(byId("answer"), text);
}

function typedEvent(form) {
  const text = form.elements.data.value;
  const json = form.elements.kind.value === "json";
  return {
    specversion: "1.0",
    source: page.source,
    type: form.elements.type.value.trim(),
    time: new Date().toISOString(),
    datacontenttype: json ? "application/json" : "text/plain",
    data: json ? JSON.parse(text) : text,
  };
}

async function publish(form) {
  const data = form.elements.data;
  data.removeAttribute("aria-invalid");
  let event;
  try {
    event = typedEvent(form);
  } catch (error) {
    data.setAttribute("aria-invalid", "true");
    answer("bad", `Not valid JSON: ${error.message}. Correct it, or choose Text.`);
    data.focus();
    return;
  }
  const began = performance.now();
  const waiting = setTimeout(() => {
    answer(
      "wait",
      connected
        ? "Waiting for the acknowledgement…"
        : "Not connected. The event is sent once when the connection is back.",
    );
  }, WAITING_MS);
  try {
    const { offset } = await domainConnection().publish(page.rp, event);
    const done = page.ack === "accepted" ? "Accepted" : "Stored";
    answer("good", `${done} as #${offset} in ${count(performance.now() - began)} ms.`);
  } catch (error) {
    answer("bad", refusal(error));
  } finally {
    clearTimeout(waiting);
  }
}

function refusal(error) {
  if (error instanceof Problem) return [error.title, error.detail].filter(Boolean).join(": ");
  if (error instanceof Closed || error instanceof ClientClosed || error instanceof LoggedOut) {
    return "The connection ended before the acknowledgement; it is unknown whether the event was stored.";
  }
  throw error;
}

function startPublishing() {
  const form = byId("publish");
  if (!form) return; // who may not publish here has no form
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer("", "");
    void publish(form);
  });
}
