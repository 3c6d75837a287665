/** Homes: the drain of this domain, homes that moved, and who elects successors. */

import { count, duration, plural } from "../format.js";
import { Table, html, nothing } from "../table.js";
import { drainWords, fateWords } from "./words.js";

const SILENT_SHARE = 0.5; // of the stated silence, from which on it is pointed out

/**
 * The drain of this domain.
 * @param {any} drain of GET /api/v1/drain
 * @param {{linkTo: (rp: string) => unknown, forecast: any, onForecast: () => void}} options `forecast` of GET /api/v1/drain/preview; null
 *   before it is asked for
 */
export function drainShown(drain, { linkTo, forecast, onForecast }) {
  const { state, until, homes, handed_over: handed, closes, refusals } = drain;
  if (state === "none" || state === "ended") {
    return html`<p>${drainWords("none")}</p>
      <p class="muted small space-above">Before it stops for long, it hands over homes, deliveries and readers: <code>herald domain drain --until 2h</code>.</p>
      <p class="space-above"><button type="button" class="button compact" @click=${onForecast}>Dry run<span class="visually-hidden"> of a drain</span></button></p>
      ${forecast ? forecastShown(forecast) : nothing}`;
  }
  return html`<p><span class="badge ${state === "done" ? "good" : "warn"}">${drainWords(state)}</span> ${closes ? html`<span class="badge bad">the domain closes</span> ` : nothing}until <time datetime=${until} data-local></time></p>
    <p id="drain-label" class="space-above"><span class="number">${count(handed)} of ${plural(handed + homes, "home")}</span> handed over</p>
    <meter class="planning-meter" min="0" max=${Math.max(1, handed + homes)} .value=${handed} aria-labelledby="drain-label"></meter>
    <dl class="facts dense planning-drain">${LEFT.map(([name, member]) => html`<div><dt>${name}</dt><dd class="number">${count(drain[member])}</dd></div>`)}</dl>
    ${refusals.length ? html`<ul class="plain-list small space-above">${refusals.map((one) => html`<li>${refused(one, linkTo)} ${one.reason}</li>`)}</ul>` : nothing}`;
}

/** What a drain has left: a term and the member of the answer. */
const LEFT = [
  ["Homes that stay", "staying"],
  ["Subscriptions left", "subscriptions"],
  ["Deliveries left", "deliveries"],
  ["Readers left", "readers"],
  ["Endpoints here only", "endpoints"],
];

function forecastShown({ items }) {
  const some = items.filter((one) => one.count);
  if (!some.length) return html`<p class="space-above">It would hand over nothing: no other domain holds a part.</p>`;
  return html`<ul class="plain-list planning-steps">${some.map((one) => {
    const [look, words] = fateWords(one.fate);
    return html`<li><span class="badge ${look}">${words}</span> ${plural(one.count, one.what, NOUNS[one.what])}${one.mode ? html` <span class="tag">${one.mode}</span>` : nothing}<span class="rp-sub">${one.why}</span></li>`;
  })}</ul>`;
}

/** Plurals that are not made by an s. @type {Record<string, string>} */
const NOUNS = { delivery: "deliveries" };

/** Who refused what: a domain the home of an RP, or no domain could hold a subscription. */
function refused({ rp, domain }, linkTo) {
  return rp.startsWith("sub_") ? html`<code>${rp}</code> stays.` : html`${linkTo(rp)}: ${domain} refused.`;
}

/** Proofs that a rendezvous point was handed over twice. @param {any[]} proofs @param {(rp: string) => unknown} linkTo */
export function homeProofs(proofs, linkTo) {
  if (!proofs.length) return nothing;
  return html`<ul class="plain-list small space-above">${proofs.map(
    (one) =>
      html`<li><span class="badge bad">two homes</span> ${linkTo(one.rp)}, term ${count(one.term)}: <strong>${one.kept}</strong> is kept, ${one.other} is not. ${one.detail.join(" ")}</li>`,
  )}</ul>`;
}

/** The table of homes. @param {HTMLElement} element @param {(rp: string) => unknown} linkTo */
export function homeTable(element, linkTo) {
  return new Table(element, {
    caption: "Homes that moved, and those with successors",
    key: ({ rp }) => rp,
    empty: html`<strong>No home moved</strong><span>Move one with <code>herald rp move RP DOMAIN</code>, or name successors with <code>herald rp succession RP DOMAIN DOMAIN</code>.</span>`,
    columns: [
      { name: "Rendezvous point", header: true, cell: ({ rp }) => linkTo(rp) },
      {
        name: "Home",
        cell: ({ home, kind, former, moved_at: at }) => html`<strong>${home}</strong>
          <span class="rp-sub">${kind === null ? "never moved" : html`${kind === "move" ? "moved from" : "succeeded"} ${former}, <time datetime=${at} data-age></time>`}</span>`,
      },
      { name: "Term", number: true, width: "5rem", cell: ({ term }) => count(term) },
      { name: "Successors", cell: successors },
    ],
  });
}

function successors({ electors, silence_s: silence, silent_s: silent, misses, electing }) {
  if (!electors.length) return html`<span class="muted">none are named</span>`;
  const noted = silent !== null && misses > 0 && silent > silence * SILENT_SHARE;
  return html`${electing ? html`<span class="badge bad">election under way</span> ` : noted ? html`<span class="badge warn">home silent for ${duration(silent * 1000)}</span> ` : nothing}${electors.join(", ")}
    <span class="rp-sub">after ${duration(silence * 1000)} of silence</span>`;
}
