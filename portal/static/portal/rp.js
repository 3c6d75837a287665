/** One rendezvous point: its events live, a test event, and how full its history is. */

import { Client, ClientClosed, Closed, HeraldError, Problem } from "../js/herald.js";
import { EventList, ROWS_MAX } from "./event_list.js";
import { Rate, WHOLE, pollEnds, rateText } from "./poll.js";
import { SessionEnded, postForJson } from "./requests.js";

const WAITING_MS = 1_000; // after this a publisher is told that the answer is being waited for
const page = document.getElementById("main").dataset;
const byId = (id) => document.getElementById(id);

/** Ends the client: a new token cannot be had without logging in. */
class LoggedOut extends HeraldError {}

async function getToken() {
  try {
    return (await postForJson(page.tokenUrl)).token;
  } catch (error) {
    throw error instanceof SessionEnded ? new LoggedOut(error.message) : error;
  }
}

// ---- the connection's state ----

const STATE_TEXTS = { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting", ended: "Ended" };
let stateTimer = null;

function showState(state, detail = {}) {
  const pill = byId("state");
  clearInterval(stateTimer);
  if (pill.dataset.state !== state) byId("announce").textContent = `Connection: ${STATE_TEXTS[state]}`;
  pill.dataset.state = state;
  pill.textContent = STATE_TEXTS[state];
  pill.title = detail.reason ?? "";
  byId("ended").hidden = state !== "ended";
  if (state === "ended") showEnd(detail.error);
  if (state === "reconnecting" && detail.retryInMs >= 1000) countDown(pill, performance.now() + detail.retryInMs);
}

function countDown(pill, at) {
  const tick = () => {
    const seconds = Math.ceil((at - performance.now()) / 1000);
    pill.textContent = seconds > 0 ? `Reconnecting in ${seconds} s` : STATE_TEXTS.reconnecting;
  };
  tick();
  stateTimer = setInterval(tick, 1000);
}

function showEnd(error) {
  const note = byId("ended");
  const gone = error instanceof Problem && (error.code === "gone" || error.code === "not-found");
  if (error instanceof LoggedOut) note.replaceChildren("Your session has ended. ", link(page.loginUrl, "Log in again"));
  else if (gone) note.replaceChildren("This rendezvous point is gone. ", link(page.listUrl, "To the rendezvous points"));
  else note.replaceChildren(`${error?.message ?? "The connection ended."} `, againButton());
}

function link(href, text) {
  const made = document.createElement("a");
  made.href = href;
  made.textContent = text;
  return made;
}

function againButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button compact";
  button.textContent = "Connect again";
  button.addEventListener("click", open);
  return button;
}

// ---- events ----

const list = new EventList({
  list: byId("events"),
  empty: byId("empty"),
  newest: byId("newest"),
  onHeld: (count) => (byId("pause").textContent = `Resume (${count > ROWS_MAX ? `${ROWS_MAX}+` : count} new)`),
});
let client = null;
let subscription = null;

function chosenFrom() {
  const chosen = document.querySelector("input[name=from]:checked").value;
  return chosen === "recent" ? page.recent : chosen;
}

const NONE_YET = ["No events here yet", "They appear as they are published; publish the first with the form."];
const NOW_EMPTY = ["Waiting for new events", "They appear as they are published."];

function sayEmpty(title, hint) {
  byId("empty-title").textContent = title;
  byId("empty-hint").textContent = hint;
}

/** Show the events from `from` on, in an empty list. */
function read(from) {
  subscription?.close();
  list.clear();
  sayEmpty(...(from === "now" ? NOW_EMPTY : NONE_YET));
  subscribe(from);
}

function subscribe(from) {
  subscription = client.subscribe(page.rp, {
    from,
    onEvent: (_event, received) => list.add(received),
    onGap: (gap) => list.addGap(gap),
    onState: (state, detail) => {
      if (state !== "ended" || detail.error) showState(state, detail);
    },
  });
}

/** Connect; behind the last event shown, if there is one. */
function open() {
  const cursor = subscription?.cursor;
  client?.close();
  client = new Client({ url: location.origin, getToken, source: page.source });
  showState("connecting");
  if (cursor) subscribe(cursor);
  else read(chosenFrom());
}

function startTools() {
  for (const choice of document.querySelectorAll("input[name=from]")) {
    choice.addEventListener("change", () => {
      resumeList();
      read(chosenFrom());
    });
  }
  byId("pause").addEventListener("click", () => {
    if (list.paused) {
      resumeList();
      return;
    }
    list.pause();
    byId("pause").setAttribute("aria-pressed", "true");
    byId("pause").textContent = "Resume";
  });
  byId("clear").addEventListener("click", () => {
    list.clear();
    sayEmpty("Cleared", "New events appear as they are published.");
    if (list.paused) byId("pause").textContent = "Resume";
  });
}

function resumeList() {
  list.resume();
  byId("pause").setAttribute("aria-pressed", "false");
  byId("pause").textContent = "Pause";
}

// ---- publishing ----

function answer(kind, text) {
  byId("answer").dataset.kind = kind;
  byId("answer").textContent = text;
}

function typedEvent(form) {
  const text = form.elements.data.value;
  const json = form.elements.kind.value === "json";
  return {
    specversion: "1.0",
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
    const away = byId("state").dataset.state !== "live";
    answer("wait", away ? "Not connected. It is sent, once, when the connection is back." : "Waiting for the answer…");
  }, WAITING_MS);
  try {
    const { offset } = await client.publish(page.rp, event);
    const done = page.ack === "accepted" ? "Accepted" : "Stored";
    answer("good", `${done} as #${offset} in ${WHOLE.format(performance.now() - began)} ms.`);
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

// ---- the history's fill and rate ----

function startFill() {
  const rate = new Rate();
  const onEnds = (ends, at) => {
    const end = ends[page.rp];
    if (!end) return;
    const perSecond = rate.look(end.epoch, end.offset, at);
    if (perSecond !== null) byId("rate").textContent = rateText(perSecond);
    const held = end.offset - end.first + 1;
    byId("epoch").textContent = end.epoch;
    byId("held-events").textContent = WHOLE.format(held);
    byId("events-meter").value = held;
    byId("held-bytes").textContent = size(end.bytes);
    byId("bytes-meter").value = end.bytes;
  };
  const onFailure = () => (byId("rate").textContent = "");
  pollEnds(page.ratesUrl, [page.rp], onEnds, onFailure);
}

function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(3, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1024 ** power).toFixed(1).replace(/\.0$/, "")} ${["B", "KiB", "MiB", "GiB"][power]}`;
}

startTools();
startPublishing();
startFill();
open();
addEventListener("pagehide", () => client.close());
addEventListener("pageshow", (event) => {
  if (event.persisted) open();
});
