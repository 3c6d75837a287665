/** One event in full: content, exact bytes, origin and replicas, and the proof of its origin. */

import { html, nothing, render } from "lit-html";
import { pathTree } from "../event_path.js";
import { bytes, count, duration, plural } from "../format.js";
import { getJson } from "../requests.js";
import { fromBase64, hexdump } from "./hexdump.js";
import { check } from "./proof.js";

const HEX_BYTES_FIRST = 2_048;
const ROW_BYTES = [16, 12, 8];
const CHAR_PX = 7.9; // of the face and size in which bytes are shown
const PADDING_PX = 72;
const LOOK_EVERY_MS = 2_000;
const LOOKS_MAX = 15; // 30 s: after that the reader asks again
const ATTRIBUTES = ["id", "source", "type", "subject", "time", "datacontenttype", "dataschema"];
const NO_ATTRIBUTES = new Set(["specversion", "data", "data_base64", ...ATTRIBUTES]);
const LINKS = {
  eager: "events are sent at once",
  lazy: "missing events are requested",
  stopped: "the link is stopped",
};

export class Detail {
  #element;
  #url;
  #domain;
  #asks;
  /** @type {{reader: import("./reader.js").LaneReader, offset: number, facts: any, error: Error | null, proof: any, proving: boolean, whole: boolean,
   * path: import("../shapes.d.ts").EventPath | null, asking: boolean, refusal: string} | null} */
  #shown = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #looks = 0;

  /**
   * @param {HTMLElement} element
   * @param {{url: string, domain: string, asks: {step: (by: number) => void, close: () => void}}} options `domain`: this one's name
   */
  constructor(element, { url, domain, asks }) {
    this.#element = element;
    this.#url = url;
    this.#domain = domain;
    this.#asks = asks;
    element.replaceChildren(); // what stood there while loading
  }

  close() {
    clearTimeout(this.#timer);
    this.#shown = null;
    this.#draw();
  }

  /** Fetch and show the event; what was shown stays until it is there. */
  async show(reader, offset) {
    clearTimeout(this.#timer);
    const shown = {
      ...{ reader, offset, facts: null, error: null, proof: null, proving: false, whole: false },
      ...{ path: null, asking: false, refusal: "" },
    };
    this.#shown = shown;
    this.#looks = 0;
    this.#draw();
    await this.#look(shown);
  }

  async #look(shown) {
    try {
      const facts = await getJson(
        `${this.#url}?${new URLSearchParams({ rp: shown.reader.rp, offset: shown.offset, epoch: shown.facts?.epoch ?? shown.reader.lane.epoch })}`,
      );
      shown.bytes = fromBase64(facts.bytes);
      shown.event = JSON.parse(new TextDecoder().decode(shown.bytes));
      shown.facts = facts;
      shown.error = null;
    } catch (error) {
      if (!("status" in error) && !["SessionEnded", "Unanswered"].includes(error.name)) throw error; // our own mistake
      shown.error = error;
    }
    if (this.#shown !== shown) return;
    this.#draw();
    if (shown.facts?.sealed && !shown.proof && !shown.proving) void this.#prove(shown);
    const lacking = shown.facts?.domains.some(({ held }) => held === false);
    if (lacking && ++this.#looks < LOOKS_MAX) this.#timer = setTimeout(() => this.#look(shown), LOOK_EVERY_MS);
  }

  async #prove(shown) {
    const { facts } = shown;
    shown.proving = true;
    this.#draw();
    try {
      const proof = await getJson(`/api/v1/rps/${facts.rp}/proof?offset=${facts.offset}`);
      shown.proof = await check(proof, {
        rp: facts.rp,
        bytes: shown.bytes,
        sequence: facts.sequence,
        origin: facts.origin,
      });
      facts.sealed = true;
      if (proof.origin === this.#domain || facts.origin) facts.origin ??= proof.origin;
    } catch (error) {
      if (!("status" in error) && !["SessionEnded", "Unanswered"].includes(error.name)) throw error; // our own mistake
      shown.proof = { verdict: "none", says: error.message, steps: [] };
    }
    shown.proving = false;
    if (this.#shown === shown) this.#draw();
  }

  /** Ask the other domains for the path. */
  async #ask(shown) {
    const { rp, feed, sequence } = shown.facts;
    shown.asking = true;
    shown.refusal = "";
    this.#draw();
    try {
      shown.path = await getJson(`/api/v1/rps/${rp}/path?${new URLSearchParams({ feed, sequence, ask: "true" })}`);
    } catch (error) {
      if (!("status" in error) && !["SessionEnded", "Unanswered"].includes(error.name)) throw error; // our own mistake
      shown.refusal = error.message;
    }
    shown.asking = false;
    if (this.#shown === shown) this.#draw();
  }

  #draw() {
    const shown = this.#shown;
    if (!shown) {
      render(
        html`<div class="empty"><strong>No event selected</strong><span>Select an event on the axis or in the list to see its content, origin and replicas.</span></div>`,
        this.#element,
      );
      return;
    }
    const { reader, offset, error, facts } = shown;
    render(
      html`<div class="card-head">
          <h2 id="detail-title" tabindex="-1">Event #${offset}</h2>
          <div class="actions">
            <button type="button" class="button compact" @click=${() => this.#asks.step(-1)}>Previous</button>
            <button type="button" class="button compact" @click=${() => this.#asks.step(1)}>Next</button>
            <button type="button" class="button quiet compact" @click=${() => this.#asks.close()}>Close<span class="visually-hidden"> the event</span></button>
          </div>
        </div>
        <p class="muted small ts-detail-rp">${reader.label}</p>
        ${error ? html`<div class="broken"><strong>The event cannot be shown</strong><span>${error.message}</span></div>` : nothing}
        ${facts ? this.#facts(shown) : error ? nothing : html`<div class="empty loading"><span class="skeleton">Loading the event</span></div>`}`,
      this.#element,
    );
  }

  #facts(shown) {
    const { facts, event } = shown;
    return html`<div class="stack">
      <dl class="facts ts-facts">
        ${ATTRIBUTES.filter((name) => name in event).map((name) => fact(name, event[name]))}
        ${Object.keys(event)
          .filter((name) => !NO_ATTRIBUTES.has(name))
          .map((name) => fact(name, event[name]))}
        <div><dt>Size</dt><dd class="number">${bytes(shown.bytes.length)}${shown.bytes.length >= 1024 ? html` <span class="muted small">${count(shown.bytes.length)} B</span>` : nothing}</dd></div>
        <div><dt>Stored</dt><dd><time datetime=${facts.stored_at} data-moment>${facts.stored_at}</time> <span class="muted small">${lateness(event.time, facts.stored_at)}</span></dd></div>
        <div><dt>Cursor</dt><dd><code>${facts.cursor}</code></dd></div>
      </dl>
      <section aria-labelledby="detail-data"><h3 id="detail-data">Data</h3>${dataOf(event)}</section>
      ${this.#raw(shown)}
      ${facts.feed ? this.#origin(shown) : html`<p class="muted small">An administrative event: it is not sealed and not sent to other domains.</p>`}
    </div>`;
  }

  #raw(shown) {
    const { bytes: all } = shown;
    const most = shown.whole ? all.length : HEX_BYTES_FIRST;
    const width = ROW_BYTES.find((wide) => rowChars(wide) * CHAR_PX < this.#element.clientWidth - PADDING_PX) ?? 8;
    return html`<details class="more"><summary>Exact bytes</summary>
      <pre class="ts-raw" tabindex="0" role="region" aria-label="The event's bytes, hexadecimal and as text">${hexdump(all, { width, most })}</pre>
      ${
        all.length > most
          ? html`<button type="button" class="button compact space-above" @click=${() => {
              shown.whole = true;
              this.#draw();
            }}>Show all ${bytes(all.length)}</button>`
          : nothing
      }
    </details>`;
  }

  #origin(shown) {
    const { facts } = shown;
    const way = facts.carriers.length ? [...facts.carriers, this.#domain] : [this.#domain];
    return html`<section aria-labelledby="detail-origin"><h3 id="detail-origin">Origin</h3>
        <p>${facts.origin === this.#domain ? "Published here" : html`Published at <strong>${facts.origin ?? "a domain whose seal is no longer held"}</strong>`}, number ${count(facts.sequence)} of its feed <code class="ts-feed" title=${facts.feed}>${facts.feed}</code></p>
        ${
          way.length > 1
            ? html`<ol class="ts-way" aria-label="Route through the domains">${way.map((domain) => html`<li>${domain}</li>`)}</ol>
          <p class="muted small">${plural(way.length - 1, "hop")}, as reported by the domains on the route.</p>`
            : nothing
        }
        ${this.#proof(shown)}
      </section>
      <section aria-labelledby="detail-where"><h3 id="detail-where">Replicas</h3>${this.#domains(shown)}</section>`;
  }

  #proof(shown) {
    const { facts, proof, proving } = shown;
    if (proving) return html`<p class="loading"><span class="skeleton">Verifying the proof of origin</span></p>`;
    if (!proof) {
      return html`<p class="muted small">The event is not sealed yet. It is sealed when it leaves this domain, or now.</p>
        <button type="button" class="button compact space-above" id="prove" @click=${() => this.#prove(shown)}>${facts.sealed ? "Prove" : "Seal and prove"}</button>`;
    }
    return html`<div class="ts-proof ${proof.verdict}" id="proof" role="status">
      <p>${VERDICTS[proof.verdict](proof)}</p>
      ${
        proof.steps.length
          ? html`<details class="more"><summary>Verification steps</summary><ul class="ts-steps">
        ${proof.steps.map(({ name, by, says }) => html`<li><span class="badge ${by === "page" ? "good" : by ? "warn" : "bad"}">${name}</span> ${says}</li>`)}
      </ul></details>`
          : nothing
      }
      ${proof.fingerprint ? html`<p class="muted small">Not verified: that the fingerprint <code>${proof.fingerprint}</code> belongs to ${proof.seal.origin}. Compare it with its administrator.</p>` : nothing}
      ${proof.verdict === "verified" ? nothing : html`<button type="button" class="button compact space-above" @click=${() => this.#prove(shown)}>Check again</button>`}
    </div>`;
  }

  #domains(shown) {
    const { domains } = shown.facts;
    if (domains.length <= 1) return html`<p>This domain only: the rendezvous point has no replicas.</p>`;
    return html`<ul class="ts-domains">${domains.map(
      (one) => html`<li>
      <span class="ts-domain">${one.domain === this.#domain ? html`${one.domain} <span class="muted small">(here)</span>` : one.domain}${one.role === "home" ? html` <span class="tag">home</span>` : nothing}</span>
      ${one.held ? html`<span class="badge good">held</span>` : one.held === false ? html`<span class="badge warn">missing</span>` : html`<span class="badge">unknown</span>`}
      <span class="muted small">${one.domain === this.#domain ? "" : one.link ? `${LINKS[one.link]}${one.backlog ? `; ${plural(one.backlog, "event")} behind` : ""}` : "no direct link"}</span>
    </li>`,
    )}</ul>${this.#path(shown)}`;
  }

  #path(shown) {
    const { facts, path, asking, refusal } = shown;
    if (!path) {
      return html`${refusal ? html`<p class="notice warning space-above" role="alert">${refusal}</p>` : nothing}
        <button type="button" class="button compact space-above" id="ask-path" ?disabled=${asking} @click=${() => this.#ask(shown)}>${asking ? "Asking" : "Ask the other domains for the path"}</button>`;
    }
    const query = new URLSearchParams({ rp: facts.rp, feed: facts.feed, sequence: facts.sequence });
    return html`<div class="space-above" id="path" role="status"><h4>Path</h4>
      ${pathTree(path, { own: this.#domain, linkTo: (name) => html`<strong>${name}</strong>` })}
      <p class="muted small">As stated by the domains on the way, each time by the domain's own clock; not proved. <a href=${`/overlay?${query}`}>Show on the map of the overlay</a></p></div>`;
  }
}

/** Characters of a row of the hexdump. */
function rowChars(rowBytes) {
  return 6 + 2 + 3 * rowBytes - 1 + 2 + rowBytes;
}

const VERDICTS = {
  verified: ({ seal }) =>
    html`<span class="badge good">Verified</span> This browser verified that <strong>${seal.origin}</strong> published exactly these bytes.`,
  partly: ({ seal }) =>
    html`<span class="badge warn">Verified in part</span> This browser cannot verify completely that <strong>${seal.origin}</strong> published these bytes; this domain has verified it.`,
  refuted: ({ steps }) => html`<span class="badge bad">Not verified</span> ${steps.at(-1).says}`,
  none: ({ says }) => html`<span class="badge bad">No proof</span> ${says}`,
};

function fact(name, value) {
  return html`<div><dt>${name}</dt><dd>${name === "time" ? html`<time datetime=${value} data-moment>${value}</time>` : String(value)}</dd></div>`;
}

function dataOf(event) {
  if ("data" in event) {
    return html`<pre class="ts-data" tabindex="0" role="region" aria-label="The event's data">${typeof event.data === "string" ? event.data : JSON.stringify(event.data, null, 2)}</pre>`;
  }
  if (typeof event.data_base64 !== "string") return html`<p class="muted">No data.</p>`;
  const data = fromBase64(event.data_base64);
  return html`<pre class="ts-raw" tabindex="0" role="region" aria-label="The event's binary data">${hexdump(data, { most: HEX_BYTES_FIRST })}</pre>
    <p class="muted small">${bytes(data.length)} of ${event.datacontenttype ?? "binary data"}</p>`;
}

/** Difference between an event's time and its time of storage. */
function lateness(own, stored) {
  const ms = Date.parse(stored) - Date.parse(own ?? "");
  if (Number.isNaN(ms)) return "it says no time itself";
  return `${duration(Math.abs(ms))} ${ms < 0 ? "before" : "after"} the event's time`;
}
