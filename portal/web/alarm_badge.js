/**
 * How many alarms are open and not muted: in the navigation and in the title of the tab, on every page of who oversees the domain.
 *
 * Pages with the domain's live state show each change at once (live.js); the others ask from time to time, also while the tab is hidden:
 * its title is what an operator sees then.
 */

import { plural } from "./format.js";
import { SessionEnded, getJson } from "./requests.js";
import { serverNow } from "./times.js";

const EVERY_MS = 15_000;
const URL_ALARMS = "/console/alarms";
/** @type {Record<string, any> | null} */
let alarms = null; // of the live state, where the page has it

/** Whether nobody is to be notified of an alarm now. @param {{muted?: {until: string} | null}} alarm */
export function isMuted({ muted }) {
  return Boolean(muted) && Date.parse(muted?.until ?? "") > serverNow();
}

/** Count the alarms of the live state. @param {Record<string, any>} now */
export function showAlarms(now) {
  if (now === alarms) return;
  alarms = now;
  count();
}

/** Keep the badge of this page current. */
export function startBadge() {
  const badge = document.getElementById("alarm-count");
  if (!badge) return; // who sees no alarms
  show(Number(badge.dataset.open), Number(badge.dataset.critical));
  setTimeout(ask, EVERY_MS);
}

async function ask() {
  try {
    if (alarms) {
      count(); // mutes end by themselves
    } else {
      const { open, critical } = await getJson(URL_ALARMS);
      show(open, critical);
    }
  } catch (error) {
    if (error instanceof SessionEnded) return;
  }
  setTimeout(ask, EVERY_MS);
}

function count() {
  const open = Object.values(alarms ?? {}).filter((alarm) => !isMuted(alarm));
  show(open.length, open.filter(({ severity }) => severity === "critical").length);
}

function show(open, critical) {
  const badge = globalThis.document?.getElementById("alarm-count");
  if (!badge) return;
  badge.hidden = open === 0;
  badge.textContent = open > 99 ? "99+" : String(open);
  badge.classList.toggle("bad", critical > 0);
  badge.title = `${plural(open, "alarm")}${critical ? `, ${critical} critical` : ""}`;
  const plain = document.title.replace(/^\(\d+\) /, "");
  const title = open ? `(${open}) ${plain}` : plain;
  if (document.title !== title) document.title = title;
}
