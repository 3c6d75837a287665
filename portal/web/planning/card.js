/**
 * A part of a page that one request fills: loading, filled, or broken with the domain's sentence. Parts fail one by one.
 *
 *     const drain = new Part("drain", "/api/v1/drain", (answer, body) => render(html`…`, body));
 *     drain.refresh();
 *
 * The element is a card with [data-body], which is drawn into. A part that was filled keeps its content when a later
 * request fails, and is marked as stale; `onStale` is told the sentence, or "" once it is current again.
 */

import { byId, need } from "../elements.js";
import { tellEnd } from "../domain_connection.js";
import { PacedPoll } from "../polling.js";
import { Refused, SessionEnded, getJson } from "../requests.js";
import { html, render } from "../table.js";
import { fillTimes } from "../times.js";

export class Part {
  /** The last answer; null before the first. @type {any} */
  answer = null;
  #element;
  #body;
  #draw;
  #onStale;
  #broken = document.createElement("div");
  #emptied = false;
  #poll;

  /**
   * @param {string} id
   * @param {string | (() => Promise<any>)} asked an address, or what asks for several
   * @param {(answer: any, body: HTMLElement) => void} draw
   * @param {(why: string, part: Part) => void} [onStale]
   */
  constructor(id, asked, draw, onStale = () => {}) {
    this.#element = byId(id);
    this.#body = need(this.#element, "[data-body]", HTMLElement);
    this.#draw = draw;
    this.#onStale = onStale;
    const ask = typeof asked === "string" ? () => getJson(asked) : asked;
    this.#poll = new PacedPoll(
      ask,
      (answer) => this.#show(answer),
      (error) => this.#failed(error),
    );
    void this.#poll.now();
  }

  /** Look again, soon. @param {number} [changes] for the sake of so many */
  refresh(changes = 1) {
    this.#poll.soon(changes);
  }

  /** Draw what is known anew: names have arrived, or a choice of the reader. */
  redraw() {
    if (this.answer !== null) this.#show(this.answer);
  }

  #show(answer) {
    this.answer = answer;
    this.#settled();
    this.#broken.remove();
    this.#body.hidden = false;
    this.#element.classList.remove("stale");
    this.#onStale("", this);
    this.#draw(answer, this.#body);
    fillTimes(this.#body);
  }

  #failed(error) {
    if (error instanceof SessionEnded) tellEnd(error);
    if (this.answer !== null) {
      this.#element.classList.add("stale");
      this.#onStale(error.message, this);
      return;
    }
    this.#settled();
    this.#body.hidden = true;
    this.#element.append(this.#broken);
    render(
      html`<div class="broken"><strong>${error instanceof Refused ? "Request refused" : "No response"}</strong><span>${error.message}</span>
        <button type="button" class="button compact" @click=${() => this.refresh()}>Try again</button></div>`,
      this.#broken,
    );
  }

  #settled() {
    if (!this.#emptied) this.#body.replaceChildren(); // what stood there while loading
    this.#emptied = true;
    this.#element.classList.remove("loading");
    this.#element.removeAttribute("aria-busy");
  }
}
