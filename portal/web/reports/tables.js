/** The tables of a report: one at a time, a page at a time, and all of it as CSV or Parquet. */

import { count, plural } from "../format.js";
import { getJson } from "../requests.js";
import { html, nothing, render } from "../table.js";
import { plain, shown, spoken, unitBeside } from "./words.js";

const PAGE_ROWS = 20;
const FIRST = ["principals", "rps", "advice", "regions", "peers", "hours"]; // what most readers want; the rest is one choice away

export class Tables {
  #element;
  #run;
  #tables;
  #name;
  /** @type {any} */
  #page = null;
  /** @type {(string | null)[]} */
  #cursors = [null]; // of the pages up to the present one
  #error = "";
  #nameOf;
  #attempt = 0;

  /**
   * @param {HTMLElement} element @param {string} run its id @param {Record<string, {about: string, rows: number}>} tables
   * @param {(rp: string) => string} nameOf
   */
  constructor(element, run, tables, nameOf) {
    this.#element = element;
    this.#run = run;
    this.#tables = tables;
    this.#nameOf = nameOf;
    const names = Object.keys(tables);
    this.#name =
      FIRST.find((name) => tables[name]?.rows > 0) ?? names.find((name) => tables[name].rows > 0) ?? names[0];
    if (this.#name) void this.#load();
  }

  async #load() {
    const attempt = ++this.#attempt;
    const cursor = this.#cursors.at(-1);
    const query = new URLSearchParams({ limit: String(PAGE_ROWS), ...(cursor && { cursor }) });
    this.#draw();
    try {
      const page = await getJson(`${this.#address()}?${query}`);
      if (attempt !== this.#attempt) return;
      [this.#page, this.#error] = [page, ""];
    } catch (error) {
      if (attempt !== this.#attempt) return;
      [this.#page, this.#error] = [null, error.message];
    }
    this.#draw();
  }

  #address() {
    return `/api/v1/reports/${this.#run}/table/${this.#name}`;
  }

  #choose(name) {
    this.#name = name;
    this.#cursors = [null];
    this.#page = null;
    void this.#load();
  }

  #turn(cursor) {
    if (cursor) this.#cursors.push(cursor);
    else this.#cursors.pop();
    void this.#load();
  }

  /** Draw again, as names have arrived. */
  again() {
    this.#draw();
  }

  #draw() {
    const page = this.#page?.table === this.#name ? this.#page : null;
    const { about, rows } = this.#tables[this.#name];
    render(
      html`<div class="card-head report-tables-head">
          <h2 id="tables-title">Tables</h2>
          <label class="visually-hidden" for="table">Table</label>
          <select id="table" @change=${({ target }) => this.#choose(target.value)}>
            ${Object.entries(this.#tables).map(([name, { rows: so }]) => html`<option value=${name} ?selected=${name === this.#name}>${spoken(name)} (${count(so)})</option>`)}
          </select>
          <span class="actions">
            <a class="button compact" href="${this.#address()}?format=csv" download>CSV</a>
            <a class="button compact" href="${this.#address()}?format=parquet" download>Parquet</a>
          </span>
        </div>
        <p class="muted small report-about">${plain(about)}</p>
        ${this.#error ? html`<p class="broken"><strong>${this.#error}</strong></p>` : nothing}
        <div class="table-scroll" tabindex="0" role="group" aria-labelledby="tables-title">${page ? this.#body(page) : nothing}</div>
        ${rows > PAGE_ROWS ? this.#pager(page, rows) : nothing}`,
      this.#element,
    );
  }

  #body({ columns, items }) {
    if (items.length === 0) return html`<p class="empty">No rows.</p>`;
    const numeric = columns.map(({ type }) => /int|double|long/.test(type));
    return html`<table class="report-table">
      <caption class="visually-hidden">${spoken(this.#name)}</caption>
      <thead><tr>${columns.map(
        (
          { name, unit, about },
          index,
        ) => html`<th scope="col" class=${numeric[index] ? "right" : ""} title=${plain(about)}>
        ${spoken(name)}${unitBeside(unit) ? html` <span class="unit">${unitBeside(unit)}</span>` : nothing}</th>`,
      )}</tr></thead>
      <tbody>${items.map((row) => html`<tr>${columns.map(({ name, unit }, index) => html`<td class=${numeric[index] ? "right number" : ""}>${this.#cell(name, unit, row[index])}</td>`)}</tr>`)}</tbody>
    </table>`;
  }

  #cell(name, unit, value) {
    if (value && ["rp", "rp_a", "rp_b", "region"].includes(name)) {
      return html`<a class="rp-link" href="/rps/${encodeURIComponent(value)}" title=${value}>${this.#nameOf(value)}</a>`;
    }
    return shown(value, unit);
  }

  #pager(page, rows) {
    const first = (this.#cursors.length - 1) * PAGE_ROWS + 1;
    return html`<div class="pager report-pager">
      <button type="button" class="button compact" ?disabled=${this.#cursors.length === 1} @click=${() => this.#turn(null)}>Previous</button>
      <span class="muted small number">${page ? html`${count(first)} to ${count(first + page.items.length - 1)} of ${plural(rows, "row")}` : "…"}</span>
      <button type="button" class="button compact" ?disabled=${!page?.next} @click=${() => this.#turn(page.next)}>Next</button>
    </div>`;
  }
}
