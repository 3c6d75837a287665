/**
 * What a peer's row of the domain's state comes to, in words, a sign and a level: for the map, the table and the panel. Pure.
 *
 * Levels: "good", "warn" (look at it), "bad" (events do not flow), "off" (by decision), "wait" (for somebody's decision).
 */

import { stretch } from "../times.js";

/** @import { Peer, Quarantine } from "../shapes.d.ts" */

const BEHIND_MS = 10_000; // while something is published something always waits: it is behind when it needs longer than this
const SAMPLED_MS = 3_000; // after this long, whatever flows has been sampled
const TRAFFIC_MS = 5_000; // a sample that is older says nothing of now

export const SIGNS = { good: "✓", warn: "▲", bad: "✕", off: "‖", wait: "?" };
export const LEVELS = ["bad", "wait", "warn", "off", "good"]; // what asks for attention first

/** What each class of a failure means, for whoever has to do something about it. */
const FAILURES = {
  unreachable: "It cannot be reached, or does not answer in time.",
  busy: "It asks to come later.",
  refused: "It does not take this domain for a peer.",
  invalid: "It and this domain do not understand or believe each other.",
  paused: "It asked to be sent nothing for a while.",
  "not-taking": "It answers, and takes nothing of what it is sent.",
};

/** What to do about each. */
const ADVICE = {
  unreachable: "Check that it runs and that its address is right. It is tried again by itself.",
  busy: "Nothing: it is tried again when it said, or when you say so.",
  refused: "Ask its administrator to approve or resume this domain, then try again.",
  invalid: "Compare clocks, versions and fingerprints with its administrator, then try again.",
  paused: "Ask its administrator why. It is sent what waits when the pause ends, or when you try again.",
  "not-taking":
    "Ask its administrator what its log says of this domain's events. They wait here as long as histories hold them.",
};

/**
 * @param {Peer} peer a row of state.peers
 * @param {Record<string, Quarantine>} quarantines of the state
 * @param {number} now milliseconds, by the domain's clock
 * @param {number} watchedMs for how long traffic has been told
 * @returns {{level: string, sign: string, word: string, sentence: string, advice: string}}
 */
export function health(peer, quarantines, now, watchedMs) {
  const made = (level, word, sentence, advice = "") => ({ level, sign: SIGNS[level], word, sentence, advice });
  const { state, theirs, delivery, name } = peer;
  if (state === "asked") {
    return made(
      "wait",
      "Asks",
      "It asks to be a peer: an administrator here decides.",
      "Compare fingerprints with its administrator, then approve it, or remove it.",
    );
  }
  if (state === "suspended") {
    return made(
      "off",
      "Suspended",
      "Suspended here: nothing is exchanged with it.",
      "Resume it when events may flow again; what was missed follows.",
    );
  }
  if (state === "proposed") {
    return theirs === "leaves"
      ? made(
          "warn",
          "Declined",
          "It wants no peering, or knows of none.",
          "Talk to its administrator; add it again to ask again.",
        )
      : made("wait", "Proposed", "Its administrator has yet to approve this domain.", "Nothing is left to do here.");
  }
  if (delivery.stopped_at) {
    return made("bad", "Stopped", FAILURES[delivery.class] ?? "Delivery has stopped.", ADVICE[delivery.class]);
  }
  if (delivery.failures > 0) {
    return made("bad", "Failing", FAILURES[delivery.class] ?? "Delivery fails.", ADVICE[delivery.class]);
  }
  if (delivery.class === "paused" || delivery.class === "not-taking") {
    const since = stretch(now - Date.parse(delivery.first_failure_at));
    return made(
      "bad",
      delivery.class === "paused" ? "Paused" : "Takes nothing",
      `${FAILURES[delivery.class]} So for ${since}.`,
      ADVICE[delivery.class],
    );
  }
  if (quarantines[name]) {
    return made(
      "bad",
      "Quarantined",
      "Its own events are refused here: it contradicted itself.",
      "Look at the evidence; lift the quarantine when its administrator has explained it.",
    );
  }
  if (theirs === "suspends") {
    return made(
      "warn",
      "Suspended there",
      "Its administrator has suspended this domain.",
      "Talk to its administrator.",
    );
  }
  const waiting = delivery.oldest_at ? now - Date.parse(delivery.oldest_at) : 0;
  const neededMs = (1000 * delivery.backlog) / (rates(peer, now).sent || 0);
  if (delivery.backlog > 0 && waiting > BEHIND_MS && watchedMs > SAMPLED_MS && neededMs > BEHIND_MS) {
    return made(
      "warn",
      "Behind",
      `Events have been waiting for ${stretch(waiting)}.`,
      "Look which rendezvous points wait, below.",
    );
  }
  return made("good", "Well", delivery.backlog > 0 ? "Events are on their way." : "It has everything.");
}

/**
 * Rates of now, events per second: `sent` to the peer, `taken` of it, `copies` that were here already.
 * @param {Pick<Peer, "traffic">} peer @param {number} now
 */
export function rates({ traffic }, now) {
  const known = traffic?.at && traffic.interval_s > 0 && now - Date.parse(traffic.at) < TRAFFIC_MS;
  const each = (name) => (known ? traffic[name] / traffic.interval_s : 0);
  return { sent: each("sent"), taken: each("taken"), copies: each("copies") };
}

/** @typedef {Peer & {health: ReturnType<typeof health>, rates: ReturnType<typeof rates>}} JudgedPeer */

/** Rows with their health and rates, those that ask for attention first, then by name. @param {Record<string, Peer>} peers @returns {JudgedPeer[]} */
export function judged(peers, quarantines, now, watchedMs) {
  return Object.values(peers)
    .map((peer) => ({ ...peer, health: health(peer, quarantines, now, watchedMs), rates: rates(peer, now) }))
    .sort((a, b) => LEVELS.indexOf(a.health.level) - LEVELS.indexOf(b.health.level) || a.name.localeCompare(b.name));
}

/** "3 peers: 1 failing, 1 asks, 1 well". */
export function summary(rows) {
  const words = new Map();
  for (const { health: one } of rows) words.set(one.word, (words.get(one.word) ?? 0) + 1);
  const parts = [...words].map(([word, number]) => `${number} ${word.toLowerCase()}`);
  return `${rows.length} ${rows.length === 1 ? "peer" : "peers"}: ${parts.join(", ")}`;
}
