/** Head of an RP's page: label, state (paused, deleted), and actions on the whole RP. */

import { findAll, need } from "../elements.js";
import { ask } from "../dialog.js";
import { plural } from "../format.js";
import { request } from "../requests.js";
import { breakable, html, render } from "../table.js";
import { toast } from "../toast.js";
import { changeAsked, trimAsked } from "./changing.js";
import { byId, page, setText } from "./page.js";

/** @import { RpState } from "../shapes.d.ts" */

/** @type {RpState["rp"]} */
let current = null; // the RP's row in the state; null before the first snapshot, and after the RP's deletion

/** Wire the buttons. */
export function startHeader() {
  for (const id of ["pause-rp", "trim-rp", "change-rp", "leave-replica"]) {
    if (byId(id)) byId(id).hidden = false;
  }
  setText(byId("pause-rp"), byId("is-paused").hidden ? "Pause publishing…" : "Resume publishing");
  byId("pause-rp")?.addEventListener("click", () => (byId("is-paused").hidden ? void pause() : void resume()));
  byId("trim-rp")?.addEventListener("click", () => void trimAsked());
  byId("change-rp")?.addEventListener("click", () => void changeAsked());
  byId("leave-replica")?.addEventListener("click", () => void leave());
  byId("delete-rp")?.addEventListener("click", (event) => {
    event.preventDefault();
    void remove();
  });
}

/** @param {RpState} state of the RP */
export function showHeader(state) {
  if (!state.rp) {
    gone();
    return;
  }
  if (state.rp === current) return;
  current = state.rp;
  const { name, title, paused, id } = state.rp;
  const label = name || title || id;
  render(breakable(label), emptied(byId("label")));
  setText(byId("title"), title);
  byId("title").hidden = !title || title === label;
  document.title = `${label} · ${page.domain}`;
  byId("is-paused").hidden = !paused;
  if (paused) setText(byId("paused-words"), `by ${paused.by}${paused.reason ? `: ${paused.reason}` : ""}`);
  setText(byId("pause-rp"), paused ? "Resume publishing" : "Pause publishing…");
}

/** Show that the RP no longer exists, and remove all actions. */
export function gone() {
  current = null;
  byId("is-gone").hidden = false;
  byId("is-paused").hidden = true;
  byId("actions")?.remove();
  for (const button of findAll(document, "[role=tabpanel] .button:not(a)")) button.toggleAttribute("disabled", true);
}

const rendered = new WeakSet();

/** lit-html renders into elements that it has emptied itself: remove the server's markup first. */
function emptied(element) {
  if (!rendered.has(element)) element.replaceChildren();
  rendered.add(element);
  return element;
}

function shown() {
  return current?.name || current?.title || byId("label").textContent;
}

async function pause() {
  const reason = await ask({
    title: "Pause publishing?",
    says: `${page.domain} rejects events published here until you resume publishing. Readers stay connected${page.isReplica ? ", and events of other domains are still received" : ""}.`,
    action: "Pause",
    danger: true,
    reason: { label: "Reason", hint: "Sent to publishers with the rejection." },
    perform: (why) => request("POST", `${page.api}/pause`, { reason: why }),
  });
  if (reason !== null) toast("Publishing is paused.");
}

async function resume() {
  try {
    await request("POST", `${page.api}/resume`, {});
    toast("Publishing is resumed.");
  } catch (error) {
    toast(error.message, "bad");
  }
}

async function remove() {
  const held = Number(byId("events-meter", HTMLMeterElement).value);
  const says = document.createElement("div");
  render(
    html`<p>It is deleted permanently, together with:</p>
      <ul class="consequences">
        <li>its history, ${plural(held, "event")} at present;</li>
        <li>its subscriptions, including events that their readers have not received;</li>
        <li>the live subscriptions of its current readers, who are notified of the deletion.</li>
      </ul>`,
    says,
  );
  const done = await ask({
    title: `Delete ${shown()}?`,
    says,
    action: "Delete",
    danger: true,
    reason: { label: "Reason", hint: "Recorded in the audit." },
    type: { label: `Type ${shown()} to confirm`, text: shown() },
    perform: (reason) => request("DELETE", `${page.api}${reason ? `?${new URLSearchParams({ reason })}` : ""}`),
  });
  if (done === null) return;
  gone();
  toast("The rendezvous point is deleted.");
  need(byId("is-gone"), "a").focus();
}

async function leave() {
  const done = await ask({
    title: "Leave this replica?",
    says: `The events that ${page.domain} holds and the durable subscriptions here are deleted. The rendezvous point continues at ${page.home} and other domains.`,
    action: "Leave",
    danger: true,
    type: { label: `Type ${page.home} to confirm`, text: page.home },
    perform: () => request("DELETE", `/api/v1/replicas/${page.rp}`),
  });
  if (done === null) return;
  gone();
  toast("This domain has left the replica.");
}
