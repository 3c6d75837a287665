/** Words for reasons of overlay links, and for domains' capacity and zones. */

const MADE = {
  anchor: "Approved peer",
  chosen: "Chosen by this domain",
  accepted: "Chosen by the other domain",
  rotated: "Drawn anew in rotation",
};
const ENDED = {
  transport: "Could not be reached",
  silent: "No sign of life",
  evicted: "Ended by the other domain",
  leaving: "The other domain left",
  quarantine: "Ended for misbehaviour",
  rotated: "Replaced in rotation",
  stopped: "This domain was stopped",
};
const CAPACITIES = ["Small", "Medium", "Large", "Very large"];
export const NO_ZONE = "No zone stated";

/** @param {{up: boolean, reason: string}} link */
export function reasonOf({ up, reason }) {
  return (up ? MADE : ENDED)[reason] ?? reason;
}

/** @param {number} capacity class from 0 to 3 */
export function capacityOf(capacity) {
  return CAPACITIES[capacity] ?? `Class ${capacity}`;
}

/** @param {string} zone */
export function zoneOf(zone) {
  return zone || NO_ZONE;
}

/** The class of a link or a domain on the map and in lists. @param {import("../shapes.d.ts").OverlayLink | undefined} link */
export function levelOf(link) {
  if (!link?.up) return "none";
  if (link.anchor) return "anchor";
  return link.chosen ? "chosen" : "accepted";
}
