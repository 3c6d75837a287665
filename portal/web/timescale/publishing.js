/** Publishes a test event and shows the way it takes (way.js). */

import { html, nothing, render } from "lit-html";
import { Problem } from "../../../client/js/herald.js";
import { duration } from "../format.js";
import { domainConnection } from "../domain_connection.js";
import { Refused, getJson } from "../requests.js";
import { watch } from "./way.js";

/** @import { LaneReader } from "./reader.js" */

const SIGNS = { done: "good", wait: "", unknown: "", late: "warn" };

export class Publishing {
  #form;
  #answer;
  #url;
  #page;
  #readers = [];
  #turn = 0; // of publishing: what an older one still learns is not shown
  /** @type {{id: string, done: () => void} | null} */
  #seen = null; // resolves when this page has read the event: {id, done}
  #published;

  /**
   * @param {HTMLFormElement} form
   * @param {{url: string, domain: string, source: string, oversees: boolean, onPublished: (reader: LaneReader, offset: number) => void}} page
   *   `url`: of one event whole
   */
  constructor(form, page) {
    this.#form = form;
    this.#answer = form.querySelector("[data-answer]");
    this.#url = page.url;
    this.#page = page;
    this.#published = page.onPublished;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#publish();
    });
  }

  /** Offer these lanes' RPs. */
  offer(readers) {
    this.#readers = readers.filter(({ mayPublish, state }) => mayPublish && state === "ready");
    const select = this.#form.elements.rp;
    const chosen = select.value;
    render(
      this.#readers.map(({ rp, label }) => html`<option value=${rp}>${label}</option>`),
      select,
    );
    if (this.#readers.some(({ rp }) => rp === chosen)) select.value = chosen;
    this.#form.hidden = this.#readers.length === 0;
  }

  /** Handle a live event on this page. */
  arrived(event) {
    if (this.#seen && event.id === this.#seen.id) this.#seen.done();
  }

  async #publish() {
    const { rp, type, data, kind } = this.#form.elements;
    const reader = this.#readers.find((one) => one.rp === rp.value);
    const parsed = dataOf(data.value, kind.value);
    if (parsed.error) {
      this.#say(html`<p class="error-list" role="alert">${parsed.error}</p>`);
      data.focus();
      return;
    }
    const turn = ++this.#turn;
    const button = this.#form.querySelector("button:not([type=button])");
    const id = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
    const begun = performance.now();
    /** @type {{stored: any, read: any, others: any[]}} */
    const steps = {
      stored: { name: "Stored here", state: "wait", ms: null, says: "waiting for the domain" },
      read: null,
      others: [],
    };
    const show = () => turn === this.#turn && this.#say(stepsOf([steps.stored, steps.read, ...steps.others]));
    const now = () => performance.now() - begun;
    this.#seen = {
      id,
      done: () => {
        steps.read = { name: "This page", state: "done", ms: now(), says: "received live" };
        show();
      },
    };
    show();
    button.setAttribute("aria-busy", "true");
    try {
      const event = {
        specversion: "1.0",
        id,
        source: this.#page.source,
        type: type.value,
        time: new Date().toISOString(),
        ...parsed.members,
      };
      const answer = await domainConnection().publish(reader.rp, event);
      steps.stored = { name: "Stored here", state: "done", ms: now(), says: `as #${answer.offset}` };
      show();
      this.#published(reader, answer.offset);
      button.removeAttribute("aria-busy");
      await this.#follow(reader, answer, { steps, show, now, turn });
    } catch (error) {
      if (turn === this.#turn) this.#say(html`<p class="error-list" role="alert">${error.message}</p>`);
      if (!(
        error instanceof Problem ||
        error instanceof Refused ||
        ["Unanswered", "SessionEnded", "Closed", "ClientClosed"].includes(error.name)
      )) {
        throw error;
      }
    } finally {
      button.removeAttribute("aria-busy");
    }
  }

  async #follow(reader, { epoch, offset }, { steps, show, now, turn }) {
    await watch({
      look: () => getJson(`${this.#url}?${new URLSearchParams({ rp: reader.rp, offset: String(offset), epoch })}`),
      readers: () => this.#sessions(reader.rp),
      domain: this.#page.domain,
      onSteps: (others) => {
        steps.others = others;
        show();
      },
      now,
      wait: (ms) => new Promise((done) => setTimeout(done, ms)),
      stopped: () => turn !== this.#turn,
    });
  }

  async #sessions(rp) {
    if (!this.#page.oversees) return null;
    const { items, matching } = await getJson(`/api/v1/sessions?${new URLSearchParams({ rp, sort: "lag" })}`);
    return { sessions: matching ?? items.length, behind: items.filter(({ lag }) => lag > 0).length };
  }

  #say(content) {
    render(content, this.#answer);
  }
}

function stepsOf(steps) {
  return html`<ol class="ts-steps" aria-label="Route of the event">${steps.filter(Boolean).map(
    ({ name, state, ms, says }) => html`<li>
    <span class="badge ${SIGNS[state]}">${name}</span> ${says}${ms === null ? nothing : html` <span class="muted small number">after ${duration(ms)}</span>`}</li>`,
  )}</ol>`;
}

function dataOf(text, kind) {
  if (kind === "text") return { members: { datacontenttype: "text/plain", data: text } };
  if (text.trim() === "") return { members: {} };
  try {
    return { members: { datacontenttype: "application/json", data: JSON.parse(text) } };
  } catch (error) {
    return { error: `The data is not JSON: ${error.message}.` };
  }
}
