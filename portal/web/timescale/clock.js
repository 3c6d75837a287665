/**
 * The domain's clock, closer than times.js has it: what the domain says that it is now, or stored just now, is not in the
 * future. So the line of the present is never behind an event that is drawn.
 */

import { serverNow } from "../times.js";

let aheadMs = 0; // of serverNow()

/** Milliseconds since 1970, by the domain's clock. */
export function now() {
  return serverNow() + aheadMs;
}

/** The domain said that this instant has come. @param {number} at */
export function hasCome(at) {
  aheadMs = Math.max(aheadMs, at - serverNow());
}
