/** Shared by the parts of an RP's page: the RP, the reader's rights, and small drawing functions. */

import { byId, pageData } from "../elements.js";

export { byId };

const data = pageData();

/** The RP and the reader's rights, as the page was rendered for them. */
export const page = {
  rp: data.rp,
  home: data.home,
  authority: data.authority, // the domain that created it, whose people "domain" means in its policy
  domain: data.domain,
  ack: data.ack,
  source: data.source,
  recent: data.recent,
  api: `/api/v1/rps/${data.rp}`,
  ratesUrl: data.ratesUrl,
  pastUrl: data.pastUrl,
  eventsUrl: data.eventsUrl,
  exportUrl: data.exportUrl,
  eventUrl: data.eventUrl,
  sealsUrl: data.sealsUrl,
  listUrl: data.listUrl,
  version: Number(data.version),
  isReplica: data.home !== data.domain,
  mayWatch: "watch" in data, // reads ID.admin
  mayAdminister: "administer" in data,
  mayChange: "change" in data, // administers, and this is its home
  mayOversee: "oversee" in data,
  mayOperate: "operate" in data,
};

/** @param {HTMLElement | null} element */
export function setText(element, text) {
  if (element && element.textContent !== String(text)) element.textContent = String(text);
}

/** A number with its unit set smaller. @param {HTMLElement} element @param {{value: string, unit: string}} quantity */
export function setNumber(element, { value, unit }) {
  const text = `${value}\u202f${unit}`;
  if (element.dataset.text === text) return;
  element.dataset.text = text;
  const small = document.createElement("span");
  small.className = "unit";
  small.textContent = unit;
  element.replaceChildren(value, ...(unit ? [small] : []));
}

/** Call `start` when the panel of a tab is shown, each time. @param {string} panel its id @param {() => void} start */
export function whenShown(panel, start) {
  byId(panel)?.addEventListener("shown", start);
}

/**
 * Run `work` while the panel of a tab is visible: when it is shown, and again `everyMs` after each run. Returns a
 * function that runs it soon, for changes; frequent calls run it once in `soonMs`.
 * @param {string} panel its id
 * @param {() => Promise<void>} work it shows by itself what went wrong
 */
export function whileShown(panel, work, { everyMs, soonMs = 700 }) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let due = Infinity;
  let busy = false;
  const seen = () => !byId(panel).hidden && !document.hidden;
  const at = (ms) => {
    const when = performance.now() + ms;
    if (when >= due && timer !== undefined) return;
    clearTimeout(timer);
    due = when;
    timer = setTimeout(run, ms);
  };
  const run = async () => {
    timer = undefined;
    due = Infinity;
    if (!seen()) return;
    if (busy) {
      at(soonMs);
      return;
    }
    busy = true;
    try {
      await work();
    } finally {
      busy = false;
      at(everyMs);
    }
  };
  byId(panel).addEventListener("shown", () => at(0));
  document.addEventListener("visibilitychange", () => seen() && at(0));
  return () => seen() && at(soonMs);
}
