/** The tree of names beside the list: a level at a time, as its branches are opened; a branch leads to the list of what is below. */

import { count } from "../format.js";
import { PacedPoll } from "../polling.js";
import { getJson } from "../requests.js";
import { html, nothing, render } from "../table.js";

const WIDE = "(width >= 75rem)";
const LEVEL_MAX = 200;

export class NameTree {
  #details;
  #box;
  #root;
  #prefix;
  #open = new Map(); // name -> {items, next, failed} of opened branches
  #paused = new PacedPoll(
    () => this.#refresh(),
    () => {},
    () => {},
  ); // it shows by itself what failed

  /** @param {HTMLDetailsElement} details @param {{root: string, prefix: string}} about the domain's own name, and what the list is below */
  constructor(details, { root, prefix }) {
    this.#details = details;
    this.#box = details.querySelector("nav");
    this.#root = root;
    this.#prefix = prefix;
    details.hidden = false;
    const wide = matchMedia(WIDE);
    details.open = wide.matches;
    wide.addEventListener("change", () => (details.open = wide.matches));
    details.addEventListener("toggle", () => details.open && void this.#refresh());
    this.#open.set(root, null);
    for (const name of above(root, prefix)) this.#open.set(name, null);
    if (details.open) void this.#refresh();
  }

  /** Names have changed: look soon. */
  look() {
    if (this.#details.open) this.#paused.soon();
  }

  async #refresh() {
    await Promise.all([...this.#open.keys()].map((name) => this.#load(name)));
    this.#draw();
  }

  async #load(name) {
    try {
      const { items, next } = await getJson(`/api/v1/names?limit=${LEVEL_MAX}&prefix=${encodeURIComponent(name)}`);
      if (this.#open.has(name)) this.#open.set(name, { items, next, failed: "" });
    } catch (error) {
      if (this.#open.has(name)) {
        this.#open.set(name, { ...(this.#open.get(name) ?? { items: [], next: null }), failed: error.message });
      }
    }
  }

  async #toggle(name) {
    if (this.#open.has(name)) {
      this.#open.delete(name);
    } else {
      this.#open.set(name, null);
      await this.#load(name);
    }
    this.#draw();
  }

  #draw() {
    if (this.#box.classList.contains("loading")) {
      this.#box.classList.remove("loading");
      this.#box.replaceChildren();
    }
    render(this.#level(this.#root), this.#box);
  }

  #level(name) {
    const level = this.#open.get(name);
    if (!level) return html`<p class="muted small">Loading…</p>`;
    if (level.failed && level.items.length === 0) {
      return html`<p class="small">${level.failed} <button type="button" class="button compact" @click=${() => this.#load(name).then(() => this.#draw())}>Try again</button></p>`;
    }
    if (level.items.length === 0) {
      return html`<p class="muted small">No names ${name === this.#root ? "yet" : "below"}.</p>`;
    }
    return html`<ul class="names">${level.items.map((branch) => this.#branch(branch))}
      ${level.next ? html`<li class="muted small">more names: use the search</li>` : nothing}</ul>`;
  }

  #branch({ part, name, rps, rp }) {
    const below = rps > (rp ? 1 : 0);
    const open = this.#open.has(name);
    return html`<li>
      <span class="name-line">
        ${below ? html`<button type="button" class="twist" aria-expanded=${open} aria-label="Names below ${part}" @click=${() => this.#toggle(name)}></button>` : html`<span class="twist-none"></span>`}
        ${
          below
            ? html`<a href="?prefix=${encodeURIComponent(name)}" aria-current=${name === this.#prefix ? "page" : nothing}>${part}</a><span class="muted small number">${count(rps)}</span>`
            : html`<a href="/rps/${rp}" aria-current=${nothing}>${part}</a>`
        }
      </span>
      ${below && open ? this.#level(name) : nothing}
    </li>`;
  }
}

/** The names between `root` and `prefix`, `prefix` too: the branches that lead to what is shown. */
function above(root, prefix) {
  if (!prefix.startsWith(root)) return [];
  const parts = prefix.slice(root.length).split("/").filter(Boolean);
  return parts.map((_, index) => `${root}${parts.slice(0, index + 1).join("/")}/`);
}
