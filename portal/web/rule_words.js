/** Watch rules in words, as the pages of rendezvous points and of alarms show them. */

import { durationText } from "./durations.js";
import { plural } from "./format.js";
import { html, nothing } from "./table.js";

const KINDS = {
  lag: ({ events, seconds }) => [
    "Durable subscriptions are ",
    joined([
      events && `at most ${plural(events, "event")} behind`,
      seconds && `${events ? "" : "behind "}for at most ${durationText(seconds)}`,
    ]),
  ],
  loss: ({ within_s: within }) =>
    within
      ? `Durable subscriptions are not expected to lose events within ${durationText(within)}`
      : "Loss of events is not watched",
  backlog: ({ events, oldest_s: oldest, peer }) => [
    "For ",
    peer ? html`<strong>${peer}</strong>` : "each peer",
    " wait ",
    joined(
      [
        events && `at most ${plural(events, "event")}`,
        oldest && `${events ? "none" : "events"} longer than ${durationText(oldest)}`,
      ].map((one) => one && one.replace(/^events/, "no events")),
    ),
  ],
  lease_gap: ({ s }) =>
    `The leases of the rendezvous point and of its durable subscriptions have at least ${durationText(s)} left`,
  endpoint: ({ failing_s: most }) =>
    `No endpoint of a durable subscription fails for longer than ${durationText(most)}`,
  reliability: ({ missed_s: most }) =>
    most
      ? `The target reliability is not missed for longer than ${durationText(most)}`
      : "The target reliability is met",
  history_quota: ({ percent: most }) => `The histories reserve at most ${most} % of the domain's quota`,
  process_lag: ({ ms }) => `The event loop of each gateway is delayed by at most ${ms} ms`,
  silence: ({ s, source }) => [
    `An event arrives at least every ${durationText(s)}`,
    source ? html` from <code>${source}</code>` : nothing,
  ],
};

function joined(parts) {
  return parts.filter(Boolean).join(", and ");
}

/** The kind of a rule as it is stated. */
export function kindOf(rule) {
  return Object.keys(rule).find((name) => name !== "severity" && name !== "for_s") ?? "";
}

/** The kind as a label. */
export function ruleLabel(rule) {
  return kindOf(rule).replace("_", " ");
}

/** A rule as stated, in one sentence. */
export function ruleWords(rule) {
  const kind = kindOf(rule);
  return html`${KINDS[kind]?.(rule[kind]) ?? html`<code>${canonical(rule[kind])}</code>`}.
    <span class="muted small">Otherwise ${rule.severity === "critical" ? "a critical alarm" : "a warning"}${rule.for_s ? ` after ${durationText(rule.for_s)}` : ", at once"}.</span>`;
}

/** JSON with sorted members, by which settings are compared. */
export function canonical(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${key}:${canonical(value[key])}`)
    .join()}}`;
}
