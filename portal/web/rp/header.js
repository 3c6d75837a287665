/** The head of an RP's page: what it is called, whether it is paused or gone, and what is done to it as a whole. */

import { findAll } from "../elements.js";
import { ask } from "../dialog.js";
import { plural } from "../format.js";
import { request } from "../requests.js";
import { breakable, html, render } from "../table.js";
import { toast } from "../toast.js";
import { changeAsked, trimAsked } from "./changing.js";
import { byId, page, setText } from "./page.js";

/** @import { RpState } from "../shapes.d.ts" */

let current = null; // the RP's row in the state; null before the first snapshot, and when it is gone

/** Wire the buttons. */
export function startHeader() {
  for (const id of ["pause-rp", "trim-rp", "change-rp", "end-replica"]) {
    if (byId(id)) byId(id).hidden = false;
  }
  setText(byId("pause-rp"), byId("is-paused").hidden ? "Pause publishing…" : "Resume publishing");
  byId("pause-rp")?.addEventListener("click", () => (byId("is-paused").hidden ? void pause() : void resume()));
  byId("trim-rp")?.addEventListener("click", () => void trimAsked());
  byId("change-rp")?.addEventListener("click", () => void changeAsked());
  byId("end-replica")?.addEventListener("click", () => void end());
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
  const { name, title, paused, id } = current;
  const label = name || title || id;
  render(breakable(label), emptied(byId("label")));
  setText(byId("title"), title);
  byId("title").hidden = !title || title === label;
  document.title = `${label} · ${page.domain}`;
  byId("is-paused").hidden = !paused;
  if (paused) setText(byId("paused-words"), `by ${paused.by}${paused.reason ? `: ${paused.reason}` : ""}`);
  setText(byId("pause-rp"), paused ? "Resume publishing" : "Pause publishing…");
}

/** It is gone: say so, and offer nothing any more. */
export function gone() {
  current = null;
  byId("is-gone").hidden = false;
  byId("is-paused").hidden = true;
  byId("actions")?.remove();
  for (const button of findAll(document, "[role=tabpanel] .button:not(a)")) button.toggleAttribute("disabled", true);
}

const rendered = new WeakSet();

/** lit-html draws into what it has emptied itself: what the server rendered goes first. */
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
    says: `${page.domain} takes no events here from its publishers until you resume it. Readers stay${page.isReplica ? ", and other domains' events still come" : ""}.`,
    action: "Pause",
    danger: true,
    reason: { label: "Reason", hint: "Publishers are told it with their refusal." },
    perform: (why) => request("POST", `${page.api}/pause`, { reason: why }),
  });
  if (reason !== null) toast("Publishing is paused.");
}

async function resume() {
  try {
    await request("POST", `${page.api}/resume`, {});
    toast("Publishing goes on.");
  } catch (error) {
    toast(error.message, "bad");
  }
}

async function remove() {
  const held = Number(byId("events-meter", HTMLMeterElement).value);
  const says = document.createElement("div");
  render(
    html`<p>It is gone for good, with:</p>
      <ul class="consequences">
        <li>its history, ${plural(held, "event")} at the moment;</li>
        <li>the subscriptions at it, with what they have not read yet;</li>
        <li>the connections of whoever reads it now: they are told that it is gone.</li>
      </ul>`,
    says,
  );
  const done = await ask({
    title: `Delete ${shown()}?`,
    says,
    action: "Delete",
    danger: true,
    type: { label: `Type ${shown()} to delete it`, text: shown() },
    perform: () => request("DELETE", page.api),
  });
  if (done === null) return;
  gone();
  toast("It is deleted.");
  byId("is-gone").querySelector("a").focus();
}

async function end() {
  const done = await ask({
    title: "End this replica?",
    says: `What ${page.domain} holds of it goes, and the durable subscriptions here. At ${page.home} and elsewhere it goes on.`,
    action: "End the replica",
    danger: true,
    type: { label: `Type ${page.home} to end it`, text: page.home },
    perform: () => request("DELETE", `/api/v1/replicas/${page.rp}`),
  });
  if (done === null) return;
  gone();
  toast("The replica is ended.");
}
