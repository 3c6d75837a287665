/** Contact points on the page of alarms: who is notified, by webhook or mail; added, changed, tested and deleted there. */

import { byId, need } from "../elements.js";
import { ask, field } from "../dialog.js";
import { durationField, durationText, typedNumber } from "../durations.js";
import { tellEnd } from "../domain_connection.js";
import { Refused, SessionEnded, Unanswered, request } from "../requests.js";
import { Table, html, render } from "../table.js";
import { serverNow } from "../times.js";
import { toast } from "../toast.js";

const URL_POINTS = "/api/v1/contact-points";
const AGAIN_MS = 10_000; // deliveries are no events: the list is asked for again
const TEST_MS = 30_000;
const GROUP_S_DEFAULT = 60;

/** @param {Record<string, string>} page the page's marks: operates, mails */
export function startContactPoints(page) {
  const rows = document.createElement("div");
  const away = document.createElement("div");
  const table = new Table(rows, {
    caption: "Contact points, by name",
    key: ({ id }) => id,
    empty: html`<strong>Nobody is notified</strong><span>A contact point sends alarms to a webhook or by mail. Programs can also subscribe to <code>domain.admin</code>.</span>`,
    columns: [
      {
        name: "Name",
        header: true,
        cell: ({ name, target }) => html`${name}<span class="rp-sub" title=${target}>${target}</span>`,
      },
      {
        name: "Notified of",
        width: "12rem",
        cell: ({ severity, resolved, group_s: every }) =>
          html`${severity === "critical" ? "critical alarms" : "all alarms"}<span class="rp-sub">${resolved ? "also when they end; " : ""}at most one in ${durationText(every)}</span>`,
      },
      { name: "Last delivery", width: "10rem", cell: state },
      ...("operates" in page
        ? [
            {
              name: "Actions",
              width: "14rem",
              cell: (point) => html`<span class="row-actions">
                <button type="button" class="button compact" @click=${({ currentTarget }) => void test(currentTarget, point)}>Send a test</button>
                <button type="button" class="button compact" @click=${() => void changed(point)}>Change…</button>
                <button type="button" class="button compact danger" @click=${() => void ended(point)}>Delete</button></span>`,
            },
          ]
        : []),
    ],
  });

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  async function look() {
    clearTimeout(timer);
    try {
      if (!document.hidden) {
        table.show((await request("GET", URL_POINTS)).items);
        byId("contact-points").replaceChildren(rows);
      }
    } catch (error) {
      if (error instanceof SessionEnded) return;
      if (!(error instanceof Refused || error instanceof Unanswered)) throw error;
      render(
        html`<div class="broken"><strong>No response</strong><span>${error.message} Retrying automatically.</span></div>`,
        away,
      );
      byId("contact-points").replaceChildren(away);
    }
    timer = setTimeout(look, AGAIN_MS);
  }

  async function test(button, { id, name }) {
    if (button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    try {
      const {
        delivered,
        reason,
        took_ms: took,
      } = await request("POST", `${URL_POINTS}/${id}/test`, {}, { timeoutMs: TEST_MS });
      if (delivered) toast(`${name} accepted the test in ${took} ms.`);
      else toast(`${name} did not accept the test: ${reason}.`, "bad");
    } catch (error) {
      if (error instanceof SessionEnded) tellEnd(error);
      toast(error.message, "bad");
    } finally {
      button.removeAttribute("aria-busy");
      void look();
    }
  }

  async function added() {
    const box = fields({}, "mails" in page);
    /** @type {string | null} */
    let secret = null;
    const done = await ask({
      title: "Add a contact point",
      says: box,
      action: "Add",
      perform: async () => {
        ({ secret } = await request("POST", URL_POINTS, stated(box, true)));
      },
    });
    if (done === null) return;
    toast("Added. Send a test to see whether it is reached.");
    if (secret) await shown(secret);
    void look();
  }

  async function changed(point) {
    const box = fields(point, "mails" in page);
    const done = await ask({
      title: `Change ${point.name}`,
      says: box,
      action: "Change",
      perform: () => request("PATCH", `${URL_POINTS}/${point.id}`, stated(box, false)),
    });
    if (done === null) return;
    toast("Changed.");
    void look();
  }

  async function ended({ id, name }) {
    const done = await ask({
      title: `Delete ${name}?`,
      says: "It is notified of no further alarm.",
      action: "Delete",
      danger: true,
      perform: () => request("DELETE", `${URL_POINTS}/${id}`),
    });
    if (done === null) return;
    toast("Deleted.");
    void look();
  }

  byId("add-contact-point")?.addEventListener("click", () => void added());
  void look();
}

function state({ failures, failure, delivered_at: at, next_at: next }) {
  const last = at ? html`<time datetime=${at} data-age></time>` : html`<span class="muted">none yet</span>`;
  if (!failures) return last;
  return html`<span class="badge bad">failing</span><span class="rp-sub" title=${failure}>${failure}; next attempt ${Date.parse(next) > serverNow() ? html`<time datetime=${next} data-countdown></time>` : "soon"}</span>`;
}

/**
 * The form; of an existing one the kind stays, and what is secret is stated only to be replaced.
 * @param {{id?: string, kind?: string, name?: string, target?: string, severity?: string, resolved?: boolean, group_s?: number}} point @param {boolean} mails
 */
function fields(
  {
    id,
    kind = "webhook",
    name = "",
    target = "",
    severity = "warning",
    resolved = true,
    group_s: every = GROUP_S_DEFAULT,
  },
  mails,
) {
  const box = document.createElement("div");
  box.className = "stack";
  box.append(field("name", { label: "Name", value: name, maxlength: 64, required: true }));
  const url = field("url", {
    label: "URL",
    hint: id
      ? `Now ${target}. Leave empty to keep it.`
      : "Messages are signed by Standard Webhooks; the secret is shown once.",
    type: "url",
    maxlength: 2048,
  });
  const to = field("to", {
    label: "Addresses",
    hint: "Separated by commas, ten at most.",
    value: kind === "mail" ? target : "",
    maxlength: 2600,
  });
  const chosen = choice("kind", "By", { webhook: "Webhook", ...(mails && { mail: "Mail" }) }, kind);
  const show = () => {
    const by = need(chosen, "select", HTMLSelectElement).value;
    url.hidden = by !== "webhook";
    to.hidden = by !== "mail";
  };
  chosen.hidden = Boolean(id);
  chosen.addEventListener("change", show);
  show();
  const ends = document.createElement("label");
  ends.className = "check";
  const check = document.createElement("input");
  check.type = "checkbox";
  check.name = "resolved";
  check.checked = resolved;
  ends.append(check, "Notify also when alarms end");
  box.append(
    chosen,
    url,
    to,
    choice("severity", "Notify of", { warning: "all alarms", critical: "critical alarms" }, severity),
    durationField("every", { label: "At most one message in", seconds: every }),
    ends,
  );
  return box;
}

function choice(name, label, options, value) {
  const box = document.createElement("div");
  box.className = "field";
  const title = document.createElement("label");
  const select = document.createElement("select");
  select.name = name;
  select.id = `contact-${name}`;
  title.htmlFor = select.id;
  title.textContent = label;
  select.append(...Object.entries(options).map(([one, words]) => new Option(words, one, false, one === value)));
  box.append(title, select);
  return box;
}

function stated(box, isNew) {
  const value = (name) => need(box, `[name="${name}"]`, HTMLInputElement).value.trim();
  const chosen = (name) => need(box, `select[name="${name}"]`, HTMLSelectElement).value;
  const kind = chosen("kind");
  const target =
    kind === "mail"
      ? {
          to: value("to")
            .split(/[\s,;]+/)
            .filter(Boolean),
        }
      : value("url") || isNew
        ? { url: value("url") }
        : {};
  return {
    name: value("name"),
    ...(isNew && { kind }),
    ...target,
    severity: chosen("severity"),
    resolved: need(box, "[name=resolved]", HTMLInputElement).checked,
    group_s: typedNumber(box, "every") ?? GROUP_S_DEFAULT,
  };
}

/** Shown once: it is shown nowhere else. */
function shown(secret) {
  const box = document.createElement("div");
  const words = document.createElement("p");
  const line = document.createElement("div");
  const text = document.createElement("pre");
  const copy = document.createElement("button");
  words.textContent = "The receiver verifies messages with this secret. It is not shown again.";
  line.className = "command";
  text.textContent = secret;
  copy.type = "button";
  copy.className = "copy";
  copy.dataset.copy = secret;
  copy.textContent = "Copy";
  line.append(text, copy);
  box.append(words, line);
  return ask({ title: "Keep the signing secret", says: box, action: "Done" });
}
