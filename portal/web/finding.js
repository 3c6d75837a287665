/**
 * Search over pages, rendezvous points, peers, durable subscriptions and principals, in a dialog: what is typed is asked of the domain, which
 * answers what the reader may see. A combobox of the ARIA guide: arrows choose, Enter opens, Escape closes.
 */

import { tellEnd } from "./domain_connection.js";
import { SessionEnded, getJson } from "./requests.js";

const URL_FIND = "/console/find";
const PAUSE_MS = 150; // after the last key
const PAGES_MAX = 8;

/** @typedef {{text: string, note?: string, href: string}} Hit */

/** @type {HTMLDialogElement | null} */
let dialog = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let attempt = 0;

/** Open the search. */
export function find() {
  dialog ??= build();
  if (dialog.open) return;
  const field = /** @type {HTMLInputElement} */ (dialog.querySelector("input"));
  field.value = "";
  show(pages(""), {});
  dialog.showModal();
  field.focus();
}

function build() {
  const made = document.createElement("dialog");
  made.className = "find";
  made.setAttribute("aria-label", "Search");
  const field = document.createElement("input");
  const list = document.createElement("div");
  const said = document.createElement("p");
  field.type = "search";
  field.maxLength = 100;
  field.placeholder = "Pages, rendezvous points, peers, subscriptions, principals";
  field.spellcheck = false;
  field.autocomplete = "off";
  for (const [name, value] of Object.entries({
    role: "combobox",
    "aria-label": "Search",
    "aria-controls": "find-list",
    "aria-expanded": "true",
    "aria-autocomplete": "list",
  })) {
    field.setAttribute(name, value);
  }
  list.id = "find-list";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Results");
  said.className = "find-said small muted";
  said.setAttribute("role", "status");
  made.append(field, list, said);
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(field.value.trim()), PAUSE_MS);
  });
  field.addEventListener("keydown", (event) => key(event));
  list.addEventListener("click", () => made.close());
  made.addEventListener("click", ({ target }) => target === made && made.close()); // beside it
  document.body.append(made);
  return made;
}

async function ask(text) {
  const mine = ++attempt;
  if (!text) {
    show(pages(""), {});
    return;
  }
  show(pages(text), {}, "Searching…");
  try {
    const found = await getJson(`${URL_FIND}?${new URLSearchParams({ q: text })}`);
    if (mine === attempt) show(pages(text), found);
  } catch (error) {
    if (mine !== attempt) return;
    if (error instanceof SessionEnded) tellEnd(error);
    show(pages(text), {}, error.message);
  }
}

/** Pages of the menu whose name has the text. @param {string} text @returns {Hit[]} */
function pages(text) {
  const links = /** @type {NodeListOf<HTMLAnchorElement>} */ (
    document.querySelectorAll("#rail a, #you > a, .foot-links a")
  );
  return [...links]
    .map((link) => ({
      text: link.firstElementChild?.nextSibling?.textContent ?? link.textContent ?? "",
      href: link.href,
    }))
    .filter((hit) => hit.text.toLowerCase().includes(text.toLowerCase()))
    .slice(0, PAGES_MAX);
}

/** @returns {[string, Hit[]][]} */
function groups(found) {
  const query = (members) => new URLSearchParams(members).toString();
  return [
    [
      "Rendezvous points",
      (found.rps ?? []).map(({ id, name, title }) => ({
        text: name || title || id,
        note: name ? title : "",
        href: `/rps/${id}`,
      })),
    ],
    [
      "Peers",
      (found.peers ?? []).map(({ name, state }) => ({
        text: name,
        note: state,
        href: `/federation/${encodeURIComponent(name)}`,
      })),
    ],
    [
      "Durable subscriptions",
      (found.subscriptions ?? []).map(({ id, rp, owner }) => ({
        text: id,
        note: owner,
        href: `/subscriptions?${query({ rp, owner })}`,
      })),
    ],
    [
      "Principals",
      (found.principals ?? []).map(({ name }) => ({
        text: name,
        note: "in the audit",
        href: `/audit?${query({ who: name })}`,
      })),
    ],
  ];
}

function show(found, objects, said = "") {
  if (!dialog) return;
  const list = /** @type {HTMLElement} */ (dialog.querySelector("#find-list"));
  let number = 0;
  const parts = [...groups(objects), ["Pages", found]]
    .filter(([, hits]) => hits.length)
    .map(([title, hits]) => {
      const group = document.createElement("div");
      const heading = document.createElement("div");
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", String(title));
      heading.className = "find-title small muted";
      heading.setAttribute("aria-hidden", "true");
      heading.textContent = String(title);
      group.append(heading, .../** @type {Hit[]} */ (hits).map((hit) => option(hit, number++)));
      return group;
    });
  list.replaceChildren(...parts);
  const words = said || (number ? "" : "Nothing found.");
  const status = /** @type {HTMLElement} */ (dialog.querySelector(".find-said"));
  status.textContent = words;
  choose(0);
}

/** @param {Hit} hit @param {number} number */
function option({ text, note, href }, number) {
  const link = document.createElement("a");
  const words = document.createElement("span");
  link.id = `find-${number}`;
  link.href = href;
  link.tabIndex = -1;
  link.setAttribute("role", "option");
  words.textContent = text;
  link.append(words);
  if (note) {
    const more = document.createElement("span");
    more.className = "small muted";
    more.textContent = note;
    link.append(more);
  }
  return link;
}

function options() {
  return /** @type {HTMLAnchorElement[]} */ ([...(dialog?.querySelectorAll("[role=option]") ?? [])]);
}

function choose(index) {
  const all = options();
  const chosen = all.length ? all[(index + all.length) % all.length] : null;
  for (const one of all) one.setAttribute("aria-selected", String(one === chosen));
  chosen?.scrollIntoView({ block: "nearest" });
  dialog?.querySelector("input")?.setAttribute("aria-activedescendant", chosen?.id ?? "");
}

function key(event) {
  const all = options();
  const at = all.findIndex((one) => one.getAttribute("aria-selected") === "true");
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    choose(to);
  } else if (event.key === "Escape") {
    event.preventDefault(); // else it empties the field first
    dialog?.close();
  } else if (event.key === "Enter" && all[at]) {
    event.preventDefault();
    dialog?.close();
    all[at].click();
  }
}
