/** Chooses RPs by search: what is typed is looked for among names, titles and ids, and one is taken with Enter or a click. */

import { html, nothing, render } from "lit-html";
import { getJson } from "../requests.js";

const WAIT_MS = 200;
const FOUND_MAX = 8;

/**
 * A combobox by the pattern of the ARIA guide.
 * @param {{input: HTMLInputElement, list: HTMLElement, onChoose: (reference: string) => void}} parts
 */
export function startSearch({ input, list, onChoose }) {
  let found = [];
  let active = -1;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let turn = 0;

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (reference) => {
    if (!reference) return;
    turn++;
    clearTimeout(timer);
    input.value = "";
    close();
    onChoose(reference);
  };
  const draw = (says = "") => {
    list.hidden = false;
    input.setAttribute("aria-expanded", String(found.length > 0));
    if (active >= 0) input.setAttribute("aria-activedescendant", `found-${active}`);
    else input.removeAttribute("aria-activedescendant");
    render(
      html`${found.map(
        (rp, index) => html`<li role="option" id=${`found-${index}`} aria-selected=${index === active}
          @pointerdown=${(event) => {
            event.preventDefault();
            choose(rp.id);
          }}><strong>${rp.name || rp.title || rp.id}</strong>${rp.name && rp.title ? html` <span class="muted small">${rp.title}</span>` : nothing}</li>`,
      )}
        ${says ? html`<li role="option" aria-disabled="true" aria-selected="false" class="muted">${says}</li>` : nothing}`,
      list,
    );
  };
  const look = async () => {
    const mine = ++turn;
    const q = input.value.trim();
    if (!q) {
      close();
      return;
    }
    try {
      const { items } = await getJson(`/api/v1/rps?${new URLSearchParams({ q, limit: String(FOUND_MAX) })}`);
      if (mine !== turn) return;
      found = items;
      active = items.length ? 0 : -1;
      draw(items.length ? "" : "No rendezvous point has this name, title or id.");
    } catch (error) {
      found = [];
      if (mine === turn) draw(error.message);
    }
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, WAIT_MS);
  });
  if (document.activeElement === input && input.value) void look(); // typed before this script ran
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length && !list.hidden) {
      event.preventDefault();
      active = (active + step + found.length) % found.length;
      draw();
    } else if (event.key === "Enter") {
      event.preventDefault();
      const exact = /^([a-z2-7]{26}|domain)(\.admin)?$/.test(input.value.trim()) || input.value.includes("/");
      choose(list.hidden || active < 0 ? (exact ? input.value.trim() : "") : found[active].id);
    } else if (event.key === "Escape") {
      close();
    }
  });
}
