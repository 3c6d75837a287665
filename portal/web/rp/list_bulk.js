/**
 * Acts on the selected rows of the list: renew, pause, resume, delete. The domain checks each by itself. When all of a page are
 * selected and there are more, those of the other pages can be selected with them.
 */

import { act } from "../acting.js";
import { everything, performOnEach, failureWords, namesWords } from "../bulk.js";
import { ask } from "../dialog.js";
import { tellEnd } from "../domain_connection.js";
import { durationField, typedNumber } from "../durations.js";
import { find, findAll, need } from "../elements.js";
import { bytes, count, plural } from "../format.js";
import { SessionEnded, getJson, request } from "../requests.js";
import { html, render } from "../table.js";
import { toast } from "../toast.js";

/** @import { Figures } from "./list_figures.js" */

const DAY_S = 86_400;
const MATCHING_MAX = 1_000; // bound: RPs that are selected at once; the bar says that there are more
const PAGE = 100;
const REASON = { label: "Reason", hint: "Recorded in the audit." };

/** @typedef {{id: string, name: string, figures: Figures | undefined}} Picked */

export class ListBulk {
  #box;
  #figures;
  #onDone;
  /** @type {Map<string, Picked> | null} */
  #matching = null; // those of all pages, by id; null: those of this page that are checked
  #whole = true; // whether #matching has all that match

  /**
   * @param {HTMLElement} box the rows and the bar above them, which are exchanged as the list changes
   * @param {{figures: import("./list_figures.js").ListFigures, onDone: () => void}} parts
   */
  constructor(box, { figures, onDone }) {
    this.#box = box;
    this.#figures = figures;
    this.#onDone = onDone;
    box.addEventListener("change", ({ target }) => {
      if (!(target instanceof HTMLInputElement) || !target.matches("[data-pick], [data-pick-all]")) return;
      this.#matching = null;
      if ("pickAll" in target.dataset) for (const one of this.#boxes()) one.checked = target.checked;
      this.draw();
    });
    box.addEventListener("click", ({ target }) => {
      const button = target instanceof Element && target.closest("[data-bulk]");
      if (button instanceof HTMLElement) void this.#act(button.dataset.bulk ?? "");
      const matching = target instanceof Element && target.closest("[data-pick-matching]");
      if (matching instanceof HTMLElement) void act(matching, () => this.#pickMatching(), "");
    });
  }

  /** Show how many are selected, and what may be done with them. */
  draw() {
    const all = find(this.#box, "[data-pick-all]", HTMLInputElement);
    if (!all) return;
    const boxes = this.#boxes();
    const matching = this.#matching;
    if (matching) for (const one of boxes) one.checked = matching.has(one.dataset.pick ?? "");
    const shown = boxes.filter(({ checked }) => checked).length;
    const picked = matching ? matching.size : shown;
    all.checked = shown > 0 && shown === boxes.length;
    all.indeterminate = shown > 0 && shown < boxes.length;
    need(this.#box, "#picked", HTMLElement).textContent = matching
      ? `${count(picked)} selected, ${this.#whole ? "on all pages" : `the first ${count(MATCHING_MAX)} that match`}`
      : picked
        ? `${count(picked)} selected`
        : "Select all on this page";
    const more = need(this.#box, "[data-pick-matching]", HTMLElement);
    more.hidden = Boolean(matching) || !all.checked || !this.#box.querySelector(".pager a");
    need(this.#box, "#bulk-actions", HTMLElement).hidden = picked === 0;
  }

  /** @returns {HTMLInputElement[]} */
  #boxes() {
    return /** @type {HTMLInputElement[]} */ (findAll(this.#box, "[data-pick]"));
  }

  /** Select what matches on all pages, with the figures that a deletion states. */
  async #pickMatching() {
    const address = new URLSearchParams(location.search);
    const query = new URLSearchParams({ limit: String(PAGE) });
    for (const name of ["q", "prefix"]) if (address.get(name)) query.set(name, address.get(name) ?? "");
    const { items, whole } = await everything((cursor) => {
      if (cursor) query.set("cursor", cursor);
      return getJson(`/api/v1/rps?${query}`);
    }, MATCHING_MAX);
    const found = new Map(
      items.map(({ id, name, title }) => [id, { id, name: name || title || id, figures: undefined }]),
    );
    const ids = [...found.keys()];
    for (let first = 0; first < ids.length; first += PAGE) {
      const figures = await this.#figures.ask(ids.slice(first, first + PAGE));
      for (const [id, one] of found) if (figures[id]) one.figures = figures[id];
    }
    this.#matching = found;
    this.#whole = whole;
    this.draw();
    find(this.#box, "[data-pick-all]", HTMLInputElement)?.focus();
  }

  /** @returns {Picked[]} */
  #picked() {
    if (this.#matching) return [...this.#matching.values()];
    return this.#boxes()
      .filter(({ checked }) => checked)
      .map((box) => {
        const id = box.dataset.pick ?? "";
        const name = box.closest("tr")?.querySelector(".rp-link")?.textContent?.trim() ?? id;
        return { id, name, figures: this.#figures.of(id) };
      });
  }

  /** @param {string} kind of QUESTIONS */
  async #act(kind) {
    const picked = this.#picked();
    if (picked.length === 0) return;
    const asked = QUESTIONS[kind](picked);
    const says = document.createElement("div");
    says.className = "bulk-says";
    render(html`${asked.says}<p class="muted small" role="status" data-progress></p>`, says);
    if (asked.field) says.append(asked.field);
    const done = await ask({
      ...asked.question,
      says,
      perform: async (reason) => {
        const progress = need(says, "[data-progress]", HTMLElement);
        const perform = asked.perform(reason, says);
        const found = await performOnEach(picked, perform, (number) => {
          progress.textContent = picked.length > 1 ? `${count(number)} of ${count(picked.length)}` : "";
        }).catch((error) => {
          if (error instanceof SessionEnded) tellEnd(error);
          throw error;
        });
        this.#unpick(found.done.map(({ id }) => id));
        this.#onDone();
        if (found.failed.length) {
          const failed = found.failed.map(({ item, message }) => ({ name: item.name, message }));
          throw new Error(failureWords(failed, picked.length));
        }
      },
    });
    if (done !== null) toast(`${plural(picked.length, "rendezvous point")} ${asked.done}.`);
    find(this.#box, "[data-pick-all]", HTMLInputElement)?.focus();
  }

  /** @param {string[]} ids */
  #unpick(ids) {
    for (const id of ids) this.#matching?.delete(id);
    if (this.#matching?.size === 0) this.#matching = null;
    for (const box of this.#boxes()) if (ids.includes(box.dataset.pick ?? "")) box.checked = false;
    this.draw();
  }
}

/** @param {Picked[]} picked */
function titled(verb, picked) {
  return picked.length === 1 ? `${verb} ${picked[0].name}?` : `${verb} ${count(picked.length)} rendezvous points?`;
}

/** @param {Picked[]} picked */
function named(picked) {
  return picked.length === 1 ? "" : html`<p class="small">${namesWords(picked.map(({ name }) => name))}</p>`;
}

/** @param {Picked[]} picked @param {"events" | "bytes" | "subscriptions" | "readers"} figure */
function total(picked, figure) {
  return picked.reduce((sum, { figures }) => sum + (figures?.[figure] ?? 0), 0);
}

/**
 * @typedef {{question: any, says: unknown, field?: HTMLElement, done: string,
 *   perform: (reason: string, says: HTMLElement) => (one: Picked) => Promise<unknown>}} Question
 */

/** @type {Record<string, (picked: Picked[]) => Question>} */
const QUESTIONS = {
  renew: (picked) => ({
    question: { title: titled("Renew the lease of", picked), action: "Renew" },
    says: html`${named(picked)}<p>The new lease counts from now and never ends earlier than the present one.</p>`,
    field: durationField("lease", { label: "New lease, from now", seconds: DAY_S }),
    done: "renewed",
    perform: (_, says) => {
      const seconds = typedNumber(says, "lease");
      return ({ id }) => request("POST", `/api/v1/rps/${id}/renew`, seconds === undefined ? {} : { lease_s: seconds });
    },
  }),
  pause: (picked) => ({
    question: {
      title: titled("Pause publishing to", picked),
      action: "Pause",
      danger: true,
      reason: { label: "Reason", hint: "Sent to publishers with the rejection, and recorded in the audit." },
    },
    says: html`${named(picked)}<p>Events published there are rejected until publishing is resumed. Readers stay connected.</p>`,
    done: "paused",
    perform:
      (reason) =>
      ({ id }) =>
        request("POST", `/api/v1/rps/${id}/pause`, { reason }),
  }),
  resume: (picked) => ({
    question: { title: titled("Resume publishing to", picked), action: "Resume" },
    says: named(picked),
    done: "resumed",
    perform:
      () =>
      ({ id }) =>
        request("POST", `/api/v1/rps/${id}/resume`, {}),
  }),
  delete: (picked) => {
    const text = picked.length === 1 ? picked[0].name : String(picked.length);
    const label =
      picked.length === 1 ? `Type ${text} to confirm` : `Type ${text}, the number of rendezvous points, to confirm`;
    return {
      question: {
        title: titled("Delete", picked),
        action: "Delete",
        danger: true,
        reason: REASON,
        type: { label, text },
      },
      says: html`${named(picked)}
        <p>Deleted permanently, together with:</p>
        <ul class="consequences">
          <li>${plural(total(picked, "events"), "event")} held at present, ${bytes(total(picked, "bytes"))};</li>
          <li>${plural(total(picked, "subscriptions"), "durable subscription")}, with what their readers have not received;</li>
          <li>the live subscriptions of readers, ${count(total(picked, "readers"))} at present, who are notified of the deletion.</li>
        </ul>`,
      done: "deleted",
      perform:
        (reason) =>
        ({ id }) =>
          request("DELETE", `/api/v1/rps/${id}${reason ? `?${new URLSearchParams({ reason })}` : ""}`),
    };
  },
};
