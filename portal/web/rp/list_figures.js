/** Size, readers, lag and alarms of the rows of the list: fetched for the rows of the shown page only. */

import { bytes, count, plural } from "../format.js";
import { SessionEnded, getJson } from "../requests.js";

const EVERY_MS = 10_000;

/**
 * @typedef {{events: number, bytes: number, readers: number | null, subscriptions: number | null, behind: number | null,
 *   lost: number | null, alarms: number | null, critical: number | null}} Figures null: not for this reader
 */

export class ListFigures {
  #url;
  #rows;
  /** @type {Record<string, Figures>} */
  #known = {};

  /** @param {string} url answers {id: Figures} to ?ids= @param {{each: () => [string, HTMLElement][], ids: () => string[]}} rows */
  constructor(url, rows) {
    this.#url = url;
    this.#rows = rows;
    void this.#look();
    setInterval(() => document.hidden || void this.#look(), EVERY_MS);
    document.addEventListener("visibilitychange", () => document.hidden || void this.#look());
  }

  /** The figures of an RP; undefined before they have come. @param {string} rp */
  of(rp) {
    return this.#known[rp];
  }

  /** The figures of other RPs than those shown, a hundred at most. @param {string[]} ids @returns {Promise<Record<string, Figures>>} */
  ask(ids) {
    return getJson(`${this.#url}?ids=${ids.join(",")}`);
  }

  /** Rows have come: those without figures are asked about. */
  rowsChanged() {
    this.#draw();
    if (this.#rows.ids().some((rp) => !(rp in this.#known))) void this.#look();
  }

  async #look() {
    const ids = this.#rows.ids();
    if (ids.length === 0) return;
    try {
      this.#known = await this.ask(ids);
    } catch (error) {
      if (!(error instanceof SessionEnded)) return; // the connection says it; the rows are marked as old
    }
    this.#draw();
  }

  #draw() {
    for (const [rp, row] of this.#rows.each()) {
      if (this.#known[rp]) show(row, this.#known[rp]);
    }
  }
}

/** @param {HTMLElement} row @param {Figures} figures */
function show(row, { events, bytes: size, readers, subscriptions, behind, lost, alarms, critical }) {
  set(row, "size", events ? `${bytes(size)} held` : "empty");
  if (readers === null) return;
  set(row, "readers", readers ? plural(readers, "reader") : "no readers");
  set(row, "behind", subscriptions ? String(count(behind)) : "–");
  set(row, "lost", lost ? `${count(lost)} lost` : subscriptions ? `of ${count(subscriptions)}` : "");
  row.querySelector("[data-lost]")?.classList.toggle("losing", Boolean(lost));
  mark(row, alarms ?? 0, critical ?? 0);
}

/** @param {HTMLElement} row @param {number} alarms @param {number} critical */
function mark(row, alarms, critical) {
  const box = row.querySelector("[data-alarms]");
  if (!(box instanceof HTMLElement)) return;
  const text = alarms ? plural(alarms, "alarm") : "";
  if (box.textContent?.trim() === text) return;
  box.replaceChildren();
  if (!text) return;
  const link = document.createElement("a");
  link.className = `badge ${critical ? "bad" : "warn"}`;
  link.href = `/alarms?${new URLSearchParams({ rp: row.dataset.rp ?? "" })}`;
  link.textContent = text;
  box.append(link, " ");
}

/** @param {HTMLElement} row @param {string} name @param {string} text */
function set(row, name, text) {
  const cell = row.querySelector(`[data-${name}]`);
  if (cell && cell.textContent !== (text || "\u00a0")) cell.textContent = text || "\u00a0";
}
