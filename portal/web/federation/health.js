/**
 * Health of a peer from its row of the domain's state: words, sign and level, for the map, the table and the panel. Pure.
 *
 * Levels: "good", "warn" (look at it), "bad" (events do not flow), "off" (by decision), "wait" (for somebody's decision).
 */

import { stretch } from "../times.js";

/** @import { PeerRow, QuarantineRow } from "../shapes.d.ts" */

const BEHIND_MS = 10_000; // while something is published something always waits: it is behind when it needs longer than this
const SAMPLED_MS = 3_000; // after this long, whatever flows has been sampled
const TRAFFIC_MS = 5_000; // an older sample is not current

export const SIGNS = { good: "✓", warn: "▲", bad: "✕", off: "‖", wait: "?" };
export const LEVELS = ["bad", "wait", "warn", "off", "good"]; // what asks for attention first

/** Meaning of each class of failure, for operators. */
const FAILURES = {
  unreachable: "The peer is unreachable or does not respond in time.",
  busy: "The peer asks to retry later.",
  refused: "The peer does not accept this domain as a peer.",
  invalid: "The two domains reject each other's messages.",
  paused: "The peer asked to pause delivery.",
  "not-taking": "The peer responds but accepts none of the events sent.",
};

/** Remedy for each class of failure. */
const ADVICE = {
  unreachable: "Check that the peer runs and that its address is correct. Delivery is retried automatically.",
  busy: "No action needed: delivery is retried at the requested time, or when you retry.",
  refused: "Ask its administrator to approve or resume this domain, then try again.",
  invalid: "Compare clocks, versions and fingerprints with its administrator, then try again.",
  paused: "Ask its administrator for the reason. The backlog is sent when the pause ends, or when you retry.",
  "not-taking":
    "Ask its administrator to check the log for this domain's events. They wait here as long as the histories hold them.",
};

/**
 * @param {PeerRow} peer a row of state.peers
 * @param {Record<string, QuarantineRow>} quarantines of the state
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
      "The domain requests peering; an administrator of this domain decides.",
      "Compare fingerprints with its administrator, then approve or decline.",
    );
  }
  if (state === "suspended") {
    return made(
      "off",
      "Suspended",
      "Suspended by this domain: no events are exchanged.",
      "Resume the peer to exchange events again; missed events are delivered then.",
    );
  }
  if (state === "proposed") {
    return theirs === "leaves"
      ? made(
          "warn",
          "Declined",
          "The domain declined peering or does not know of it.",
          "Contact its administrator; add the peer again to repeat the request.",
        )
      : made("wait", "Proposed", "Its administrator has not approved this domain yet.", "No action needed here.");
  }
  if (delivery.stopped_at) {
    return made("bad", "Stopped", FAILURES[delivery.class] ?? "Delivery has stopped.", ADVICE[delivery.class]);
  }
  if (delivery.failures > 0) {
    return made("bad", "Failing", FAILURES[delivery.class] ?? "Delivery fails.", ADVICE[delivery.class]);
  }
  if (delivery.class === "paused" || delivery.class === "not-taking") {
    const since = stretch(now - Date.parse(delivery.first_failure_at ?? ""));
    return made(
      "bad",
      delivery.class === "paused" ? "Paused" : "Not accepting",
      `${FAILURES[delivery.class]} Since ${since}.`,
      ADVICE[delivery.class],
    );
  }
  if (quarantines[name]) {
    return made(
      "bad",
      "Quarantined",
      "Its events are rejected here: it signed contradictory histories.",
      "Check the evidence; lift the quarantine when its administrator has explained the contradiction.",
    );
  }
  if (theirs === "suspends") {
    return made(
      "warn",
      "Suspended by the peer",
      "Its administrator has suspended this domain.",
      "Contact its administrator.",
    );
  }
  const waiting = delivery.oldest_at ? now - Date.parse(delivery.oldest_at) : 0;
  const neededMs = (1000 * delivery.backlog) / (rates(peer, now).sent || 0);
  if (delivery.backlog > 0 && waiting > BEHIND_MS && watchedMs > SAMPLED_MS && neededMs > BEHIND_MS) {
    return made(
      "warn",
      "Behind",
      `Events have been waiting for ${stretch(waiting)}.`,
      "See below which rendezvous points have a backlog.",
    );
  }
  return made("good", "Healthy", delivery.backlog > 0 ? "Events are being delivered." : "Up to date.");
}

/**
 * Rates of now, events per second: `sent` to the peer, `taken` of it, `copies` that were here already.
 * @param {Pick<PeerRow, "traffic">} peer @param {number} now
 */
export function rates({ traffic }, now) {
  const known = traffic?.at && traffic.interval_s > 0 && now - Date.parse(traffic.at) < TRAFFIC_MS;
  const each = (name) => (known ? traffic[name] / traffic.interval_s : 0);
  return { sent: each("sent"), taken: each("taken"), copies: each("copies") };
}

/** @typedef {PeerRow & {health: ReturnType<typeof health>, rates: ReturnType<typeof rates>}} JudgedPeer */

/**
 * Rows with their health and rates: peers that need attention first, then by name.
 * @param {Record<string, PeerRow>} peers @returns {JudgedPeer[]}
 */
export function judged(peers, quarantines, now, watchedMs) {
  return Object.values(peers)
    .map((peer) => ({ ...peer, health: health(peer, quarantines, now, watchedMs), rates: rates(peer, now) }))
    .sort((a, b) => LEVELS.indexOf(a.health.level) - LEVELS.indexOf(b.health.level) || a.name.localeCompare(b.name));
}

/** A summary such as "3 peers: 1 failing, 1 asks, 1 healthy". */
export function summary(rows) {
  const words = new Map();
  for (const { health: one } of rows) words.set(one.word, (words.get(one.word) ?? 0) + 1);
  const parts = [...words].map(([word, number]) => `${number} ${word.toLowerCase()}`);
  return `${rows.length} ${rows.length === 1 ? "peer" : "peers"}: ${parts.join(", ")}`;
}
