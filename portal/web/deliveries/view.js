/**
 * One endpoint, as the console and the page of a link show it: numbers, attempts, dead letters, what can be done.
 *
 *     const view = new EndpointView({ api: url, subscriptionUrl: url, mayChange: true });
 *     view.refresh();           // something changed
 *
 * `api` is followed by /endpoint, /attempts, /dead-letters, /replay and so on; the markup is templates/portal/endpoint/view.html.
 * What is shown is asked for every LOOKED_MS while the page is visible, because no event reports attempts.
 */

import { tellEnd } from "../domain_connection.js";
import { byId } from "../elements.js";
import { duration, percent, plural } from "../format.js";
import { PacedPoll } from "../polling.js";
import { Refused, SessionEnded, getJson } from "../requests.js";
import { html, nothing, render } from "../table.js";
import { fillTimes } from "../times.js";
import { drawActions } from "./actions.js";
import { AttemptTable } from "./attempts.js";
import { LetterTable } from "./letters.js";
import { stateOf, whyOf } from "./words.js";

const LOOKED_MS = 2_000;

/** @typedef {{api: string, subscriptionUrl: string, mayChange: boolean, mayLink?: boolean, onEnd?: (error: Error) => void}} ViewOptions */

export class EndpointView {
  #options;
  #attempts = new AttemptTable(byId("attempts"));
  #letters;
  #shown = false;
  #timer;
  #poll = new PacedPoll(
    () => this.#ask(),
    (answer) => this.#show(answer),
    (error) => this.#failed(error),
  );

  /** @param {ViewOptions} options `onEnd`: the session is over, or there is no such endpoint any more */
  constructor(options) {
    this.#options = { mayLink: false, onEnd: tellEnd, ...options };
    this.#letters = new LetterTable(byId("letters"), options, () => this.refresh());
    this.#timer = setInterval(() => document.hidden || this.refresh(), LOOKED_MS);
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
    void this.#poll.now();
  }

  /** Look again, soon. */
  refresh() {
    this.#poll.soon();
  }

  /** Say that what is shown is old, or that it no longer is ("" for that). @param {string} why */
  old(why) {
    if (why && !this.#shown) return; // nothing is shown that could be old
    const away = byId("endpoint-away");
    away.hidden = !why;
    away.textContent = why;
    byId("endpoint").classList.toggle("stale", Boolean(why));
  }

  async #ask() {
    const { api, subscriptionUrl } = this.#options;
    const [subscription, endpoint, attempts, letters] = await Promise.all([
      getJson(subscriptionUrl),
      getJson(`${api}/endpoint`),
      getJson(`${api}/attempts`),
      this.#letters.asked(),
    ]);
    return { subscription, endpoint, attempts: attempts.items, letters };
  }

  #show({ subscription, endpoint, attempts, letters }) {
    this.#settled();
    this.old("");
    byId("endpoint-title").textContent = endpoint.url;
    draw(byId("endpoint-tiles"), tiles(endpoint));
    draw(byId("endpoint-facts"), facts(subscription, endpoint));
    drawActions(endpoint, subscription.deliver.mode, this.#options, () => this.refresh());
    this.#attempts.show(attempts, subscription);
    this.#letters.show(letters, endpoint);
  }

  #failed(error) {
    const over = error instanceof SessionEnded || (error instanceof Refused && [403, 404, 410].includes(error.status));
    if (over) {
      clearInterval(this.#timer);
      this.#options.onEnd(error);
    }
    if (this.#shown) {
      this.old(`${error.message} The data shown is out of date.`);
      return;
    }
    const again = () => void this.#poll.now();
    draw(
      byId("endpoint-tiles"),
      html`<div class="card"><div class="broken"><strong>The endpoint could not be loaded</strong><span>${error.message}</span>
        ${over ? nothing : html`<button type="button" class="button compact" @click=${again}>Try again</button>`}</div></div>`,
    );
    for (const part of document.querySelectorAll("#endpoint > section")) part.toggleAttribute("hidden", true);
  }

  #settled() {
    this.#shown = true;
    for (const part of document.querySelectorAll("#endpoint > section")) part.toggleAttribute("hidden", false);
    byId("endpoint").classList.remove("loading");
    byId("endpoint").removeAttribute("aria-busy");
  }
}

const drawn = new WeakSet();

/** Render over what stood there while loading. */
function draw(box, content) {
  if (!drawn.has(box)) box.replaceChildren();
  drawn.add(box);
  render(content, box);
  fillTimes(box);
}

function tile(name, value, note) {
  return html`<div class="tile"><span class="tile-name">${name}</span><span class="tile-value">${value}</span><span class="tile-note">${note}</span></div>`;
}

function number({ value, unit }) {
  return html`${value}${unit ? html`<span class="unit">${unit}</span>` : nothing}`;
}

function tiles(endpoint) {
  const { state, next_at: next, recent, lag, dead_letters: dead } = endpoint;
  const [kind, words, about] = stateOf(endpoint);
  const why = whyOf(endpoint);
  const none = html`<span class="muted">–</span>`;
  return html`<section class="tiles" aria-label="The endpoint in numbers">
    ${tile("State", html`<span class="badge ${kind}">${words}</span>`, why ? html`${why}, <time datetime=${endpoint.state_at} data-age></time>` : about)}
    ${tile("Next try", next ? html`<time datetime=${next} data-countdown></time>` : none, next ? "or at once by Try now" : state === "active" ? "when there is an event" : "none is planned")}
    ${tile("Accepted", recent.requests ? number(percent(recent.delivered, recent.requests)) : none, recent.requests ? `${recent.delivered} of the last ${plural(recent.requests, "request")}` : "no requests yet")}
    ${tile("95 of 100 within", recent.p95_ms === null ? none : number(duration(recent.p95_ms)), "until the answer's head")}
    ${tile("Backlog", lag, lag === 1 ? "event waits" : "events wait")}
    ${tile("Dead letters", dead, dead ? "given up; replay them below" : "nothing was given up")}
  </section>`;
}

function fact(name, value) {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

function facts(subscription, endpoint) {
  const { deliver, lease } = subscription;
  const order = deliver.ordered ? "one after the other, in the order of the log" : `up to ${deliver.in_flight} at once`;
  return html`<dl class="facts">
    ${fact("Sends", html`${deliver.format ?? deliver.mode}${deliver.batch > 1 ? `, up to ${deliver.batch} events a request` : ""}`)}
    ${deliver.ordered === undefined ? nothing : fact("Order", order)}
    ${deliver.ordered === undefined ? nothing : fact("An event that fails", deliver.max_attempts ? `is a dead letter after ${plural(deliver.max_attempts, "attempt")}` : "is tried until the endpoint is paused")}
    ${deliver.signature ? fact("Signatures", html`${deliver.signature}${endpoint.secrets > 1 ? ", with two secrets during a rotation" : ""}`) : nothing}
    ${deliver.headers?.length ? fact("Headers of its own", deliver.headers.join(", ")) : nothing}
    ${fact("Delivered up to", html`<span class="mono">${endpoint.cursor}</span>`)}
    ${fact("Lease ends", html`<time datetime=${lease.expires_at} data-countdown></time>`)}
    ${fact("Owner", subscription.owner)}
    ${fact("Subscription", html`<span class="mono">${subscription.id}</span>`)}
    ${endpoint.public_key ? fact("Key of the signatures v1a", html`<span class="mono">${endpoint.public_key}</span>`) : nothing}
  </dl>`;
}
