/** Actions on an endpoint: test event, pause, resume, another secret, a link to its page. */

import { act } from "../acting.js";
import { ask } from "../dialog.js";
import { byId } from "../elements.js";
import { request } from "../requests.js";
import { html, nothing, render } from "../table.js";
import { fillTimes } from "../times.js";
import { toast } from "../toast.js";
import { newSecret } from "./words.js";

/** @import { ViewOptions } from "./view.js" */

const SIGNED = ["webhook", "cloudevents-http"]; // modes whose secrets are replaced here
const SLEEPING = ["paused", "gone"];
const WAITING = ["paused", "failing", "throttled", "unverified"];

/** @param {any} endpoint @param {string} mode of the subscription's `deliver` @param {ViewOptions} options @param {() => void} changed called after an action */
export function drawActions(endpoint, mode, options, changed) {
  if (!options.mayChange) return;
  const { api } = options;
  const { state } = endpoint;
  const post = (what) => request("POST", `${api}/endpoint/${what}`);
  const does = (what, said) => (event) => void act(event.currentTarget, () => post(what), said).then(changed);
  render(
    html`<button type="button" class="button" ?disabled=${SLEEPING.includes(state) || state === "unverified"} @click=${does("test", "The test event is sent; its attempt is in the list.")}>Send test event</button>
      ${WAITING.includes(state) ? html`<button type="button" class="button" @click=${does("resume", "The endpoint is tried at once.")}>${state === "paused" ? "Resume" : "Try now"}</button>` : nothing}
      ${SLEEPING.includes(state) ? nothing : html`<button type="button" class="button" @click=${() => pause(post, changed)}>Pause…</button>`}
      ${SIGNED.includes(mode) ? html`<button type="button" class="button" ?disabled=${state === "gone"} @click=${() => rotate(api, endpoint, changed)}>Replace secret…</button>` : nothing}
      ${options.mayLink ? html`<button type="button" class="button" @click=${() => link(post)}>Link for its owner…</button>` : nothing}`,
    byId("endpoint-actions"),
  );
}

async function pause(post, changed) {
  const done = await ask({
    title: "Pause deliveries?",
    says: "Nothing is sent until the endpoint is resumed. Events wait in the history, within its bounds.",
    action: "Pause",
    perform: () => post("pause"),
  });
  if (done === null) return;
  toast("Deliveries are paused.");
  changed();
}

async function rotate(api, { secrets }, changed) {
  const secret = newSecret();
  const done = await ask({
    title: secrets ? "Replace the secret?" : "Set a secret?",
    says: secrets
      ? "Requests carry the signatures of both secrets for a day, so that the receiver can be changed meanwhile. The new secret is shown once."
      : "Requests are signed with it, too. It is shown once.",
    action: secrets ? "Replace" : "Set",
    perform: () => request("POST", `${api}/endpoint/secret`, { secret }),
  });
  if (done === null) return;
  once(
    "Copy the new secret now: it is not shown again.",
    secret,
    html`Requests carry the signatures of both secrets for a day.`,
  );
  changed();
}

async function link(post) {
  let made = { url: "", expires_at: "" };
  const done = await ask({
    title: "Make a link to this endpoint's page?",
    says: "Whoever opens the link first looks after this endpoint, and nothing else, as you, for an hour: a page with attempts, replays, pause and secret. No account is needed.",
    action: "Make link",
    perform: async () => {
      made = await post("page");
    },
  });
  if (done === null) return;
  once(
    "Copy the link now: it is not shown again.",
    made.url,
    html`It can be opened once, <time datetime=${made.expires_at} data-countdown></time>. Send it to nobody else.`,
  );
}

/** Show something secret until it is put away; it is kept nowhere. */
function once(says, secret, note) {
  const box = byId("endpoint-secret");
  box.hidden = false;
  const away = () => {
    render(nothing, box);
    box.hidden = true;
  };
  render(
    html`<div class="notice success"><p><strong>${says}</strong></p>
      <div class="command"><pre>${secret}</pre><button type="button" class="copy" data-copy=${secret}>Copy</button></div>
      <p class="small muted">${note} <button type="button" class="button compact quiet" @click=${away}>Hide it</button></p></div>`,
    box,
  );
  fillTimes(box);
  box.scrollIntoView({ block: "nearest" });
}
