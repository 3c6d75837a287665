/** State of the connection: the pill in the header, and the bar with the next step when the connection has ended. */
import { byId } from "./elements.js";

const TEXTS = { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting", ended: "Ended" };
const COUNTED_FROM_MS = 1_000;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * @param {"connecting" | "live" | "reconnecting" | "ended"} state
 * @param {{reason?: string, retryInMs?: number}} [detail]
 */
export function showConnection(state, { reason = "", retryInMs = 0 } = {}) {
  const pill = document.getElementById("connection");
  if (!pill) return; // an embedding without our frame
  clearInterval(timer);
  if (pill.dataset.state !== state) {
    byId("connection-said").textContent = `Connection: ${TEXTS[state].toLowerCase()}`;
  }
  pill.hidden = false;
  pill.dataset.state = state;
  pill.textContent = TEXTS[state];
  pill.title = reason;
  if (state !== "ended") byId("connection-ended").hidden = true;
  if (state === "reconnecting" && retryInMs >= COUNTED_FROM_MS) countDown(pill, performance.now() + retryInMs);
}

function countDown(pill, at) {
  const tick = () => {
    const seconds = Math.ceil((at - performance.now()) / 1000);
    pill.textContent = seconds > 0 ? `Reconnecting in ${seconds} s` : TEXTS.reconnecting;
  };
  tick();
  timer = setInterval(tick, 1000);
}

/** The session has ended: lead to the login page, and back here; on a page without accounts, say what to do instead. */
export function showLoggedOut() {
  const bar = byId("connection-ended");
  if (bar.dataset.ended) {
    showEnd(bar.dataset.ended, "");
    return;
  }
  const link = document.createElement("a");
  link.href = bar.dataset.loginUrl ?? "/login";
  link.textContent = "Log in again";
  showEnd("Your session has ended. The data shown is out of date.", link);
}

/** It ended for another reason; `again` connects anew. @param {string} says @param {() => void} again */
export function showEnded(says, again) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button compact";
  button.textContent = "Connect again";
  button.addEventListener("click", again);
  showEnd(`${says} The data shown is out of date.`, button);
}

function showEnd(says, action) {
  showConnection("ended", { reason: says });
  const bar = byId("connection-ended");
  bar.replaceChildren(says, action);
  bar.hidden = false;
}
