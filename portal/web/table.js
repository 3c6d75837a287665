/**
 * Live tables: keyed rows, sorted by a column that the reader chooses, rendered by lit-html so that only changes are
 * touched.
 *
 *     const table = new Table(document.getElementById("peers"), {
 *       caption: "Peers and how delivery to them goes",
 *       key: (peer) => peer.name,
 *       columns: [
 *         { name: "Name", cell: (peer) => html`<a href="/federation#${peer.name}">${peer.name}</a>`, by: (peer) => peer.name, header: true },
 *         { name: "Backlog", cell: (peer) => count(peer.delivery.backlog), by: (peer) => peer.delivery.backlog, number: true, width: "8rem" },
 *       ],
 *       sort: { column: 1, descending: true },
 *       empty: "No peers yet.",
 *     });
 *     table.show(Object.values(state.peers));
 *
 * While the pointer or the focus is inside, rows keep their places, so that nothing moves under a hand: values change, the
 * order follows when it has left.
 */

import { html, nothing, render } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";

import { fillTimes } from "./times.js";

export { html, nothing, render };

/** @typedef {{name: string, cell: (row: any) => unknown, by?: (row: any) => string | number | null, header?: boolean,
 *   number?: boolean, width?: string, wideOnly?: boolean}} Column */

/** @typedef {{caption: string, columns: Column[], key: (row: any) => string, sort?: {column: number, descending?: boolean},
 *   empty?: unknown, rowsMax?: number}} TableOptions */

export class Table {
  #element;
  #options;
  #sort;
  #rows = [];
  #order = []; // keys as they stand on the page
  #widths = null;
  #shown = false;

  /**
   * @param {HTMLElement} element an empty box that the table fills
   * @param {TableOptions} options
   */
  constructor(element, options) {
    this.#element = element;
    this.#options = { rowsMax: 500, empty: "No rows.", ...options };
    this.#sort = options.sort ?? null;
    const after = () => queueMicrotask(() => this.#shown && this.#draw()); // a row with the focus that is being removed: not during the removal
    for (const left of ["pointerleave", "focusout"]) element.addEventListener(left, after);
  }

  /** Show these rows, sorted by the chosen column; without one in the given order. @param {any[]} rows */
  show(rows) {
    if (!this.#shown) this.#element.replaceChildren(); // what stood there while loading
    this.#shown = true;
    this.#rows = rows;
    this.#draw();
  }

  #draw() {
    const { columns, caption, key, empty, rowsMax } = this.#options;
    if (this.#rows.length === 0) {
      this.#order = [];
      render(html`<div class="empty">${empty}</div>`, this.#element);
      return;
    }
    const rows = this.#ordered().slice(0, rowsMax);
    this.#order = rows.map(key);
    const more = this.#rows.length - rows.length;
    render(
      html`<table>
          <caption class="visually-hidden">${caption}</caption>
          <thead><tr>${columns.map((column, index) => this.#head(column, index))}</tr></thead>
          <tbody>${repeat(rows, key, (row) => html`<tr>${columns.map((column) => cell(column, row))}</tr>`)}</tbody>
        </table>
        ${more > 0 ? html`<p class="empty">${more} more rows are not shown.</p>` : nothing}`,
      this.#element,
    );
    this.#setWidths();
    fillTimes(this.#element);
  }

  #head(column, index) {
    const sorted = this.#sort?.column === index;
    const direction = sorted ? (this.#sort.descending ? "descending" : "ascending") : nothing;
    const classes = `${column.number ? "right" : ""} ${column.wideOnly ? "wide-only" : ""}`;
    return html`<th scope="col" class=${classes} aria-sort=${direction}>
      ${column.by ? html`<button type="button" class="sort" @click=${() => this.#sortBy(index)}>${column.name}</button>` : column.name}
    </th>`;
  }

  #sortBy(column) {
    const numeric = Boolean(this.#options.columns[column].number);
    const again = this.#sort?.column === column;
    this.#sort = { column, descending: again ? !this.#sort.descending : numeric };
    this.#order = [];
    this.#draw();
  }

  #ordered() {
    const { columns, key } = this.#options;
    if (this.#order.length && this.#held()) {
      const place = new Map(this.#order.map((one, index) => [one, index]));
      return [...this.#rows].sort((a, b) => (place.get(key(a)) ?? Infinity) - (place.get(key(b)) ?? Infinity) || 0);
    }
    const by = this.#sort && columns[this.#sort.column].by;
    if (!by) return this.#rows;
    const sign = this.#sort.descending ? -1 : 1;
    return [...this.#rows].sort((a, b) => sign * compare(by(a), by(b)) || compare(key(a), key(b)));
  }

  #held() {
    const body = this.#element.querySelector("tbody");
    return Boolean(body?.matches(":hover") || body?.contains(document.activeElement));
  }

  /** Widths are set by script: the page's policy allows no style attribute. */
  #setWidths() {
    const head = this.#element.querySelector("thead tr");
    if (this.#widths === head) return;
    this.#widths = head;
    this.#options.columns.forEach(({ width }, index) => {
      if (width) head.children[index].style.width = width;
    });
  }
}

function cell(column, row) {
  const classes = `${column.number ? "right number" : ""} ${column.wideOnly ? "wide-only" : ""}`;
  return column.header
    ? html`<th scope="row" class=${classes}>${column.cell(row)}</th>`
    : html`<td class=${classes} data-name=${column.name}>${column.cell(row)}</td>`;
}

/** A name with places after its slashes at which a narrow column may break the line. @param {string} name */
export function breakable(name) {
  return name.split(/(?<=\/)/).map((part) => html`${part}<wbr>`);
}

/** Compare numbers by size, other values as text; missing values are last in ascending order. */
function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}
