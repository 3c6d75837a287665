/**
 * Actions of administrators and operators on a peer: a confirmation, then the request; the effect arrives as an event.
 */

import { need } from "../elements.js";
import { ask } from "../dialog.js";
import { request } from "../requests.js";
import { html, nothing, render } from "../table.js";
import { toast } from "../toast.js";

/** @import { Peer, PeerRow } from "../shapes.d.ts" */

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

/** The numbers that two administrators compare. */
export function comparison(seen) {
  return html`<div class="compare">
    <p class="small muted">Compare this number with the other domain's administrator over a trusted channel. Both sides see the same number unless the connection is intercepted.</p>
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
  return {
    label: `Type the last ${DIGITS} digits as read by the other administrator`,
    text: seen.safety_number.slice(-DIGITS),
  };
}

/** Fetch what a domain states of itself, compare, add it. Resolves to its name, null where it was not wanted. */
export async function addPeer(openPeer) {
  const asking =
    words(html`<p>Peering needs two administrators: you add the other domain here, and its administrator approves this domain there. No trust is granted before both have agreed.</p>
    <div class="field"><label for="peer-url">Address of the other domain</label><input id="peer-url" name="url" type="url" required placeholder="https://b.example" autocomplete="off"></div>`);
  /** @type {any} */
  let seen = null;
  const looked = await ask({
    title: "Add a peer",
    says: asking,
    action: "Continue",
    perform: async () => {
      seen = await request("POST", `${PEERS}/look`, { url: need(asking, "input", HTMLInputElement).value.trim() });
    },
  });
  if (looked === null) return null;
  const host = words(
    html`<p><strong>${seen.domain}</strong> at ${seen.url}${seen.state ? html` is already known here: ${seen.state}.` : "."}</p>${comparison(seen)}${trustSwitches({ push: true, host: false, gossip: true })}`,
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
      : `${seen.domain} is added. Its administrator has not approved this domain yet.`,
  );
  openPeer(seen.domain);
  return seen.domain;
}

/** @param {Peer} detail */
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
    says: "Until the peer is resumed, no events are exchanged with it and its tokens are rejected. Both sides keep their events.",
    action: "Suspend",
    danger: true,
    reason: { label: "Reason", hint: "Stored with the peer, for administrators." },
    perform: (note) => request("POST", peerUrl(name, "suspend"), note ? { note } : {}),
  });
  if (done !== null) toast(`${name} is suspended.`);
}

export async function resume(name) {
  const done = await ask({
    title: `Resume ${name}?`,
    says: "Missed events are delivered, as after an outage.",
    action: "Resume",
    perform: () => request("POST", peerUrl(name, "resume"), {}),
  });
  if (done !== null) toast(`${name} is resumed.`);
}

/** @param {PeerRow} row of the state. Resolves to whether it was removed. */
export async function remove({ name, state }) {
  const asks = state === "asked";
  const done = await ask({
    title: asks ? `Decline ${name}?` : `Remove ${name}?`,
    says: asks
      ? "The request is deleted. The domain may send another."
      : "No events are exchanged any more, and its tokens are rejected. Events already received stay. Peering again needs the agreement of both administrators.",
    action: asks ? "Decline" : "Remove",
    danger: true,
    ...(!asks && { type: { label: `Type ${name} to confirm`, text: name } }),
    perform: () => request("DELETE", peerUrl(name)),
  });
  if (done !== null) toast(asks ? `${name} is declined.` : `${name} is no longer a peer.`);
  return done !== null;
}

export async function retry(name) {
  try {
    const { hello } = await request("POST", peerUrl(name, "retry"), {});
    if (hello.failures) toast(`${name} was tried: ${hello.problem ?? "no response."}`, "bad");
    else toast(`${name} responds. Its backlog is being sent.`);
  } catch (error) {
    toast(error.message, "bad");
  }
}

export async function renew(name) {
  try {
    await request("POST", peerUrl(name, "renew"), {});
    toast(`The lease of ${name} is renewed.`);
  } catch (error) {
    toast(error.message, "bad");
  }
}

/** @param {string} name @param {{rp: string, label: string}} link */
export async function replay(name, { rp, label }) {
  const done = await ask({
    title: "Send events again?",
    says: words(
      html`<p>${name} is offered all events of <strong>${label}</strong> that this domain holds, regardless of what it has acknowledged. It accepts only missing events.</p>`,
    ),
    action: "Send again",
    reason: { label: "After a cursor", hint: "Empty: all events held here." },
    perform: (after) => request("POST", peerUrl(name, "replay"), after ? { rp, after } : { rp }),
  });
  if (done !== null) toast(`${label} is offered to ${name} again.`);
}

export async function lift(origin) {
  const done = await ask({
    title: `Lift the quarantine of ${origin}?`,
    says: "Its events are accepted again, whichever domain forwards them. The evidence against it is kept.",
    action: "Lift quarantine",
    danger: true,
    perform: () => request("DELETE", `/api/v1/quarantines/${encodeURIComponent(origin)}`),
  });
  if (done !== null) toast(`Events of ${origin} are accepted again.`);
}

/** Send a changed trust switch to the domain; on a refusal, reset the switch. */
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

/** Change what it may send, its address or the note. @param {Peer} detail @returns {Promise<boolean>} whether it was changed */
export async function change(detail) {
  const says = words(html`<p>Limits of what the peer may send. Excess requests are rejected with a retry time.</p>
    ${RATES.map(([name, label]) => html`<div class="field"><label for=${`peer-${name}`}>${label}</label><input id=${`peer-${name}`} name=${name} type="number" min="1" required .value=${String(detail[name])}></div>`)}
    <div class="field"><label for="peer-address">Address</label><input id="peer-address" name="url" type="url" required .value=${detail.url}></div>
    <div class="field"><label for="peer-note">Note</label><input id="peer-note" name="note" maxlength="255" .value=${detail.note}></div>`);
  const field = (name) => need(says, `[name=${name}]`, HTMLInputElement).value;
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
  ["push", "May send events", "It may push events that were published there or forwarded to it."],
  ["host", "May have replicas here", "It may ask this domain to host replicas of its rendezvous points."],
  ["gossip", "Takes part in gossip", "It exchanges evidence of misbehaviour with this domain."],
];

/** The switches of what a peer may do. @param {(input: HTMLInputElement) => void} [onChange] @param {boolean} [locked] */
export function trustSwitches(held, onChange, locked = false) {
  return html`<fieldset class="switches"><legend class="visually-hidden">Permissions</legend>
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
