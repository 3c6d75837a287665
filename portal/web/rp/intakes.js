/** Intakes of an RP: addresses at which other systems' webhooks become events. An address is shown once, when it is made. */

import { ask, field } from "../dialog.js";
import { need } from "../elements.js";
import { getJson, request } from "../requests.js";
import { Table, html, nothing, render } from "../table.js";
import { fillTimes } from "../times.js";
import { toast } from "../toast.js";
import { byId, page, setText, whileShown } from "./page.js";

/** @import { AdminEvent } from "../types.d.ts" */

const LOOKED_MS = 5_000; // no event reports that an intake is used
const SECRET_CHARS = { minlength: 16, maxlength: 512 };

/** @type {Table | null} */
let table = null;
let lookSoon = () => {};

/** Wire the tab, if the reader has it. */
export function startIntakes() {
  if (!byId("intake-list")) return;
  table = new Table(byId("intake-list"), INTAKES);
  lookSoon = whileShown("intakes", look, { everyMs: LOOKED_MS });
  byId("add-intake").hidden = false;
  byId("add-intake").addEventListener("click", () => void add());
}

/** @param {AdminEvent[]} events */
export function showIntakes(events) {
  if (events.some(({ type }) => type.startsWith("io.herald.intake."))) lookSoon();
}

const INTAKES = {
  caption: "Intakes of this rendezvous point",
  key: ({ id }) => id,
  columns: [
    {
      name: "Intake",
      header: true,
      cell: ({ id, title }) =>
        html`<strong>${title || "without a title"}</strong><span class="rp-sub mono" title=${id}>${id}</span>`,
      by: ({ title }) => title,
    },
    {
      name: "Format",
      width: "12rem",
      cell: ({ format, signed }) =>
        html`${format}<span class="rp-sub">${signed ? "with a secret" : "no secret: the address alone"}</span>`,
      by: ({ format }) => format,
    },
    { name: "Owner", width: "9rem", cell: ({ owner }) => owner, by: ({ owner }) => owner },
    {
      name: "Last used",
      width: "8.5rem",
      cell: ({ last_used_at: at }) =>
        at ? html`<time datetime=${at} data-age></time>` : html`<span class="muted">not yet</span>`,
      by: (row) => row.last_used_at,
    },
    {
      name: "Lease ends",
      width: "9.5rem",
      cell: ({ lease }) => html`<time datetime=${lease.expires_at} data-countdown></time>`,
      by: ({ lease }) => lease.expires_at,
    },
    {
      name: "Actions",
      width: "7.5rem",
      cell: (row) =>
        html`<button type="button" class="button compact danger" @click=${() => remove(row)}>Delete<span class="visually-hidden"> ${row.title || row.id}</span></button>`,
    },
  ],
  empty: html`<strong>No intakes</strong><span>Create one to have GitHub, Grafana, Stripe, or anything that sends webhooks publish here.</span>`,
};

async function look() {
  const box = byId("intake-list");
  try {
    const { items, next } = await getJson(`${page.api}/intakes?limit=100`);
    table?.show(items);
    setText(byId("intakes-count"), next ? `${items.length}+` : items.length || "");
    box.classList.remove("stale");
  } catch (error) {
    box.classList.add("stale");
    if (box.querySelector("table")) return;
    box.replaceChildren();
    render(
      html`<div class="broken"><strong>The intakes could not be loaded</strong><span>${error.message} Retrying automatically.</span></div>`,
      box,
    );
  }
}

/** @returns {Record<string, {about: string, needs: boolean}>} */
function formats() {
  return JSON.parse(byId("intake-formats").textContent ?? "{}");
}

function questions() {
  const says = document.createElement("div");
  const format = document.createElement("div");
  render(
    html`<div class="field"><label for="intake-format">Format</label>
      <select id="intake-format" name="format">${Object.entries(formats()).map(([name, { about }]) => html`<option value=${name}>${name}: ${about}</option>`)}</select></div>`,
    format,
  );
  const secret = field("secret", {
    label: "Secret",
    hint: "With which the sender signs; at least 16 characters. It is not shown again.",
    autocomplete: "off",
    ...SECRET_CHARS,
  });
  says.append(format, field("title", { label: "Title", maxlength: 255, autocomplete: "off" }), secret);
  const select = need(says, "select", HTMLSelectElement);
  const typed = need(secret, "input", HTMLInputElement);
  const follow = () => {
    typed.required = formats()[select.value].needs;
  };
  select.addEventListener("change", follow);
  follow();
  return says;
}

async function add() {
  const says = questions();
  const value = (name) => need(says, `[name=${name}]`, HTMLInputElement).value.trim();
  let made = { url: "", title: "" };
  const done = await ask({
    title: "Create an intake?",
    says,
    action: "Create",
    perform: async () => {
      const secret = value("secret");
      const format = need(says, "select", HTMLSelectElement).value;
      made = await request("POST", `${page.api}/intakes`, {
        format,
        title: value("title"),
        ...(secret && { secret }),
      });
    },
  });
  if (done === null) return;
  showOnce(made.url);
  lookSoon();
}

/** Show an address until it is put away; it is kept nowhere. @param {string} url */
function showOnce(url) {
  const box = byId("intake-made");
  box.hidden = false;
  const away = () => {
    render(nothing, box);
    box.hidden = true;
  };
  render(
    html`<div class="notice success"><p><strong>Copy the address now: it is not shown again.</strong> State it at the sender.</p>
      <div class="command"><pre>${url}</pre><button type="button" class="copy" data-copy=${url}>Copy</button></div>
      <p class="small muted">Treat it as a password: whoever has it may publish here. <button type="button" class="button compact quiet" @click=${away}>Hide it</button></p></div>`,
    box,
  );
  fillTimes(box);
  box.scrollIntoView({ block: "nearest" });
}

async function remove(row) {
  const done = await ask({
    title: `Delete ${row.title || "this intake"}?`,
    says: "Its address receives nothing any more; the sender is answered 404. This cannot be undone.",
    action: "Delete",
    danger: true,
    perform: () => request("DELETE", `/api/v1/intakes/${encodeURIComponent(row.id)}`),
  });
  if (done === null) return;
  toast("The intake is deleted.");
  lookSoon();
}
