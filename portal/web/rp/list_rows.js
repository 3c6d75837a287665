/**
 * Rows of the list as the domain changes. An event updates a visible row at once; the set and order of rows depend on the
 * search in the domain: the page is fetched again and its rows are adopted. While the pointer or the focus is among the
 * rows, none moves.
 */

import { findAll } from "../elements.js";
import { tellEnd } from "../domain_connection.js";
import { PacedPoll } from "../polling.js";
import { Refused, SessionEnded, Unanswered } from "../requests.js";

/** @import { RecentRpData } from "../shapes.d.ts" */

const AGAIN_MS = 5_000; // after one that was not answered
const NEW_MS = 3_000;

export class ListRows {
  #box;
  #onRows;
  /** @type {{askedAt: number, rows: HTMLElement} | null} */
  #held = null; // what was fetched while rows must not move
  #waiting = false; // for the tab to be seen
  #taken = new Map(); // RP -> its newest event and its arrival: rows requested before may not include it
  #paused = new PacedPoll(
    async () => ({ askedAt: performance.now(), rows: await fetched() }),
    (answer) => {
      this.#held = answer;
      this.#takeOver();
    },
    (error) => (error instanceof SessionEnded ? tellEnd(error) : setTimeout(() => this.look(), AGAIN_MS)),
  );

  /**
   * @param {HTMLElement} box holds the table, or the words that there is none, and the links to other pages
   * @param {() => void} onRows called when other rows have come
   */
  constructor(box, onRows) {
    this.#box = box;
    this.#onRows = onRows;
    for (const left of ["pointerleave", "focusout"]) {
      box.addEventListener(left, () => this.#held && setTimeout(() => this.#takeOver(), 0));
    }
    document.addEventListener("visibilitychange", () => this.#waiting && this.look());
  }

  /** Of all rows. @returns {[id: string, row: HTMLElement][]} */
  each() {
    return findAll(this.#box, "tr[data-rp]").map((row) => [row.dataset.rp ?? "", row]);
  }

  ids() {
    return this.each().map(([rp]) => rp);
  }

  /** @param {boolean} stale whether numbers and rows are as old as the connection */
  stale(stale) {
    this.#box.classList.toggle("stale", stale);
  }

  /** @param {string} rp @param {string} expiresAt */
  lease(rp, expiresAt) {
    const time = this.#row(rp)?.querySelector("[data-countdown]");
    if (time && time.dateTime < expiresAt) time.dateTime = expiresAt;
  }

  /** An RP was created, changed, deleted, paused or resumed. @param {{type: string, data: {rp: Pick<RecentRpData, "id" | "title" | "paused">}}} event */
  take({ type, data: { rp } }) {
    const row = this.#row(rp.id);
    const gone = type === "io.herald.rp.deleted";
    if (row) {
      this.#taken.set(rp.id, { rp, gone, at: performance.now() });
      this.#say(row, rp, gone);
    }
    if (row || !gone) this.look();
  }

  /** Ask the domain soon which rows there are. */
  look() {
    this.#waiting = document.hidden;
    if (!this.#waiting) this.#paused.soon();
  }

  #row(rp) {
    return this.#box.querySelector(`tr[data-rp="${CSS.escape(rp)}"]`);
  }

  /** Update name, state and existence of a row at once, before the fetch: most changes concern these. */
  #say(row, rp, gone) {
    row.classList.toggle("gone", gone);
    const link = row.querySelector(".rp-link");
    const label = rp.name || rp.title || rp.id;
    if (link.textContent !== label) {
      link.replaceChildren(...label.split(/(?<=\/)/).flatMap((part) => [part, document.createElement("wbr")]));
    }
    const badge = row.querySelector("[data-paused]");
    if (rp.paused && !badge) {
      const made = document.createElement("span");
      made.className = "badge warn";
      made.dataset.paused = "";
      made.textContent = "paused";
      row.querySelector(".rp-sub").prepend(made, " ");
    } else if (!rp.paused) {
      badge?.remove();
    }
  }

  #takeOver() {
    if (!this.#held) return;
    const bar = this.#box.querySelector(".bulk");
    const active = document.activeElement;
    const focused = this.#box.contains(active) && !bar?.contains(active); // in the rows, their heads, or the links to other pages
    if (focused || this.#box.querySelector("tbody")?.matches(":hover")) return; // when the reader has left
    const { askedAt, rows } = this.#held;
    this.#held = null;
    const before = new Map(this.each());
    for (const row of findAll(rows, "tr[data-rp]")) {
      const known = before.get(row.dataset.rp ?? "");
      if (known) this.#keep(row, known);
      else if (before.size) this.#mark(row);
    }
    if (bar) rows.querySelector(".bulk")?.replaceWith(bar);
    this.#box.replaceChildren(...[...rows.childNodes].map((node) => document.adoptNode(node)));
    if (bar?.isConnected && bar.contains(active) && active instanceof HTMLElement) active.focus();
    for (const [id, { rp, gone, at }] of this.#taken) {
      const row = this.#row(id);
      if (row && at >= askedAt) this.#say(row, rp, gone);
      else this.#taken.delete(id); // the rows say it themselves
    }
    this.#onRows();
  }

  /** The moving cells of a row stay what they are: its line and its numbers. */
  #keep(row, known) {
    for (const cell of [".col-rate", ".col-out", ".col-behind", "[data-alarms]", ".pick"]) {
      const moving = known.querySelector(cell);
      if (moving) row.querySelector(cell)?.replaceWith(moving);
    }
  }

  #mark(row) {
    row.classList.add("new");
    setTimeout(() => row.classList.remove("new"), NEW_MS);
  }
}

/** The rows of this address as they are now. */
async function fetched() {
  let response;
  let text;
  try {
    response = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual" });
    text = await response.text();
  } catch {
    throw new Unanswered();
  }
  if (response.type === "opaqueredirect") throw new SessionEnded();
  if (!response.ok) throw new Refused(response.status, {});
  return new DOMParser().parseFromString(text, "text/html").getElementById("rps");
}
