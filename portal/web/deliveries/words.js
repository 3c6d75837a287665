/** Words for states, outcomes and reasons of deliveries. Pure. */

import { plural } from "../format.js";

/** State of an endpoint: look of its badge, words, and what it means. @type {Record<string, [string, string, string]>} */
const STATES = {
  unverified: ["warn", "awaiting consent", "The endpoint has not consented yet; nothing else is sent to it."],
  active: ["good", "active", "Events are sent as they come."],
  throttled: ["warn", "throttled", "The endpoint asks for fewer requests; events wait meanwhile."],
  failing: ["bad", "failing", "The endpoint does not accept events; they wait, and are tried again."],
  paused: ["bad", "paused", "Nothing is sent until the endpoint is resumed; events wait in the history."],
  gone: ["bad", "gone", "The endpoint answered 410 and is not called again, unless its owner states an address."],
};

/** State of an endpoint, as above; paused by its owner it is no fault. @param {{state: string, reason: string}} endpoint */
export function stateOf({ state, reason }) {
  const [kind, words, about] = STATES[state];
  return [reason === "by-owner" ? "warn" : kind, words, about];
}

/** Why an endpoint is in its state: "status 503, 5 failures"; empty for no reason. @param {{reason: string, failures: number}} endpoint */
export function whyOf({ reason, failures }) {
  return [reason && reasonWords(reason), failures > 1 && plural(failures, "failure")].filter(Boolean).join(", ");
}

/** @type {Record<string, [string, string]>} */
export const VERDICTS = {
  delivered: ["good", "accepted"],
  throttled: ["warn", "throttled"],
  failed: ["bad", "failed"],
  gone: ["bad", "gone"],
};

/** @type {Record<string, string>} */
export const WHATS = { event: "Events", consent: "Request for consent", test: "Test event", replay: "Replay" };

/** @type {Record<string, string>} */
const REASONS = {
  "address-refused": "address not allowed",
  "name-not-resolved": "name not resolved",
  "not-connected": "connection refused",
  "connect-timeout": "no connection in time",
  "tls-failed": "TLS failed",
  "send-timeout": "request not taken in time",
  "answer-timeout": "no answer in time",
  "connection-closed": "connection closed",
  "malformed-answer": "invalid answer",
  stopped: "interrupted",
  "no-consent": "did not consent",
  "by-owner": "paused by its owner",
  "dead-letters-full": "too many dead letters",
  "schedule-exhausted": "all tries failed",
  "history-trimmed": "no longer in the history",
  "log-replaced": "the log was replaced",
  "secrets-not-opened": "secrets cannot be read: state the address anew",
  requested: "replay requested",
};

/** A reason as people read it: "all tries failed: status 503". @param {string} code */
export function reasonWords(code) {
  return code
    .split(": ")
    .map((one) => (Object.hasOwn(REASONS, one) ? REASONS[one] : one).replace(/^http-(\d+)$/, "status $1"))
    .join(": ");
}

/** The offsets of some events: "12", "12–15". @param {{first: number, last: number}} some */
export function offsets({ first, last }) {
  return first === last ? String(first) : `${first}–${last}`;
}

/** Bytes of an answer as text; what is none is replaced. @param {string} base64 */
export function excerptText(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}

/** A new secret of signatures, of 32 random bytes. */
export function newSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}
