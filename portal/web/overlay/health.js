/** Health of the overlay as this domain sees it, the figures of the zones with their coverage, and what is slow or suspected. */

import { age, count, duration, percent, plural, rate } from "../format.js";
import { html, nothing, render } from "../table.js";
import { fillTimes } from "../times.js";
import { zoneOf } from "./words.js";

/** @import { Overlay, OverlayFigure, OverlayFigures, OverlayLink } from "../shapes.d.ts" */
/** @typedef {{events: number | null, copies: number | null} | null} Traffic per second, of the last sample; null: none yet */

const SLOW_MS = 300; // nine of ten pairs of hosts on the Internet answer sooner (docs/simulation)
const NEAR_MS = 30;
const COVERED = 0.9; // a figure that rests on fewer domains says so
const LISTED_MAX = 6;

const STATES = {
  well: ["good", "Well"],
  "suspects-itself": ["warn", "Suspects itself: many links are silent"],
  "accuses-nobody": ["warn", "Accuses nobody: many domains are silent"],
};

/**
 * Whether a link is near, slow or neither, by its round-trip time.
 * @param {Pick<OverlayLink, "rtt_ms">} link
 * @returns {"near" | "slow" | ""}
 */
export function paceOf({ rtt_ms: rtt }) {
  if (rtt === null) return "";
  return rtt >= SLOW_MS ? "slow" : rtt <= NEAR_MS ? "near" : "";
}

/**
 * What a figure rests on, in words: "95 % of 40 domains, oldest 3 min".
 * @param {OverlayFigure} figure @param {number} live
 */
export function basisOf({ coverage, oldest_s: oldest, disputed }, live) {
  const words = `${percent(coverage, 1)} of ${plural(live, "live domain")}${coverage ? `, oldest ${duration(oldest * 1000)}` : ""}`;
  return disputed ? `${words}; reporters contradict a sample` : words;
}

/**
 * @param {Overlay} overlay
 * @param {OverlayLink[]} links those that stand
 * @param {Traffic} traffic
 * @param {HTMLElement} element
 */
export function drawHealth(overlay, links, traffic, element) {
  const { picture } = overlay;
  const inDegree = links.filter(({ chosen }) => !chosen).length;
  render(
    html`<section class="card flush" aria-labelledby="health-title">
      <div class="card-head"><h2 id="health-title">Health</h2>${badge(overlay, links)}</div>
      <dl class="facts dense overlay-facts">
        <div><dt>Component</dt><dd>${component(picture)}</dd></div>
        <div><dt>In-degree</dt><dd>${count(inDegree)}<span class="muted small"> of ${plural(links.length, "link")} chosen by others${degree(picture)}</span></dd></div>
        <div><dt>Redundancy</dt><dd>${redundancy(traffic)}</dd></div>
        <div><dt>Round trips</dt><dd>${times(links)}</dd></div>
        ${picture ? html`<div><dt>Observed</dt><dd>${count(picture.health.observed)}<span class="muted small"> domains as a monitor, ${count(picture.health.silent)} silent</span></dd></div>` : nothing}
      </dl>
      ${picture?.health.accused_by.length ? html`<p class="notice warning overlay-part">Accused of being silent by ${picture.health.accused_by.join(", ")}.</p>` : nothing}
    </section>`,
    element,
  );
}

function badge({ running, picture, domains }, links) {
  if (!running) return html`<span class="badge bad">Not running</span>`;
  if (links.length === 0 && domains > 1) return html`<span class="badge bad">Isolated</span>`;
  const [level, words] = picture ? STATES[picture.health.state] : ["off", "No figures yet"];
  return html`<span class=${`badge ${level}`}>${words}</span>`;
}

function component(picture) {
  if (!picture) return html`<span class="muted">not known yet</span>`;
  const { reporting, live } = picture.whole;
  return html`${count(reporting.value)}<span class="muted small"> of ${plural(live, "live domain")} have reached this one with rows${reporting.value ? `, oldest ${duration(reporting.oldest_s * 1000)}` : ""}</span>`;
}

function degree(picture) {
  const links = picture?.whole.sums.links;
  const reporting = picture?.whole.reporting.value;
  return links && reporting ? `; a domain has ${rate(links.value / reporting, "")} in the mean` : "";
}

function redundancy(traffic) {
  if (!traffic || traffic.events === null) return html`<span class="muted">no sample yet</span>`;
  const { events, copies } = traffic;
  if (!events && !copies) return html`–<span class="muted small"> no events from other domains</span>`;
  const each = events ? (copies ?? 0) / events : 0;
  return html`${each.toFixed(2)}<span class="muted small"> copies for each of ${rate(events, " events/s")}</span>`;
}

function times(links) {
  const known = links.map(({ rtt_ms: one }) => one).filter((one) => one !== null).sort((a, b) => a - b); // prettier-ignore
  if (known.length === 0) return html`<span class="muted">none measured</span>`;
  const median = known[Math.floor((known.length - 1) / 2)];
  return html`${duration(median)}<span class="muted small"> in the median, ${duration(known.at(-1))} at most, of ${count(known.length)} measured</span>`;
}

/**
 * Domains that are suspected, links that are slow, and scores with an effect.
 * @param {Overlay} overlay @param {OverlayLink[]} links @param {(name: string) => unknown} linkTo @param {HTMLElement} element
 */
export function drawTrouble({ picture }, links, linkTo, element) {
  const slow = links.filter((link) => paceOf(link) === "slow");
  const suspected = picture?.suspected ?? [];
  const scores = (picture?.scores ?? []).filter(({ effects }) => effects.length);
  const rows = [
    ...suspected.map(({ domain, since, accusers }) => ({ domain, words: `Suspected for ${age(since)}: ${plural(accusers.length, "monitor")} had no sign of life` })),
    ...scores.map(({ peer, effects, reason }) => ({ domain: peer, words: `${effects.join(", ")}: ${reason}` })),
    ...slow.map(({ peer, rtt_ms: rtt }) => ({ domain: peer, words: `Slow link: ${duration(rtt)}` })),
  ]; // prettier-ignore
  element.hidden = rows.length === 0;
  render(
    html`<section class="card flush" aria-labelledby="trouble-title">
      <div class="card-head"><h2 id="trouble-title">Slow and suspected</h2><span class="muted small">${count(rows.length)}</span></div>
      <ul class="attention">${rows.slice(0, LISTED_MAX).map(({ domain, words }) => html`<li>${linkTo(domain)}<span></span><span class="rp-sub">${words}</span></li>`)}</ul>
      ${rows.length > LISTED_MAX ? html`<p class="muted small overlay-part">and ${count(rows.length - LISTED_MAX)} more</p>` : nothing}
    </section>`,
    element,
  );
  fillTimes(element);
}

/** @type {[string, "sessions" | "events_in_per_s" | "events_out_per_s" | "backlog", (value: number) => unknown][]} */
const COLUMNS = [
  ["Readers", "sessions", count],
  ["Published", "events_in_per_s", (value) => rate(value)],
  ["Delivered", "events_out_per_s", (value) => rate(value)],
  ["Waiting", "backlog", count],
];

/** @param {Overlay} overlay @param {HTMLElement} element */
export function drawFigures({ picture }, element) {
  element.hidden = !picture;
  if (!picture) return;
  const zones = [...picture.zones].sort(
    (a, b) => b.known - a.known || zoneOf(a.zone ?? "").localeCompare(zoneOf(b.zone ?? "")),
  );
  render(
    html`<section class="card flush" aria-labelledby="figures-title">
      <div class="card-head"><h2 id="figures-title">Figures by zone</h2><span class="muted small"><time datetime=${picture.at} data-age></time></span></div>
      <div class="overlay-figures" tabindex="0" role="group" aria-labelledby="figures-title"><table>
        <thead><tr><th scope="col">Zone</th><th scope="col" class="number">Domains</th>${COLUMNS.map(([name]) => html`<th scope="col" class="number">${name}</th>`)}<th scope="col">Rests on</th></tr></thead>
        <tbody>${zones.map((one) => figuresRow(one, zoneOf(one.zone ?? "")))}${zones.length === 1 ? nothing : figuresRow(picture.whole, "All")}</tbody>
      </table></div>
    </section>`,
    element,
  );
  fillTimes(element);
}

/** @param {OverlayFigures} figures @param {string} name */
function figuresRow(figures, name) {
  const { known, live, reporting, sums } = figures;
  const disputed = Object.values(sums).some((one) => one.disputed);
  const weak = reporting.coverage < COVERED;
  return html`<tr><th scope="row">${name}</th><td class="number">${count(known)}${live < known ? html`<span class="muted small"> (${count(known - live)} suspected)</span>` : nothing}</td>
    ${COLUMNS.map(([, field, format]) => html`<td class="number">${reporting.value ? String(format(sums[field].value)) : "–"}</td>`)}
    <td>${disputed ? html`<span class="badge warn">disputed</span> ` : weak ? html`<span class="badge warn">partial</span> ` : nothing}<span class="muted small">${basisOf(reporting, live)}</span></td></tr>`;
}
