/** The events of an RP as they come, and the form that publishes one. It reads the RP from when its tab is first shown. */

import { find } from "../elements.js";
import { ClientClosed, Closed, Problem } from "../../../client/js/herald.js";
import { EventList, ROWS_MAX } from "../event_list.js";
import { count } from "../format.js";
import { LoggedOut, line, onAgain } from "../line.js";
import { byId, page, setText, whenShown } from "./page.js";

const WAITING_MS = 1_000; // after this a publisher is told that the answer is being waited for
const NONE_YET = ["No events here yet", "They appear as they are published; publish the first with the form."];
const NOW_EMPTY = ["Waiting for new events", "They appear as they are published."];

const list = new EventList({
  list: byId("events"),
  empty: byId("empty"),
  newest: byId("newest"),
  onHeld: (held) => setText(byId("pause"), `Go on (${held > ROWS_MAX ? `${ROWS_MAX}+` : held} new)`),
});
let subscription = null;
let connected = false;

/** Wire the tab. */
export function startEvents() {
  startTools();
  startPublishing();
  whenShown("events-tab", () => {
    if (subscription) list.shown();
    else read(chosenFrom());
  });
  onAgain(() => subscription && subscribe(subscription.cursor ?? chosenFrom())); // of a new connection
}

/** Read no more: the RP is gone. */
export function endEvents() {
  if (!subscription) return;
  subscription.close();
  showEnd("This rendezvous point is gone.");
}

function chosenFrom() {
  const chosen = find(document, "input[name=from]:checked", HTMLInputElement).value;
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
  subscription = line().subscribe(page.rp, {
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
  return problem.code === "gone" || problem.code === "not-found" ? "This rendezvous point is gone." : problem.message;
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
    setText(byId("pause"), "Go on");
  });
  byId("clear").addEventListener("click", () => {
    list.clear();
    sayEmpty("Cleared", "New events appear as they are published.");
    if (list.paused) setText(byId("pause"), "Go on");
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
    answer("bad", `This is not JSON: ${error.message}. Correct it, or choose Text.`);
    data.focus();
    return;
  }
  const began = performance.now();
  const waiting = setTimeout(() => {
    answer(
      "wait",
      connected ? "Waiting for the answer…" : "Not connected. It is sent, once, when the connection is back.",
    );
  }, WAITING_MS);
  try {
    const { offset } = await line().publish(page.rp, event);
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
    return "The connection ended before the answer; whether the event was stored is unknown.";
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
