/**
 * The domain's clock, more precise than in times.js: instants that the domain reports as now, or as just stored, are not
 * in the future. So the line of the present is never behind an event that is drawn.
 */

import { serverNow } from "../times.js";

let aheadMs = 0; // of serverNow()

/** Milliseconds since 1970, by the domain's clock. */
export function now() {
  return serverNow() + aheadMs;
}

/** Note an instant that the domain has reported as past. @param {number} at */
export function hasCome(at) {
  aheadMs = Math.max(aheadMs, at - serverNow());
}
