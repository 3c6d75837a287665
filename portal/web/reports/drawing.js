/** Small pictures: bars beside names, a heat map, a histogram, clusters. SVG whose sizes are attributes: no styles in markup. */

import { html, nothing, svg } from "lit-html";

import { breakable } from "../table.js";

const HEAT_STEPS = 5;

/**
 * A list of bars, the longest is the whole width.
 * @param {{name: unknown, href?: string, value: number, text: unknown, note?: string, part?: number}[]} rows
 *   `part`: how much of the value is marked (refused, recommended)
 */
export function bars(rows, empty = "No data.") {
  const most = Math.max(...rows.map(({ value }) => value), 0);
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`<ol class="report-bars">${rows.map(
    ({ name, href, value, text, note, part }) => html`<li>
    <span class="report-bar-name">${href ? html`<a class="rp-link" href=${href}>${named(name)}</a>` : named(name)}
      ${note ? html`<span class="muted small">${note}</span>` : nothing}</span>
    <span class="report-bar-value number">${text}</span>
    <svg class="report-bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
      <rect class="report-bar-whole" width=${share(value, most)} height="1"></rect>
      ${part ? svg`<rect class="report-bar-part" width=${share(part, most)} height="1"></rect>` : nothing}
    </svg>
  </li>`,
  )}</ol>`;
}

function named(name) {
  return typeof name === "string" ? breakable(name || "(nobody's)") : name;
}

function share(value, most) {
  return most > 0 ? Math.max((100 * value) / most, value > 0 ? 0.6 : 0) : 0;
}

/**
 * Rows by columns of hours; darker is more. The value under the pointer is shown below.
 * @param {{key: string, name: string, href: string, values: number[]}[]} rows
 * @param {string[]} hours as they are said
 * @param {(value: number) => unknown} format
 */
export function heat(rows, hours, format) {
  const most = Math.max(...rows.flatMap(({ values }) => values), 1);
  const level = (value) => (value > 0 ? Math.max(1, Math.ceil(HEAT_STEPS * Math.sqrt(value / most))) : 0);
  const say = ({ target, currentTarget }) => {
    const [row, column] = [Number(target.dataset?.row), Number(target.dataset?.column)];
    if (!rows[row] || !(column >= 0)) return;
    const said = currentTarget.querySelector(".heat-said");
    said.textContent = `${rows[row].name}, ${hours[column]}: ${format(rows[row].values[column])}`;
  };
  return html`<div class="heat" @pointerover=${say}>
    ${rows.map(({ name, href, values }, row) => {
      const peak = values.indexOf(Math.max(...values));
      return html`<a class="rp-link heat-name small" href=${href} title=${name}>${name}</a>
        <svg class="heat-row" viewBox="0 0 ${hours.length} 1" preserveAspectRatio="none" role="img"
          aria-label="${name}: at most ${format(values[peak])}, ${hours[peak]}">
          ${values.map((value, column) => svg`<rect class="heat-${level(value)}" x=${column} width="1" height="1" data-row=${row} data-column=${column}></rect>`)}
        </svg>`;
    })}
    <span></span>
    <div class="heat-axis muted small"><span>${hours[0]}</span>${hours.length > 2 ? html`<span>${hours[hours.length >> 1]}</span>` : nothing}${hours.length > 1 ? html`<span>${hours.at(-1)}</span>` : nothing}</div>
    <p class="heat-said small muted">Hover over an hour to see its value.</p>
    <p class="heat-key small muted" aria-hidden="true">less ${Array.from({ length: HEAT_STEPS + 1 }, (_, step) => html`<svg viewBox="0 0 1 1"><rect class="heat-${step}" width="1" height="1"></rect></svg>`)} more, up to ${format(most)} an hour</p>
  </div>`;
}

/**
 * Columns side by side, a histogram over a scale of names.
 * @param {{value: number, says: string}[]} columns @param {string} label @param {string[]} axis
 */
export function columnsOf(columns, label, axis) {
  const most = Math.max(...columns.map(({ value }) => value), 1);
  return html`<svg class="report-columns" viewBox="0 0 ${columns.length} 100" preserveAspectRatio="none" role="img" aria-label=${label}>
      ${columns.map(({ value, says }, index) => {
        const height = Math.max((100 * value) / most, value > 0 ? 1 : 0);
        return svg`<rect x=${index + 0.08} y=${100 - height} width="0.84" height=${height}><title>${says}</title></rect>`;
      })}
    </svg>
    <div class="heat-axis muted small">${axis.map((text) => html`<span>${text}</span>`)}</div>`;
}

/**
 * A region of RPs with nearly the same subscribers: a dot each, as large as it has subscribers, held together by lines.
 * @param {{name: string, href: string, subscribers: number}[]} members
 */
export function cluster(members, label) {
  const most = Math.max(...members.map(({ subscribers }) => subscribers), 1);
  const shown = members.slice(0, 24);
  const places = shown.map(({ subscribers }, index) => {
    const angle = (2 * Math.PI * index) / shown.length - Math.PI / 2;
    const reach = shown.length === 1 ? 0 : 34;
    return {
      x: 50 + reach * Math.cos(angle),
      y: 50 + reach * Math.sin(angle),
      r: 3 + 6 * Math.sqrt(subscribers / most),
    };
  });
  const lines = places.flatMap((a, index) => places.slice(index + 1).map((b) => [a, b]));
  return html`<svg class="cluster" viewBox="0 0 100 100" role="img" aria-label=${label}>
    ${lines.map(([a, b]) => svg`<line x1=${a.x} y1=${a.y} x2=${b.x} y2=${b.y}></line>`)}
    ${places.map(({ x, y, r }, index) => svg`<a href=${shown[index].href} aria-label=${shown[index].name}><circle cx=${x} cy=${y} r=${r}><title>${shown[index].name}</title></circle></a>`)}
  </svg>`;
}
