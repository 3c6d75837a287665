/**
 * A list of the REST interface on a page: keyset pages, filters in the address, kept current by administrative events.
 *
 *     const leases = new Listing({
 *       url: "/api/v1/leases",
 *       table: { caption, columns, key, empty },                  // of table.js
 *       concerns: ({ type }) => type.startsWith("io.herald.lease."),
 *     });
 *     keepCurrent([leases]);
 *
 * The markup is templates/portal/listing.html: a form whose fields are named as the list's query parameters, if it has
 * filters, a box for the rows, and a pager, if it has pages. Filters and the place stand in the page's address, so that a view can be linked, reloaded, and gone back
 * to. Fields of type datetime-local are in the zone that the reader chose, and in UTC in the address.
 *
 * The states that a reader meets: loading (on a first look and after a change of filters), rows, nothing (there is none, or
 * none that matches), broken (with the domain's sentence, and what to do), old (rows stay, a notice says why they are).
 */

import { byId, pageData } from "./elements.js";
import { openDomain } from "./live.js";
import { tellEnd } from "./domain_connection.js";
import { PacedPoll } from "./polling.js";
import { Refused, SessionEnded, getJson } from "./requests.js";
import { Table, html, nothing, render } from "./table.js";
import { fieldOf, fillTimes, instantOf } from "./times.js";

/** @import { TableOptions } from "./table.js" */

/** @import { DomainState } from "./shapes.d.ts" */
/** @import { AdminEvent } from "./types.d.ts" */

const ROWS = 50;
const CURSOR = "cursor";
const ALONE = "listing"; // the id of a list that has the page's address for itself

export class Listing {
  /** The items shown; empty before the first answer. */
  items = [];
  #options;
  #parts;
  #table;
  #cursor = "";
  #state = "loading"; // rows, broken
  #look = new PacedPoll(
    () => this.#ask(),
    (answer) => this.#show(answer),
    (error) => this.#failed(error),
  );

  /**
   * @param {{id?: string, url: string, table: TableOptions, concerns?: (event: AdminEvent, items: any[]) => boolean,
   *   query?: (filters: Record<string, any>) => Record<string, string>, onShown?: (answer: any) => void}} options
   *   `id` of the box ("listing"); `query` turns filters into the request's query where they are not the same.
   */
  constructor(options) {
    this.#options = {
      id: ALONE,
      concerns: () => false,
      query: (filters) => filters,
      onShown: () => {},
      ...options,
    };
    this.#parts = partsOf(this.#options.id);
    this.#table = new Table(this.#parts.table, { ...this.#options.table, rowsMax: ROWS });
    this.#readAddress();
    this.#listen();
    void this.#look.now();
  }

  /** Whether an event changes the listed rows. */
  concerns(event) {
    return this.#options.concerns(event, this.items);
  }

  /** Look again, soon: looks are bounded in rate however often this is called. @param {number} [changes] for the sake of so many */
  refresh(changes = 1) {
    this.#look.soon(changes);
  }

  /** Draw what is shown anew: something besides the items has changed (names have arrived). */
  redraw() {
    if (this.#state === "rows") this.#draw();
  }

  /** Say that what is shown is old, or that it no longer is ("" for that). @param {string} why */
  old(why) {
    this.#parts.box.classList.toggle("stale", Boolean(why));
    if (this.#state === "rows") this.#tell(why);
  }

  /** The filters that are set: fields of the form with something in them. */
  filters() {
    const set = {};
    for (const field of this.#fields()) {
      const value = field.type === "checkbox" ? (field.checked ? field.value : "") : field.value.trim();
      if (value) set[field.name] = field.type === "datetime-local" ? new Date(instantOf(value)).toISOString() : value;
    }
    return set;
  }

  /** The query of the rows shown, without place: for a link to an export of them. */
  query() {
    return new URLSearchParams(this.#options.query(this.filters()));
  }

  #ask() {
    const query = this.query();
    query.set("limit", String(ROWS));
    if (this.#cursor) query.set(CURSOR, this.#cursor);
    return getJson(`${this.#options.url}?${query}`);
  }

  #show(answer) {
    this.items = answer.items;
    this.#state = "rows";
    this.old("");
    this.#settled();
    this.#draw();
    const { pager, first, next } = this.#parts;
    if (pager) {
      next.dataset.cursor = answer.next ?? "";
      next.hidden = !answer.next;
      first.hidden = !this.#cursor;
      pager.hidden = next.hidden && first.hidden;
    }
    this.#options.onShown(answer);
  }

  #draw() {
    const { table, said } = this.#parts;
    table.hidden = this.items.length === 0;
    said.hidden = !table.hidden;
    if (table.hidden) render(html`<div class="empty">${this.#empty()}</div>`, said);
    else this.#table.show(this.items);
    fillTimes(table);
  }

  #empty() {
    if (this.#cursor) return html`<strong>No more rows</strong>`;
    if (this.#isFiltered()) {
      return html`<strong>No results</strong><span>Rows that do not match the filters are hidden.</span>
        <button type="button" class="button compact" @click=${() => this.#clear()}>Show all</button>`;
    }
    return this.#options.table.empty;
  }

  #failed(error) {
    if (error instanceof SessionEnded) tellEnd(error);
    if (this.#state === "rows") {
      this.old(`${error.message} The data shown is out of date.`);
      return;
    }
    this.#state = "broken";
    this.#settled();
    const { pager, table, said } = this.#parts;
    if (pager) pager.hidden = true;
    table.hidden = true;
    said.hidden = false;
    const again = () => this.#begin();
    const reset = error instanceof Refused && error.status === 400;
    render(
      html`<div class="broken"><strong>${error instanceof Refused ? "Request refused" : "No response"}</strong>
        <span>${error.message}</span>
        ${
          reset
            ? html`<button type="button" class="button compact" @click=${() => this.#clear()}>Show all</button>`
            : html`<button type="button" class="button compact" @click=${again}>Try again</button>`
        }</div>`,
      said,
    );
  }

  #tell(why) {
    const { away } = this.#parts;
    away.hidden = !why;
    render(
      why
        ? html`${why} <button type="button" class="button compact" @click=${() => this.refresh()}>Try again</button>`
        : nothing,
      away,
    );
  }

  #settled() {
    const { box, rows, table, said } = this.#parts;
    if (!table.parentElement) rows.replaceChildren(table, said); // what stood there while loading
    box.classList.remove("loading");
    box.removeAttribute("aria-busy");
  }

  // ---- filters, the place, the address ----

  #listen() {
    const { form, clear, first, next } = this.#parts;
    form?.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#go("");
    });
    form?.addEventListener("change", () => this.#go(""));
    clear?.addEventListener("click", () => this.#clear());
    next?.addEventListener("click", () => this.#go(next.dataset.cursor));
    first?.addEventListener("click", () => this.#go(""));
    if (form) {
      addEventListener("popstate", () => {
        this.#readAddress();
        this.#begin();
      });
    }
  }

  #go(cursor) {
    this.#cursor = cursor;
    const address = new URLSearchParams(this.#options.id === ALONE ? "" : location.search); // the other lists' part stays
    for (const name of [...this.#fields().map((field) => field.name), this.#place()]) address.delete(name);
    for (const [name, value] of Object.entries(this.filters())) {
      if (value !== this.#default(name)) address.set(name, value);
    }
    if (cursor) address.set(this.#place(), cursor);
    const text = address.size ? `?${address}` : location.pathname;
    if (text !== location.search) history.pushState(null, "", text);
    this.#begin();
    if (cursor || this.#parts.box.getBoundingClientRect().top < 0) this.#parts.box.scrollIntoView({ block: "start" });
  }

  #begin() {
    this.#state = "loading";
    this.#showClear();
    this.#parts.box.classList.add("loading");
    this.#parts.box.setAttribute("aria-busy", "true");
    void this.#look.now();
  }

  #clear() {
    this.#parts.form?.reset();
    this.#go("");
  }

  #readAddress() {
    const address = new URLSearchParams(location.search);
    this.#cursor = this.#parts.pager ? (address.get(this.#place()) ?? "") : "";
    for (const field of this.#fields()) {
      const value = address.get(field.name) ?? this.#default(field.name);
      if (field.type === "checkbox") field.checked = value === field.value;
      else field.value = field.type === "datetime-local" && value ? fieldOf(value) : value;
    }
    this.#showClear();
  }

  #showClear() {
    if (this.#parts.clear) this.#parts.clear.hidden = !this.#isFiltered();
  }

  #isFiltered() {
    return Object.entries(this.filters()).some(([name, value]) => value !== this.#default(name));
  }

  /** Name of the cursor in the address, which several lists of a page share. */
  #place() {
    return this.#options.id === ALONE ? CURSOR : `${this.#options.id}-${CURSOR}`;
  }

  /** Default value of a field: the first option of a list, else empty. */
  #default(name) {
    const field = this.#parts.form?.elements.namedItem(name);
    return field instanceof HTMLSelectElement ? field.options[0].value : "";
  }

  #fields() {
    return this.#parts.form ? [...this.#parts.form.elements].filter(({ name }) => name) : [];
  }
}

/**
 * Have listings look again when an administrative event concerns them. For who may follow the domain's events; for others
 * the page is as old as its last look. Returns the Live, or null.
 * @param {Listing[]} listings
 * @param {(state: DomainState, events: AdminEvent[]) => void} [onChange] for what else the page shows of the state
 */
export function keepCurrent(listings, onChange = () => {}) {
  if (!("live" in pageData())) return null;
  return openDomain({
    onChange: (state, events, { fresh }) => {
      for (const listing of listings) {
        const changes = events.filter((event) => listing.concerns(event)).length;
        if (fresh || changes) listing.refresh(Math.max(1, changes));
      }
      onChange(state, events);
    },
    onState: (state, error) => {
      const why =
        state === "live"
          ? ""
          : `${error?.message ?? "The connection to the domain is interrupted."} The data shown is out of date.`;
      for (const listing of listings) listing.old(why);
    },
  });
}

function partsOf(id) {
  const box = byId(id);
  const part = (name) => document.getElementById(`${id}-${name}`);
  return {
    box,
    table: document.createElement("div"),
    said: document.createElement("div"),
    rows: box.querySelector("[data-rows]"),
    away: box.querySelector("[data-away]"),
    form: part("filters"),
    clear: part("clear"),
    pager: part("pager"),
    first: part("first"),
    next: part("next"),
  };
}
