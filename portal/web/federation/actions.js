/** What an administrator or operator does about a peer: a question first, then the request; its effect comes back as an event. */

import { find } from "../elements.js";
import { ask } from "../dialog.js";
import { request } from "../requests.js";
import { html, nothing, render } from "../table.js";
import { toast } from "../toast.js";

/** @import { Peer, PeerDetail } from "../shapes.d.ts" */

const PEERS = "/api/v1/peers";
const DIGITS = 5; // of a safety number's last group

export function peerUrl(name, act = "") {
  return `${PEERS}/${encodeURIComponent(name)}${act && `/${act}`}`;
}

/** A template as the element that dialog.js takes. */
function words(template) {
  const box = document.createElement("div");
  box.className = "stack";
  render(template, box);
  return box;
}

/** What two administrators compare, each reading to the other. */
export function comparison(seen) {
  return html`<div class="compare">
    <p class="small muted">Read this number to the other domain's administrator, over a way that you trust. Both see the same one, unless somebody stands between you.</p>
    <p class="safety-number mono" aria-label="Safety number">${groups(seen.safety_number)}</p>
    <details class="more small"><summary>Fingerprints</summary>
      <dl class="fingerprints"><dt>Theirs</dt><dd class="mono">${groups(seen.fingerprint_shown)}</dd><dt>Ours</dt><dd class="mono">${groups(seen.own_fingerprint_shown)}</dd></dl>
    </details>
  </div>`;
}

/** A fingerprint in its groups, which stay together where the line breaks. */
export function groups(shown) {
  return shown.split(" ").map((group) => html`<span class="digits">${group}</span> `);
}

function proof(seen) {
  return { label: `Type its last ${DIGITS} digits as they are read to you`, text: seen.safety_number.slice(-DIGITS) };
}

/** Fetch what a domain states of itself, compare, add it. Resolves to its name, null where it was not wanted. */
export async function addPeer(openPeer) {
  const asking =
    words(html`<p>Two administrators agree: you add the other domain here, its administrator approves yours there. Nothing is trusted before both have.</p>
    <div class="field"><label for="peer-url">Address of the other domain</label><input id="peer-url" name="url" type="url" required placeholder="https://b.example" autocomplete="off"></div>`);
  let seen = null;
  const looked = await ask({
    title: "Add a peer",
    says: asking,
    action: "Look at it",
    perform: async () => {
      seen = await request("POST", `${PEERS}/look`, { url: asking.querySelector("input").value.trim() });
    },
  });
  if (looked === null) return null;
  const host = words(
    html`<p><strong>${seen.domain}</strong> at ${seen.url}${seen.state ? html` is known here already: ${seen.state}.` : "."}</p>${comparison(seen)}${trustSwitches({ push: true, host: false, gossip: true })}`,
  );
  const added = await ask({
    title: `Add ${seen.domain}?`,
    says: host,
    action: "Add",
    type: proof(seen),
    perform: () => request("POST", PEERS, { url: seen.url, fingerprint: seen.fingerprint, ...trustOf(host) }),
  });
  if (added === null) return null;
  toast(
    seen.state === "asked"
      ? `${seen.domain} is approved.`
      : `${seen.domain} is added. Its administrator has yet to approve this domain.`,
  );
  openPeer(seen.domain);
  return seen.domain;
}

/** @param {PeerDetail} detail */
export async function approve(detail) {
  const says = words(html`${comparison(detail)}${trustSwitches(detail)}`);
  const done = await ask({
    title: `Approve ${detail.name}?`,
    says,
    action: "Approve",
    type: proof(detail),
    perform: () =>
      request("POST", peerUrl(detail.name, "approve"), { fingerprint: detail.fingerprint, ...trustOf(says) }),
  });
  if (done !== null) toast(`${detail.name} is approved.`);
}

export async function suspend(name) {
  const done = await ask({
    title: `Suspend ${name}?`,
    says: "Nothing is sent to it, nothing of it is taken, and its tokens are refused, until it is resumed. Both sides keep what they have.",
    action: "Suspend",
    danger: true,
    reason: { label: "Reason", hint: "Kept with the peer, for administrators." },
    perform: (note) => request("POST", peerUrl(name, "suspend"), note ? { note } : {}),
  });
  if (done !== null) toast(`${name} is suspended.`);
}

export async function resume(name) {
  const done = await ask({
    title: `Resume ${name}?`,
    says: "What was missed meanwhile flows, as after an outage.",
    action: "Resume",
    perform: () => request("POST", peerUrl(name, "resume"), {}),
  });
  if (done !== null) toast(`${name} is resumed.`);
}

/** @param {Peer} row of the state. Resolves to whether it was removed. */
export async function remove({ name, state }) {
  const asks = state === "asked";
  const done = await ask({
    title: asks ? `Decline ${name}?` : `Remove ${name}?`,
    says: asks
      ? "Its request is forgotten. It may ask again."
      : "Nothing is exchanged with it any more, and its tokens are refused. What it sent stays. To be peers again both administrators have to agree anew.",
    action: asks ? "Decline" : "Remove",
    danger: true,
    ...(!asks && { type: { label: `Type ${name} to remove it`, text: name } }),
    perform: () => request("DELETE", peerUrl(name)),
  });
  if (done !== null) toast(asks ? `${name} is declined.` : `${name} is a peer no more.`);
  return done !== null;
}

export async function retry(name) {
  try {
    const { hello } = await request("POST", peerUrl(name, "retry"), {});
    if (hello.failures) toast(`${name} was tried: ${hello.problem ?? "it does not answer."}`, "bad");
    else toast(`${name} answers. What waits for it is being sent.`);
  } catch (error) {
    toast(error.message, "bad");
  }
}

export async function renew(name) {
  try {
    await request("POST", peerUrl(name, "renew"), {});
    toast(`The lease of ${name} counts from now.`);
  } catch (error) {
    toast(error.message, "bad");
  }
}

/** @param {string} name @param {{rp: string, label: string}} link */
export async function replay(name, { rp, label }) {
  const done = await ask({
    title: "Send events again?",
    says: words(
      html`<p>${name} is offered what this domain holds of <strong>${label}</strong>, as if it had never said to hold it. It takes only what it lacks.</p>`,
    ),
    action: "Send again",
    reason: { label: "After a cursor", hint: "Empty: everything that is held here." },
    perform: (after) => request("POST", peerUrl(name, "replay"), after ? { rp, after } : { rp }),
  });
  if (done !== null) toast(`${label} is offered to ${name} again.`);
}

export async function lift(origin) {
  const done = await ask({
    title: `Lift the quarantine of ${origin}?`,
    says: "Its events are taken again, here and from whoever carries them. The evidence against it is kept.",
    action: "Lift it",
    danger: true,
    perform: () => request("DELETE", `/api/v1/quarantines/${encodeURIComponent(origin)}`),
  });
  if (done !== null) toast(`Events of ${origin} are taken again.`);
}

/** A trust switch was turned: tell the domain; where it refuses, the switch goes back. */
export async function trust(name, input) {
  try {
    await request("PATCH", peerUrl(name), { [input.name]: input.checked });
    toast("Changed.");
  } catch (error) {
    input.checked = !input.checked;
    toast(error.message, "bad");
  }
}

const RATES = [
  ["events_per_s", "Events per second"],
  ["bytes_per_s", "Bytes per second"],
  ["requests_per_s", "Requests per second"],
];

/** Change what it may send, its address or the note. @param {PeerDetail} detail @returns {Promise<boolean>} whether it was changed */
export async function change(detail) {
  const says = words(html`<p>What it may send; more is refused with the time to come back.</p>
    ${RATES.map(([name, label]) => html`<div class="field"><label for=${`peer-${name}`}>${label}</label><input id=${`peer-${name}`} name=${name} type="number" min="1" required .value=${String(detail[name])}></div>`)}
    <div class="field"><label for="peer-address">Address</label><input id="peer-address" name="url" type="url" required .value=${detail.url}></div>
    <div class="field"><label for="peer-note">Note</label><input id="peer-note" name="note" maxlength="255" .value=${detail.note}></div>`);
  const field = (name) => find(says, `[name=${name}]`, HTMLInputElement).value;
  const done = await ask({
    title: `Change ${detail.name}`,
    says,
    action: "Save",
    perform: () => {
      const said = {
        url: field("url").trim(),
        note: field("note").trim(),
        ...Object.fromEntries(RATES.map(([name]) => [name, Number(field(name))])),
      };
      return request(
        "PATCH",
        peerUrl(detail.name),
        Object.fromEntries(Object.entries(said).filter(([member, value]) => value !== detail[member])),
      );
    },
  });
  if (done !== null) toast("Changed.");
  return done !== null;
}

const TRUST = [
  ["push", "May send events", "It may push what was published there, or came to it."],
  ["host", "May have replicas here", "It may ask this domain to host replicas of its rendezvous points."],
  ["gossip", "Takes part in gossip", "It is told of evidence against others, and tells us."],
];

/** The switches of what a peer may do. @param {(input: HTMLInputElement) => void} [onChange] @param {boolean} [locked] */
export function trustSwitches(held, onChange, locked = false) {
  return html`<fieldset class="switches"><legend class="visually-hidden">What it may do</legend>
    ${TRUST.map(
      ([
        name,
        label,
        hint,
      ]) => html`<label class="switch"><input type="checkbox" role="switch" name=${name} .checked=${Boolean(held[name])} ?disabled=${locked}
        @change=${onChange ? ({ target }) => onChange(target) : nothing}><span>${label}<span class="small muted">${hint}</span></span></label>`,
    )}</fieldset>`;
}

function trustOf(box) {
  return Object.fromEntries([...box.querySelectorAll("[role=switch]")].map(({ name, checked }) => [name, checked]));
}
