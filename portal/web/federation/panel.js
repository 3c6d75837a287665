/**
 * One peer in detail: problem and remedy, delivery, links, replication of the newest events, permissions, misbehaviour.
 * Changing data is part of the domain's state; the rest is loaded when the peer is opened, and again after events that
 * change it.
 */

import { byteRate, clock, count, plural, rate } from "../format.js";
import { Refused, SessionEnded, getJson } from "../requests.js";
import { tellEnd } from "../domain_connection.js";
import { breakable, html, nothing, render } from "../table.js";
import * as actions from "./actions.js";
import { SIGNS } from "./health.js";

/** @import { MisbehaviourData, Peer, QuarantineRow } from "../shapes.d.ts" */

/** @import { JudgedPeer } from "./health.js" */

const LINKS_PAGE = 20;
const NEWEST = 10;
const AGAIN_MS = 2_000; // between two looks at what events say has changed; without any there is none
const RETRY_MS = 5_000; // after a look that failed

export class Panel {
  /** Called when the reader closes the panel. */
  onClose = () => {};
  #element;
  #may;
  #name = "";
  /** @type {JudgedPeer | null} */
  #row = null;
  /** @type {{misbehaviour: MisbehaviourData[], quarantine: QuarantineRow | null}} */
  #about = { misbehaviour: [], quarantine: null };
  /** @type {Peer | null} */
  #detail = null;
  /** @type {any} */
  #delivery = null;
  /** @type {{items: any[] | null, next: string | null, cursors: (string | null)[]}} */
  #links = { items: null, next: null, cursors: [null] };
  #evidence = [];
  /** @type {{rp: string, label: string, found: any} | null} */
  #spread = null;
  #problem = "";
  #asked = 0; // number of the peer that was opened: answers to an older one are ignored
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #due;
  #askedAt = 0;

  /** @param {HTMLElement} element @param {{administrate: boolean, operate: boolean}} may */
  constructor(element, may) {
    this.#element = element;
    this.#may = may;
  }

  get name() {
    return this.#name;
  }

  /** Open a peer, or none (""). */
  open(name) {
    if (name === this.#name) return;
    this.#name = name;
    this.#asked++;
    clearTimeout(this.#due);
    this.#due = undefined;
    this.#row = this.#detail = this.#delivery = this.#spread = null;
    this.#links = { items: null, next: null, cursors: [null] };
    this.#evidence = [];
    this.#problem = "";
    if (name) void this.#ask();
    this.#draw();
  }

  /**
   * @param {JudgedPeer | null} row null when there is no such peer (any more)
   * @param {{misbehaviour: MisbehaviourData[], quarantine: QuarantineRow | null}} about of the state, of this peer
   * @param {boolean} touched an event was about this peer
   */
  show(row, about, touched) {
    this.#row = row;
    this.#about = about;
    if (touched) this.#soon(AGAIN_MS);
    this.#draw();
  }

  #soon(afterMs) {
    if (!this.#name) return;
    const wait = Math.max(0, this.#askedAt + afterMs - performance.now());
    clearTimeout(this.#due);
    this.#due = setTimeout(() => void this.#ask(), wait);
  }

  async #ask() {
    const asked = this.#asked;
    this.#askedAt = performance.now();
    try {
      const url = actions.peerUrl(this.#name);
      const cursor = this.#links.cursors.at(-1);
      const [detail, delivery, links, evidence, found] = await Promise.all([
        getJson(url),
        getJson(`${url}/delivery`),
        getJson(`${url}/links?limit=${LINKS_PAGE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`),
        getJson(`/api/v1/evidence?limit=10&origin=${encodeURIComponent(this.#name)}`),
        this.#spread && getJson(`/api/v1/rps/${this.#spread.rp}/spread?limit=${NEWEST}`),
      ]);
      if (asked !== this.#asked) return;
      this.#detail = detail;
      this.#delivery = delivery;
      this.#links = { ...this.#links, items: links.items, next: links.next };
      this.#evidence = evidence.items;
      if (this.#spread && found) this.#spread = { ...this.#spread, found };
      this.#problem = "";
    } catch (error) {
      if (asked !== this.#asked) return;
      if (error instanceof SessionEnded) tellEnd(error);
      const gone = error instanceof Refused && error.status === 404; // the state shows it, too
      this.#problem = gone ? "" : error.message;
      if (!gone) this.#soon(RETRY_MS);
    }
    if (!document.hidden) this.#draw();
  }

  #turn(cursors) {
    this.#links = { ...this.#links, cursors };
    void this.#ask();
  }

  #look(link) {
    this.#spread = this.#spread?.rp === link.rp ? null : { rp: link.rp, label: labelOf(link), found: null };
    this.#draw();
    if (this.#spread) void this.#ask();
  }

  // ---- drawing ----

  #draw() {
    this.#element.hidden = !this.#name;
    if (!this.#name) return;
    const row = this.#row;
    render(
      html`<div class="card-head panel-head">
          <h2 id="panel-title">${domainName(this.#name)}</h2>
          ${row ? badge(row.health) : nothing}
          <button type="button" class="button quiet compact panel-close" @click=${() => this.onClose()}><span class="panel-back" aria-hidden="true">← </span>Close</button>
        </div>
        ${this.#problem ? html`<p class="notice error panel-part" role="alert">${this.#problem} Retrying automatically.</p>` : nothing}
        ${row ? this.#parts(row) : this.#gone()}`,
      this.#element,
    );
  }

  #gone() {
    return html`<div class="empty"><strong>${this.#name} is not a peer</strong><span>It was removed, has left, or never was a peer.</span></div>`;
  }

  #parts(row) {
    return html`${this.#state(row)} ${this.#buttons(row)} ${row.state === "active" || row.delivery.backlog ? this.#deliveryPart(row) : nothing}
      ${this.#linksPart(row)} ${this.#spread ? this.#spreadPart() : nothing} ${this.#trustPart(row)} ${this.#wrongPart()} ${this.#identityPart()}`;
  }

  #state({ health, delivery, state }) {
    return html`<section class=${`panel-part verdict ${health.level}`} aria-label="State">
      <p><strong>${health.sentence}</strong></p>
      ${delivery.detail ? html`<p class="mono small last-error">${delivery.detail}</p>` : nothing}
      ${delivery.next_try_at && !delivery.failures ? html`<p>The pause ends <time class="number" datetime=${delivery.next_try_at} data-countdown></time>.</p>` : nothing}
      ${delivery.next_try_at && delivery.failures ? html`<p>Next try <time class="number" datetime=${delivery.next_try_at} data-countdown></time>, after ${plural(delivery.failures, "failure")}, the first <time datetime=${delivery.first_failure_at} data-age></time>.</p>` : nothing}
      ${delivery.stopped_at ? html`<p>No events sent since <time datetime=${delivery.stopped_at} data-clock></time>.</p>` : nothing}
      ${health.advice ? html`<p class="muted">${health.advice}</p>` : nothing}
      ${state !== "active" && this.#detail?.hello.problem ? html`<p class="small">Last hello: ${this.#detail.hello.problem}</p>` : nothing}
    </section>`;
  }

  #buttons(row) {
    const { name, state, delivery } = row;
    const { administrate, operate } = this.#may;
    const button = (text, act, kind = "") =>
      html`<button type="button" class=${`button compact ${kind}`} @click=${act}>${text}</button>`;
    const shown = [
      operate &&
        ["active", "proposed"].includes(state) &&
        button(
          "Retry now",
          this.#working(() => actions.retry(name)),
          delivery.failures ? "primary" : "",
        ),
      administrate &&
        state === "asked" &&
        this.#detail &&
        button("Approve…", () => this.#detail && void actions.approve(this.#detail), "primary"),
      administrate && state === "suspended" && button("Resume…", () => void actions.resume(name), "primary"),
      administrate &&
        ["active", "proposed"].includes(state) &&
        button("Suspend…", () => void actions.suspend(name), "danger"),
      administrate && button(state === "asked" ? "Decline…" : "Remove…", () => void actions.remove(row), "danger"),
    ].filter(Boolean);
    return shown.length
      ? html`<div class="actions panel-part">${shown}</div>`
      : html`<p class="panel-part small muted">Your role can view peers only; operators and administrators can manage them.</p>`;
  }

  /** A button that works at once: it shows that it does, and is not pressed twice. */
  #working(act) {
    return async ({ currentTarget: button }) => {
      if (button.getAttribute("aria-busy") === "true") return;
      button.setAttribute("aria-busy", "true");
      await act();
      button.removeAttribute("aria-busy");
      void this.#ask();
    };
  }

  #deliveryPart({ delivery, rates }) {
    const taken = this.#delivery?.traffic;
    return html`<section class="panel-part" aria-labelledby="panel-delivery">
      <h3 id="panel-delivery">Delivery</h3>
      <dl class="facts dense">
        <div><dt>Backlog</dt><dd class="number" data-fact="backlog">${plural(delivery.backlog, "event")}</dd></div>
        <div><dt>Oldest waiting event</dt><dd>${delivery.oldest_at ? html`<time class="number" datetime=${delivery.oldest_at} data-age></time>` : "none"}</dd></div>
        <div><dt>Sent now</dt><dd class="number">${rate(rates.sent)}</dd></div>
        <div><dt>Received now</dt><dd class="number">${rate(rates.taken)}${rates.copies ? html` <span class="small muted">and ${rate(rates.copies)} copies</span>` : nothing}</dd></div>
        <div><dt>Sent so far</dt><dd class="number">${taken ? plural(taken.sent, "event") : "–"}</dd></div>
        <div><dt>Received so far</dt><dd class="number">${taken ? html`${plural(taken.events, "event")}, <span class="nowrap">${plural(taken.copies, "copy", "copies")}</span>` : "–"}</dd></div>
      </dl>
    </section>`;
  }

  #linksPart({ name, state }) {
    const { items, next, cursors } = this.#links;
    const first = (cursors.length - 1) * LINKS_PAGE + 1;
    return html`<section class="panel-part" aria-labelledby="panel-links">
      <h3 id="panel-links">Shared rendezvous points</h3>
      ${
        items === null
          ? html`<p class="skeleton">Loading</p>`
          : items.length === 0
            ? html`<p class="muted small">None: neither domain has a replica of the other's rendezvous points.</p>`
            : html`<ul class="links">${items.map((link) => this.#link(link, name, state))}</ul>`
      }
      ${
        cursors.length > 1 || next
          ? html`<div class="pager small"><button type="button" class="button compact" ?disabled=${cursors.length < 2} @click=${() => this.#turn(cursors.slice(0, -1))}>Earlier</button>
            <span class="muted number">${first}–${first + (items?.length ?? 1) - 1}</span>
            <button type="button" class="button compact" ?disabled=${!next} @click=${() => this.#turn([...cursors, next])}>More</button></div>`
          : nothing
      }
    </section>`;
  }

  #link(link, name, state) {
    const open = this.#spread?.rp === link.rp;
    const kind = link.link === "stopped" ? "bad" : link.backlog ? "warn" : "good";
    return html`<li>
      <div class="link-head"><a class="rp-link" href=${`/rps/${link.rp}`}>${breakable(labelOf(link))}</a><span class=${`badge ${kind}`}>${link.link}</span></div>
      <p class="small muted number">${link.backlog ? `${plural(link.backlog, "event waiting", "events waiting")}` : "Up to date"}${link.ahead ? `, ${plural(link.ahead, "event")} still to be received` : ""};
        home ${link.home}${link.heard_at ? html`; last contact <time datetime=${link.heard_at} data-age></time>` : nothing}</p>
      ${link.detail ? html`<p class="small">${link.detail}${link.held_until ? html` No events are sent until <time datetime=${link.held_until} data-clock></time>.` : nothing}</p>` : nothing}
      <details class="more small"><summary>Vectors</summary>${vectors(link)}</details>
      <div class="actions">
        <button type="button" class="button quiet compact" aria-expanded=${String(open)} @click=${() => this.#look(link)}>Newest events</button>
        ${this.#may.operate && state === "active" ? html`<button type="button" class="button quiet compact" @click=${() => void actions.replay(name, { rp: link.rp, label: labelOf(link) })}>Send again…</button>` : nothing}
      </div>
    </li>`;
  }

  #spreadPart() {
    if (!this.#spread) return nothing;
    const { label, found } = this.#spread;
    return html`<section class="panel-part" aria-labelledby="panel-spread">
      <h3 id="panel-spread">Replication of the newest events of ${breakable(label)}</h3>
      ${
        !found
          ? html`<p class="skeleton">Loading</p>`
          : found.events.length === 0
            ? html`<p class="small muted">The history is empty.</p>`
            : html`<div class="table-scroll spread" tabindex="0" role="group" aria-labelledby="panel-spread"><table>
              <thead><tr><th scope="col">Event</th>${found.domains.map(({ domain }) => html`<th scope="col">${domain}</th>`)}</tr></thead>
              <tbody>${found.events.map(
                (
                  event,
                ) => html`<tr><th scope="row"><span class="spread-event" title=${`${event.id} of ${event.source}`}>${event.type}</span>
                  <span class="rp-sub">${event.time ? `${clock(event.time)}, ` : ""}no. ${count(event.sequence)} of ${event.origin ?? "an unknown domain"}</span></th>
                ${found.domains.map((one) => html`<td>${held(one, event)}</td>`)}</tr>`,
              )}</tbody>
            </table></div>
            <p class="small muted">As last reported by each domain; domains without a direct link do not report.</p>`
      }
    </section>`;
  }

  #trustPart({ name, push, host, gossip, lease }) {
    const detail = this.#detail;
    const { administrate, operate } = this.#may;
    return html`<section class="panel-part" aria-labelledby="panel-trust">
      <h3 id="panel-trust">Trust and rates</h3>
      ${actions.trustSwitches({ push, host, gossip }, (input) => void actions.trust(name, input), !administrate)}
      <dl class="facts dense">
        <div><dt>Rate limits</dt><dd class="number">${detail ? html`${rate(detail.events_per_s, "events/s")}, <span class="nowrap">${byteRate(detail.bytes_per_s)}</span>, <span class="nowrap">${rate(detail.requests_per_s, "requests/s")}</span>` : "–"}</dd></div>
        <div><dt>Lease without contact</dt><dd><time datetime=${lease.expires_at} data-countdown></time></dd></div>
        ${detail?.heard_at ? html`<div><dt>Last contact</dt><dd><time datetime=${detail.heard_at} data-age></time></dd></div>` : nothing}
        ${detail?.note ? html`<div><dt>Note</dt><dd>${detail.note}</dd></div>` : nothing}
      </dl>
      <div class="actions">
        ${administrate && detail ? html`<button type="button" class="button quiet compact" @click=${() => void this.#change(detail)}>Change…</button>` : nothing}
        ${operate ? html`<button type="button" class="button quiet compact" @click=${this.#working(() => actions.renew(name))}>Renew lease</button>` : nothing}
      </div>
    </section>`;
  }

  async #change(detail) {
    if (await actions.change(detail)) void this.#ask();
  }

  #wrongPart() {
    const { misbehaviour, quarantine } = this.#about;
    return html`<section class="panel-part" aria-labelledby="panel-wrong">
      <h3 id="panel-wrong">Misbehaviour</h3>
      ${quarantine ? quarantined(quarantine, this.#evidence, this.#may.administrate) : nothing}
      ${misbehaviour.length === 0 && !quarantine ? html`<p class="small muted">None observed.</p>` : nothing}
      ${misbehaviour.length ? html`<ul class="plain-list">${misbehaviour.map(wrong)}</ul>` : nothing}
      ${!quarantine && this.#evidence.length ? exports(this.#evidence) : nothing}
    </section>`;
  }

  #identityPart() {
    const detail = this.#detail;
    return html`<section class="panel-part" aria-labelledby="panel-identity">
      <h3 id="panel-identity">Identity</h3>
      ${
        detail
          ? html`<dl class="fingerprints"><dt>Address</dt><dd><a href=${detail.url} rel="noreferrer">${detail.url}</a></dd>
            <dt>Fingerprint</dt><dd class="mono">${actions.groups(detail.fingerprint_shown)}</dd>
            <dt>Safety number</dt><dd class="mono">${actions.groups(detail.safety_number)}</dd>
            <dt>Since</dt><dd><time datetime=${detail.created_at} data-local></time></dd></dl>`
          : html`<p class="skeleton">Loading</p>`
      }
    </section>`;
  }
}

const BADGES = { good: "good", warn: "warn", bad: "bad", off: "off", wait: "accent wait" };

/** A peer's health as a badge. */
export function badge({ level, word }) {
  return html`<span class=${`badge ${BADGES[level]}`}>${word}</span>`;
}

/** A domain's name with places after its dots at which a narrow column may break the line. @param {string} name */
export function domainName(name) {
  return name.split(/(?<=\.)/).map((part) => html`${part}<wbr>`);
}

function labelOf({ name, title, rp }) {
  return name ?? (title || rp);
}

function held({ domain, known }, event) {
  if (!known) {
    return html`<span class="muted" title="No report">?<span class="visually-hidden"> unknown</span></span>`;
  }
  return event.held.includes(domain)
    ? html`<span class="has">${SIGNS.good}<span class="visually-hidden"> held</span></span>`
    : html`<span class="lacks">…<span class="visually-hidden"> missing</span></span>`;
}

function vectors({ vector, own }) {
  const feeds = [...new Set([...Object.keys(own), ...Object.keys(vector)])].sort();
  if (feeds.length === 0) return html`<p class="muted">No events published yet.</p>`;
  return html`<table class="vectors"><thead><tr><th scope="col">Feed</th><th scope="col" class="right">Here</th><th scope="col" class="right">There</th></tr></thead>
    <tbody>${feeds.map(
      (feed) => html`<tr><th scope="row" class="mono">${feed}</th><td class="right number">${count(own[feed] ?? 0)}</td>
      <td class=${`right number ${(vector[feed] ?? 0) < (own[feed] ?? 0) ? "lacks" : ""}`}>${count(vector[feed] ?? 0)}</td></tr>`,
    )}</tbody></table>`;
}

/** One kind of misbehaviour, as the state has it. */
export function wrong({ kind, carrier, origin, detail, count: times, last_at: at }) {
  return html`<li><strong>${kind}</strong> <span class="small muted number">${plural(times, "time")}, last <time datetime=${at} data-age></time></span>
    <p class="small">${detail}</p><p class="small muted">${carrier ? `Received from ${carrier}` : "Sender unknown"}${origin && origin !== carrier ? `, about ${origin}` : ""}</p></li>`;
}

/** A quarantine, with its evidence to take elsewhere. */
export function quarantined({ origin, why, since }, evidence, may) {
  return html`<div class="notice error"><p><strong>${origin} is quarantined</strong> since <time datetime=${since} data-local></time></p><p>${why}</p>
    ${exports(evidence)}
    ${may ? html`<p><button type="button" class="button compact danger" @click=${() => void actions.lift(origin)}>Lift the quarantine…</button></p>` : nothing}</div>`;
}

function exports(evidence) {
  return evidence.length
    ? html`<ul class="plain-list small">${evidence.map(
        (
          one,
        ) => html`<li><a href=${`/api/v1/evidence/${one.digest}`} download=${`herald-evidence-${one.digest.slice(0, 16)}.json`}>Evidence of <time datetime=${one.found_at} data-local></time></a>
        <span class="muted">two seals of the same sequence number, at <a href=${`/rps/${one.rp}`}>${one.rp.slice(0, 8)}…</a></span></li>`,
      )}</ul>`
    : nothing;
}
