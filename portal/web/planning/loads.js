/**
 * Loads of the domains as bars on one scale, from empty to full, with lines that all bars share: the fair share, the bound above
 * which a domain moves readers away, and the pressure above which replicas are added. The numbers stand beside the bars.
 */

import { svg } from "lit-html";

import { duration, percent, plural } from "../format.js";
import { html, nothing } from "../table.js";

const BARS_MAX = 24;
const SCALE_MIN = 1; // of the capacity; a domain that is overloaded makes the scale longer

/** @param {any} loads of GET /api/v1/plan/loads */
export function loadBars({ domains, fair, bound, hot }) {
  const [here, others] = [domains.filter((one) => one.here), domains.filter((one) => !one.here)];
  others.sort((a, b) => (b.pressure ?? -1) - (a.pressure ?? -1) || a.domain.localeCompare(b.domain));
  const shown = [...here, ...others].slice(0, BARS_MAX);
  const scale = Math.max(SCALE_MIN, ...shown.map(({ pressure }) => pressure ?? 0));
  const limit = fair === null ? null : fair * bound;
  const lines = [
    ...(fair === null ? [] : [["fair", fair]]),
    ...(limit === null || limit > scale ? [] : [["bound", limit]]),
    ["hot", hot],
  ];
  return html`
    <ul class="loads-key small muted" aria-label="Key">
      ${fair === null ? nothing : html`<li><span class="loads-sign fair" aria-hidden="true"></span>fair share ${percent(fair, 1)}</li>`}
      ${limit === null ? nothing : html`<li><span class="loads-sign bound" aria-hidden="true"></span>${bound} × fair share: readers leave</li>`}
      <li><span class="loads-sign hot" aria-hidden="true"></span>${percent(hot, 1)}: replicas are added</li>
    </ul>
    <table class="loads">
      <caption class="visually-hidden">Load of each domain as a share of its capacity</caption>
      <thead class="visually-hidden"><tr><th scope="col">Domain</th><th scope="col">Picture</th><th scope="col">Load</th></tr></thead>
      <tbody>${shown.map((one) => row(one, { scale, lines, limit, hot }))}</tbody>
    </table>
    ${domains.length > shown.length ? html`<p class="muted small space-above">${plural(domains.length - shown.length, "domain")} with less load are not shown.</p>` : nothing}
    ${others.length ? nothing : html`<p class="muted small space-above">No peer is active. Peers could hold replicas and share the load.</p>`}`;
}

function row(one, { scale, lines, limit, hot }) {
  const { domain, here, pressure, capacity, delay_ms: delay, not_asked_until: until, willing } = one;
  const look = pressure === null ? "" : pressure > hot ? "bad" : limit !== null && pressure > limit ? "warn" : "good";
  const notes = [
    here ? "this domain" : "",
    `class ${capacity}`,
    delay === null ? "" : `${duration(delay)}`,
    willing ? "" : "suspected",
    until ? "not asked now" : "",
  ];
  return html`<tr>
    <th scope="row"><span class="loads-name">${domain}</span><span class="rp-sub">${notes.filter(Boolean).join(", ")}</span></th>
    <td class="loads-picture"><svg aria-hidden="true" width="100%" height="100%" preserveAspectRatio="none">
      <rect class="loads-track" x="0" y="30%" width="100%" height="40%" rx="3"/>
      ${pressure === null ? nothing : svg`<rect class=${`loads-bar ${look}`} x="0" y="30%" width=${at(pressure, scale)} height="40%" rx="3"/>`}
      ${lines.map(([name, value]) => svg`<line class=${`loads-line ${name}`} x1=${at(value, scale)} x2=${at(value, scale)} y1="0" y2="100%"/>`)}
    </svg></td>
    <td class="right number">${pressure === null ? html`<span class="muted">not known</span>` : percent(pressure, 1)}</td>
  </tr>`;
}

const at = (value, scale) => `${(100 * Math.min(1, Math.max(0, value / scale))).toFixed(2)}%`;
