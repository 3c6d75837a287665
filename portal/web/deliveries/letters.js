/** Dead letters of an endpoint: events that were given up, and sending them, or any others, again. */

import { act } from "../acting.js";
import { ask, field } from "../dialog.js";
import { byId, need } from "../elements.js";
import { count, plural } from "../format.js";
import { getJson, request } from "../requests.js";
import { Table, html, nothing, render } from "../table.js";
import { toast } from "../toast.js";
import { offsets, reasonWords } from "./words.js";

const ROWS = 50;

/** @import { ViewOptions } from "./view.js" */

export class LetterTable {
  #options;
  #changed;
  #table;
  #cursor = "";

  /** @param {HTMLElement} box @param {ViewOptions} options @param {() => void} changed called after an action */
  constructor(box, options, changed) {
    this.#options = options;
    this.#changed = changed;
    this.#table = new Table(box, {
      caption: "Dead letters, oldest first",
      key: ({ id }) => id,
      columns: [
        { name: "Events", header: true, cell: events },
        { name: "Reason", width: "15rem", cell: reason },
        { name: "Given up", width: "9rem", cell: (row) => html`<time datetime=${row.created_at} data-age></time>` },
        ...(options.mayChange ? [{ name: "Actions", width: "7.5rem", cell: (row) => this.#replayable(row) }] : []),
      ],
      empty: html`<strong>No dead letters</strong><span>Events that are given up stand here, and can be sent again.</span>`,
    });
  }

  /** Ask for the page of them that is shown. */
  asked() {
    const cursor = this.#cursor ? `&cursor=${encodeURIComponent(this.#cursor)}` : "";
    return getJson(`${this.#options.api}/dead-letters?limit=${ROWS}${cursor}`);
  }

  /** @param {{items: any[], next: string | null}} page @param {any} endpoint */
  show(page, endpoint) {
    if (!page.items.length && this.#cursor) this.#turn("");
    this.#table.show(page.items);
    const box = byId("letters-actions");
    render(
      html`${this.#cursor ? html`<button type="button" class="button compact quiet" @click=${() => this.#turn("")}>First page</button>` : nothing}
        ${page.next ? html`<button type="button" class="button compact quiet" @click=${() => this.#turn(page.next)}>Next page</button>` : nothing}
        ${this.#options.mayChange ? html`<button type="button" class="button compact" @click=${() => this.#range(endpoint)}>Replay a range…</button>` : nothing}
        ${this.#options.mayChange && endpoint.dead_letters ? html`<button type="button" class="button compact" @click=${() => this.#all(endpoint)}>Replay all…</button>` : nothing}`,
      box,
    );
  }

  #turn(cursor) {
    this.#cursor = cursor;
    this.#changed();
  }

  #replay(body) {
    return request("POST", `${this.#options.api}/replay`, body);
  }

  #replayable(row) {
    if (row.replay) return html`<span class="muted small">waits to be sent</span>`;
    const replay = ({ currentTarget }) =>
      act(currentTarget, () => this.#replay({ dead_letters: [row.id] }), "The events are sent again.").then(
        this.#changed,
      );
    return html`<button type="button" class="button compact" @click=${replay}>Replay<span class="visually-hidden"> ${offsets(row)}</span></button>`;
  }

  async #all({ dead_letters: dead }) {
    const done = await ask({
      title: `Replay ${plural(dead, "dead letter")}?`,
      says: "Their events are sent again, one after the other, beside new events. Those that fail again stay here.",
      action: "Replay all",
      perform: () => this.#replay({}),
    });
    if (done === null) return;
    toast("The dead letters are sent again.");
    this.#changed();
  }

  async #range({ cursor }) {
    const [epoch, offset] = cursor.split(":");
    const says = document.createElement("div");
    const about = document.createElement("p");
    about.textContent = `Events of the history are sent again, whether they were delivered or not. Everything up to ${count(Number(offset))} was.`;
    const number = { type: "number", min: "1", step: "1", required: true };
    says.append(
      about,
      field("first", { label: "First offset", value: String(Math.max(1, Number(offset) - 9)), ...number }),
      field("last", { label: "Last offset", value: String(Math.max(1, Number(offset))), ...number }),
    );
    const read = (name) => Number(need(says, `[name=${name}]`, HTMLInputElement).value);
    const done = await ask({
      title: "Replay a range of events?",
      says,
      action: "Replay",
      perform: () => this.#replay({ after: `${epoch}:${read("first") - 1}`, until: `${epoch}:${read("last")}` }),
    });
    if (done === null) return;
    toast("The events are sent again.");
    this.#changed();
  }
}

function events(row) {
  return html`<strong class="number">${offsets(row)}</strong> <span class="rp-sub">${plural(row.last - row.first + 1, "event")} of epoch <span class="mono">${row.epoch}</span></span>`;
}

function reason(row) {
  return html`${reasonWords(row.reason)}${row.attempts ? html`<span class="rp-sub">after ${plural(row.attempts, "attempt")}</span>` : nothing}`;
}
