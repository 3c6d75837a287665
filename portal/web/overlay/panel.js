/** One domain of the overlay in detail, and the links of this domain while none is open. */

import { tellEnd } from "../domain_connection.js";
import { count, duration, percent, plural, rate } from "../format.js";
import { Refused, SessionEnded, getJson } from "../requests.js";
import { html, nothing, render } from "../table.js";
import { fillTimes } from "../times.js";
import { paceOf } from "./health.js";
import { capacityOf, levelOf, reasonOf, zoneOf } from "./words.js";

/** @import { OverlayDomainExplanation, OverlayLink } from "../shapes.d.ts" */

const WORDS = { anchor: "Approved peer", chosen: "Linked", accepted: "Linked", none: "No link" };
const ENDED_SHOWN = 8;

export class DomainPanel {
  /** Called when the reader closes the panel. */
  onClose = () => {};
  #element;
  #linkTo;
  #name = "";
  /** @type {OverlayDomainExplanation | null} */
  #found = null;
  #problem = "";
  #asked = 0; // number of the domain that was opened: answers to an older one are ignored

  /** @param {HTMLElement} element @param {(name: string) => unknown} linkTo renders a link to a domain */
  constructor(element, linkTo) {
    this.#element = element;
    this.#linkTo = linkTo;
  }

  get name() {
    return this.#name;
  }

  /** Open a domain, or none (""). @param {string} name */
  open(name) {
    if (name === this.#name) return;
    this.#name = name;
    this.#found = null;
    this.#problem = "";
    this.#draw();
    void this.refresh();
  }

  /** Ask again: something about the overlay has changed. */
  async refresh() {
    const asked = ++this.#asked;
    if (!this.#name) return;
    try {
      const found = await getJson(`/api/v1/overlay/domains/${encodeURIComponent(this.#name)}`);
      if (asked !== this.#asked) return;
      this.#found = found;
      this.#problem = "";
    } catch (error) {
      if (asked !== this.#asked) return;
      if (error instanceof SessionEnded) tellEnd(error);
      if (error instanceof Refused) this.#found = null;
      this.#problem = error.message;
    }
    this.#draw();
  }

  #draw() {
    this.#element.hidden = !this.#name;
    if (!this.#name) return;
    const found = this.#found;
    render(
      html`<div class="card-head panel-head"><h2 id="panel-title">${this.#name}</h2>
          ${found ? html`<span class=${`badge ${found.convicted_at ? "bad" : found.link?.up ? "good" : "off"}`}>${found.convicted_at ? "Contradicted itself" : WORDS[levelOf(found.link ?? undefined)]}</span>` : nothing}
          <button type="button" class="button quiet compact panel-close" @click=${() => this.onClose()}>Close</button></div>
        ${this.#problem ? html`<p class="notice warning panel-part" role="alert">${this.#problem}</p>` : nothing}
        ${found ? this.#parts(found) : this.#problem ? nothing : html`<div class="panel-part"><p class="skeleton">Loading</p></div>`}`,
      this.#element,
    );
    fillTimes(this.#element);
  }

  /** @param {OverlayDomainExplanation} found */
  #parts(found) {
    const { link } = found;
    return html`<section class="panel-part" aria-labelledby="panel-link"><h3 id="panel-link">Link</h3>
        ${
          link
            ? html`<p>${link.up ? "Stands" : "Ended"}: ${lowered(reasonOf(link))}, <time datetime=${link.since} data-age></time>.</p>
              ${link.rtt_ms === null ? nothing : html`<p>Round trip: ${duration(link.rtt_ms)}.</p>`}`
            : html`<p class="muted">This domain has not had a link with ${found.name} lately. A domain has a few links only; events and records pass from link to link.</p>`
        }
        ${found.convicted_at ? html`<p class="notice error">It signed contradictory statements, <time datetime=${found.convicted_at} data-age></time>. It gets no links here.</p>` : nothing}
        ${found.suspicion ? html`<p class="notice warning">Suspected since <time datetime=${found.suspicion.since} data-moment></time>: it does not answer ${found.suspicion.accusers.join(", ") || "its monitors"}. It is not chosen for replicas and eager links.</p>` : nothing}
        ${found.scores.map(({ score, region, reason, effects }) => html`<p>Score ${score}${region ? html` at <code>${region}</code>` : nothing}${effects.length ? `: ${effects.join(", ")}` : ""}${reason ? html`. <span class="muted">${reason}</span>` : nothing}</p>`)}
        ${found.peer ? html`<p>As a peer: <a href=${`/federation/${encodeURIComponent(found.name)}`}>${found.peer}</a>.</p>` : nothing}
      </section>
      <section class="panel-part" aria-labelledby="panel-record"><h3 id="panel-record">Record</h3>
        <dl class="facts dense">
          <div><dt>Address</dt><dd>${found.url ? html`<a href=${found.url} rel="noreferrer">${found.url}</a>` : "None: it only calls other domains"}</dd></div>
          <div><dt>Zone</dt><dd>${zoneOf(found.zone)}</dd></div>
          <div><dt>Capacity</dt><dd>${capacityOf(found.capacity)}</dd></div>
          <div><dt>${found.held ? "Expires" : "Expired"}</dt><dd>${found.held ? html`<time datetime=${found.expires_at} data-countdown></time>` : html`<time datetime=${found.expires_at} data-age></time>`}</dd></div>
        </dl>
        <dl class="fingerprints"><dt>Fingerprint</dt><dd class="mono">${found.fingerprint}</dd></dl>
      </section>
      ${found.load ? loadPart(found.load) : nothing}
      <section class="panel-part" aria-labelledby="panel-sponsors"><h3 id="panel-sponsors">Sponsors</h3>
        ${
          found.sponsors.length
            ? html`<ol class="plain-list">${found.sponsors.map((name) => html`<li>${this.#linkTo(name)}</li>`)}</ol>`
            : html`<p>${found.sponsor ? "The records of its sponsors have expired." : "It is a founder: it needs no sponsor."}</p>`
        }
        ${found.rooted ? nothing : html`<p class="notice warning">Its sponsors do not lead to a founder that this domain trusts.</p>`}
      </section>`;
  }
}

function loadPart(load) {
  return html`<section class="panel-part" aria-labelledby="panel-load"><h3 id="panel-load">Load, by its own word</h3>
    <dl class="facts dense">
      <div><dt>Readers</dt><dd>${count(load.sessions)}</dd></div>
      <div><dt>Published, delivered</dt><dd>${rate(load.events_in_per_s)}, ${rate(load.events_out_per_s)}</dd></div>
      <div><dt>Waiting</dt><dd>${count(load.backlog)}</dd></div>
      <div><dt>Busy</dt><dd>${percent(load.busy_permille, 1000)}</dd></div>
      <div><dt>Links</dt><dd>${count(load.links)}</dd></div>
      <div><dt>Age</dt><dd>${duration(load.age_s * 1000)}</dd></div>
    </dl></section>`;
}

/**
 * Render the links of this domain: those that stand, and the latest that ended.
 * @param {OverlayLink[]} links
 * @param {HTMLElement} element
 * @param {(name: string) => unknown} linkTo
 */
export function drawLinks(links, element, linkTo) {
  const standing = links.filter(({ up }) => up);
  const ended = links.filter(({ up }) => !up).slice(0, ENDED_SHOWN);
  render(
    html`<section class="card flush" aria-labelledby="links-title">
        <div class="card-head"><h2 id="links-title">Links</h2><span class="muted small">${plural(standing.length, "link")}</span></div>
        ${standing.length ? list(standing, linkTo) : html`<div class="empty"><strong>No links</strong><span>The domain looks for links by itself.</span></div>`}
      </section>
      ${
        ended.length
          ? html`<section class="card flush" aria-labelledby="ended-title"><div class="card-head"><h2 id="ended-title">Ended lately</h2></div>${list(ended, linkTo)}</section>`
          : nothing
      }`,
    element,
  );
  fillTimes(element);
}

function list(links, linkTo) {
  return html`<ul class="attention">${links.map((link) => {
    const pace = link.up ? paceOf(link) : "";
    return html`<li>${linkTo(link.peer)}<span class="small muted">${link.rtt_ms === null ? html`<time datetime=${link.since} data-age></time>` : duration(link.rtt_ms)}</span>
    <span class="rp-sub">${reasonOf(link)}${link.rtt_ms === null ? nothing : html`, <time datetime=${link.since} data-age></time>`}${pace ? html` <span class=${`badge ${pace === "slow" ? "warn" : "good"}`}>${pace}</span>` : nothing}${link.suspected ? html` <span class="badge warn">suspected</span>` : nothing}</span></li>`;
  })}</ul>`;
}

function lowered(words) {
  return words[0].toLowerCase() + words.slice(1);
}
