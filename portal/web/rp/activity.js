/** The activity log as data: kinds of administrative events, and reports of retention folded into one. Pure. */

/** @import { AdminEvent } from "../types.d.ts" */

const TRIMMED = "io.herald.history.trimmed";
const READERS = "io.herald.sessions.changed";

/** What the filter of the log offers, by the value of its option. @type {Record<string, (event: AdminEvent) => boolean>} */
export const KINDS = {
  most: ({ type }) => type !== READERS,
  all: () => true,
  changes: begins("rp.", "watch.", "intake.", "epoch.", "domain."),
  refusals: begins("operations."),
  leases: begins("lease."),
  subscriptions: begins("subscription.", "endpoint.", "webhook."),
  replicas: begins("replica.", "peer.", "origin.", "misbehaviour.", "placement.", "routes.", "reliability."),
  alarms: begins("alarm."),
  history: begins("history."),
  readers: begins("sessions.", "readers."),
};

/** @param {string[]} prefixes @returns {(event: {type: string}) => boolean} */
function begins(...prefixes) {
  return ({ type }) => prefixes.some((prefix) => type.startsWith(`io.herald.${prefix}`));
}

/** Whether an event reports what the history's bounds removed: by hand it is an act of somebody. @param {AdminEvent} event */
export function isRetention({ type, data }) {
  return type === TRIMMED && !data.by;
}

/**
 * @typedef {{event: AdminEvent, retention: AdminEvent[], removed: number}} Entry an event, or if `retention` is not empty the
 *   newest of these reports, which removed so many events together
 */

/**
 * The entries of a list, with all reports of retention as one, where the newest of them was.
 * @param {AdminEvent[]} events the newest first
 * @returns {Entry[]}
 */
export function folded(events) {
  const reports = events.filter(isRetention);
  const retention = reports.length > 1 ? reports : [];
  const removed = retention.reduce((sum, { data }) => sum + (data.removed ?? 0), 0);
  const shown = events.filter((event) => event === retention[0] || !retention.includes(event));
  return shown.map((event) =>
    event === retention[0] ? { event, retention, removed } : { event, retention: [], removed: 0 },
  );
}
