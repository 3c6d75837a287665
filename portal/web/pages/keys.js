/** Signing keys, new tokens, revocations. The page's marks state the rights, and the domain checks them. */

import { byId, findAll, need, pageData } from "../elements.js";
import { ask } from "../dialog.js";
import { Listing, keepCurrent } from "../listing.js";
import { tellEnd } from "../domain_connection.js";
import { SessionEnded, request } from "../requests.js";
import { RpLabels } from "../rp_labels.js";
import { breakable, html, nothing, render } from "../table.js";
import { startSearch } from "../timescale/adding.js";
import { fillTimes } from "../times.js";
import { toast } from "../toast.js";

const page = pageData();

// ---- signing keys ----

const STATES = {
  signing: { kind: "good", says: "signs new tokens" },
  published: { kind: "accent", says: "signs next" },
  verifying: { kind: "", says: "no longer signs, still verifies" },
  retired: { kind: "bad", says: "all its signatures are rejected" },
};
const KID_SHOWN = 12; // letters of a kid that distinguish keys, to be typed when one is retired

function rotate() {
  return ask({
    title: "Rotate the signing key?",
    says: "A new key is published now and starts signing in three minutes, when all verifiers have it. Existing tokens stay valid, and no connection is interrupted.",
    action: "Rotate",
    perform: async () => {
      await request("POST", "/api/v1/keys/rotate", {});
      toast("The new key is published.");
      keys.refresh();
    },
  });
}

function retire({ kid, state }) {
  const name = kid.slice(0, KID_SHOWN);
  return ask({
    title: `Retire the key ${name}…?`,
    says: `For emergencies: every token signed by this key is rejected from now on, and connections with such tokens are closed.${state === "signing" ? " Another key starts signing at once." : ""} This cannot be undone.`,
    action: "Retire",
    danger: true,
    reason: { hint: "Recorded in the audit." },
    type: { label: `Type ${name} to confirm`, text: name },
    perform: async (reason) => {
      await request("POST", `/api/v1/keys/${encodeURIComponent(kid)}/retire`, { reason });
      toast("The key is retired.");
      keys.refresh();
    },
  });
}

const keys = new Listing({
  id: "keys",
  url: "/api/v1/keys",
  concerns: ({ type }) => type.startsWith("io.herald.key."),
  table: {
    caption: "Signing keys of the domain, newest first",
    key: ({ kid }) => kid,
    empty: html`<strong>No key yet</strong>`,
    columns: [
      { name: "Key", header: true, cell: ({ kid }) => html`<span class="mono kid">${kid}</span>` },
      {
        name: "State",
        width: "15rem",
        cell: ({ state }) =>
          html`<span class="badge ${STATES[state].kind}">${state}</span> <span class="rp-sub">${STATES[state].says}</span>`,
      },
      {
        name: "Signs from",
        width: "11.5rem",
        cell: ({ not_before: at }) => html`<time datetime=${at} data-local></time>`,
      },
      {
        name: "Verifies until",
        width: "11.5rem",
        cell: ({ not_after: at }) =>
          at ? html`<time datetime=${at} data-local></time>` : html`<span class="muted">the end of the next key</span>`,
      },
      ...("administers" in page
        ? [
            {
              name: "Actions",
              width: "7rem",
              cell: (key) =>
                key.state === "retired"
                  ? nothing
                  : html`<span class="row-actions"><button type="button" class="button compact danger" @click=${() => retire(key)}>Retire</button></span>`,
            },
          ]
        : []),
    ],
  },
});
byId("rotate")?.addEventListener("click", () => void rotate());

// ---- a new token ----

const labels = new RpLabels(page.labelsUrl, () => {
  drawChosen();
  tokens.redraw();
});
/** @type {string[]} */
let chosen = []; // ids, names and subtrees to which the next token is narrowed

function drawChosen() {
  const list = document.getElementById("rps-chosen");
  if (!list) return;
  list.hidden = chosen.length === 0;
  render(
    chosen.map(
      (rp) => html`<li><button type="button" class="button compact" aria-label=${`Remove ${labels.of(rp)}`}
        @click=${() => choose(chosen.filter((one) => one !== rp))}>${labels.of(rp)} <span aria-hidden="true">×</span></button></li>`,
    ),
    list,
  );
}

/** @param {string[]} rps */
function choose(rps) {
  chosen = [...new Set(rps)];
  drawChosen();
  void labels.ask(chosen.filter((rp) => !rp.includes("/")));
  byId("rps").focus();
}

/** The request's body. Throws what is missing, with the field at which it is. @param {HTMLFormElement} form */
function wanted(form) {
  const field = (name) => need(form, `[name=${name}]`, HTMLInputElement);
  const ops = findAll(form, "[name=ops]:checked").map((box) => /** @type {HTMLInputElement} */ (box).value);
  const everywhere = need(form, "[name=where]:checked", HTMLInputElement).value === "all";
  const typed = byId("rps", HTMLInputElement).value.trim();
  const rps = typed && !everywhere ? [...chosen, typed] : chosen; // who did not press Enter meant it all the same
  if (!everywhere && !rps.length) throw new Missing("Choose a rendezvous point, or all of them.", byId("rps"));
  if (!ops.length) throw new Missing("Choose at least one permission.", field("ops"));
  const all = ops.length === findAll(form, "[name=ops]").length;
  return {
    subject: field("subject").value.trim(),
    admin: field("admin").checked,
    lease_s: Number(field("lease").value) * Number(need(form, "[name=unit]", HTMLSelectElement).value),
    ...(everywhere ? !all && { ops } : { scopes: [{ rps, ops }] }),
  };
}

class Missing extends Error {
  /** @param {string} message @param {HTMLElement} field */
  constructor(message, field) {
    super(message);
    this.field = field;
  }
}

/** @param {HTMLFormElement} form */
async function create(form) {
  const button = need(form, "button.primary");
  const problem = byId("token-problem");
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  problem.hidden = true;
  try {
    showToken(await request("POST", "/api/v1/tokens", wanted(form)));
    tokens.refresh();
  } catch (error) {
    if (error instanceof SessionEnded) tellEnd(error);
    problem.textContent = error.message;
    problem.hidden = false;
    if (error instanceof Missing) error.field.focus();
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** Shown once: it is kept nowhere, here or at the domain. */
function showToken(made) {
  const box = byId("token-made");
  const exported = `export HERALD_URL=${location.origin} HERALD_TOKEN=${made.token}`;
  box.hidden = false;
  render(
    html`<div class="notice success">
        <p><strong>Copy the token now: it is not shown again.</strong> Anyone who has it acts as <strong>${made.subject}</strong>${made.admin ? ", an administrator," : ""}
          until <time datetime=${made.expires_at} data-local></time> (<time datetime=${made.expires_at} data-countdown></time>).</p>
        <div class="command"><pre id="token-export" tabindex="0" role="region" aria-label="Command that sets the token">${exported}</pre><button type="button" class="copy" data-copy=${exported}>Copy</button></div>
        <details class="more"><summary>The token alone</summary>
          <div class="command"><pre id="token-text" tabindex="0" role="region" aria-label="The token">${made.token}</pre><button type="button" class="copy" data-copy=${made.token}>Copy</button></div></details>
        <p class="small muted">Its id is <code>${made.id}</code>; revoking this id revokes only this token.</p>
      </div>`,
    box,
  );
  fillTimes(box);
  box.scrollIntoView({ block: "nearest" });
}

const tokenForm = document.getElementById("token-form");
if (tokenForm instanceof HTMLFormElement) {
  tokenForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void create(tokenForm);
  });
  tokenForm.addEventListener("change", () => {
    byId("token-rps").hidden = need(tokenForm, "[name=where]:checked", HTMLInputElement).value === "all";
  });
  startSearch({
    input: byId("rps", HTMLInputElement),
    list: byId("rps-found"),
    onChoose: (rp) => choose([...chosen, rp]),
  });
}

// ---- issued tokens ----

const TOKEN_STATES = { valid: "good", expired: "", revoked: "bad" };

function revokeToken({ id, subject }) {
  return ask({
    title: "Revoke this token?",
    says: `From now on this token of ${subject} is rejected, and connections that use it are closed within seconds. This cannot be undone.`,
    action: "Revoke",
    danger: true,
    reason: { hint: "Recorded in the audit." },
    perform: async (reason) => {
      await request("POST", "/api/v1/revocations", { kind: "token", value: id, reason });
      toast("The token is revoked.");
      tokens.refresh();
      revocations.refresh();
    },
  });
}

function scopeOf({ rps, ops }) {
  return html`${rps ? rps.map((rp, index) => html`${index ? ", " : ""}${breakable(rp.includes("/") || rp === "*" ? rp : labels.of(rp))}`) : "all rendezvous points"}
    <span class="rp-sub">${ops ? ops.join(", ") : "all operations"}</span>`;
}

const tokens = new Listing({
  id: "tokens",
  url: "/api/v1/tokens",
  concerns: ({ type }) => type.startsWith("io.herald.revocation.") || type === "io.herald.key.retired",
  query: ({ state, ...filters }) => (state === "any" ? filters : { ...filters, state }),
  onShown: ({ items }) =>
    void labels.ask(items.flatMap(({ rps }) => rps ?? []).filter((rp) => !rp.includes("/") && rp !== "*")),
  table: {
    caption: "Tokens issued in the last 30 days, newest first",
    key: ({ id }) => id,
    empty: html`<strong>No tokens</strong><span>No token that was issued in the last 30 days is valid.</span>`,
    columns: [
      {
        name: "Subject",
        header: true,
        cell: ({ id, subject, admin }) =>
          html`<strong>${subject || "(too long to be recorded)"}</strong>${admin ? html` <span class="tag">administrator</span>` : nothing}<span class="rp-sub mono" title="Id of the token">${id}</span>`,
      },
      { name: "Scope", width: "16rem", cell: scopeOf },
      {
        name: "Issued",
        width: "10rem",
        cell: ({ issued_at: at, issued_by: by }) =>
          html`<time datetime=${at} data-age></time><span class="rp-sub">by ${by}</span>`,
      },
      {
        name: "Expires",
        width: "10rem",
        cell: ({ expires_at: at, state }) =>
          state === "valid"
            ? html`<time datetime=${at} data-countdown></time>`
            : html`<span class="badge ${TOKEN_STATES[state]}">${state}</span>`,
      },
      ...("operates" in page
        ? [
            {
              name: "Actions",
              width: "7rem",
              cell: (token) =>
                token.state === "valid"
                  ? html`<span class="row-actions"><button type="button" class="button compact danger" aria-label=${`Revoke the token of ${token.subject}`} @click=${() => void revokeToken(token)}>Revoke</button></span>`
                  : nothing,
            },
          ]
        : []),
    ],
  },
});

// ---- revocations ----

const WHAT = { token: "token id", subject: "subject", key: "key id" };

async function revoke(form) {
  const { kind, value, issuer, reason } = /** @type {Record<string, string>} */ (
    Object.fromEntries(new FormData(form))
  );
  const what =
    kind === "subject"
      ? `all tokens issued to ${value} until now`
      : kind === "key"
        ? "every token that this key has signed"
        : "this token";
  const answer = await ask({
    title: `Revoke ${kind === "subject" ? value : `this ${kind}`}?`,
    says: `From now on ${what} ${kind === "token" ? "is" : "are"} rejected, and connections that use such a token are closed within seconds.${kind === "subject" ? "" : " This cannot be undone."}`,
    action: "Revoke",
    danger: true,
    perform: async () => {
      await request("POST", "/api/v1/revocations", {
        kind,
        value: value.trim(),
        reason,
        issuer: issuer.trim() || null,
      });
      toast("Revoked.");
    },
  });
  if (answer === null) return;
  form.reset();
  revocations.refresh();
}

function lift({ id, value }) {
  return ask({
    title: `Lift the revocation of ${value}?`,
    says: "The tokens covered by the revocation are valid again until they expire.",
    action: "Lift",
    perform: async () => {
      await request("DELETE", `/api/v1/revocations/${id}`);
      toast("The revocation is lifted.");
      revocations.refresh();
    },
  });
}

byId("revoke-form")?.addEventListener("submit", (event) => {
  event.preventDefault();
  void revoke(event.currentTarget);
});

const revocations = new Listing({
  id: "revocations",
  url: "/api/v1/revocations",
  concerns: ({ type }) => type.startsWith("io.herald.revocation.") || type === "io.herald.key.retired",
  table: {
    caption: "Active revocations, newest first",
    key: ({ id }) => id,
    empty: html`<strong>No revocations</strong><span>Tokens expire on their own; revoke those that must end earlier.</span>`,
    columns: [
      {
        name: "What",
        header: true,
        cell: ({
          kind,
          value,
          issuer,
        }) => html`<span class="tag">${kind}</span> <span class=${kind === "subject" ? "" : "mono"}>${value}</span>
          ${issuer === page.domain ? nothing : html`<span class="rp-sub">of ${issuer}</span>`}`,
      },
      { name: "Reason", cell: ({ reason }) => reason || html`<span class="muted">none given</span>` },
      { name: "By", width: "10rem", cell: ({ by }) => by },
      { name: "Created", width: "9rem", cell: ({ created_at: at }) => html`<time datetime=${at} data-age></time>` },
      {
        name: "Active until",
        width: "11.5rem",
        cell: ({ until }) => html`<time datetime=${until} data-local></time>`,
      },
      ...("administers" in page
        ? [
            {
              name: "Actions",
              width: "6.5rem",
              cell: (row) =>
                row.kind === "subject"
                  ? html`<span class="row-actions"><button type="button" class="button compact" @click=${() => lift(row)}>Lift</button></span>`
                  : nothing,
            },
          ]
        : []),
    ],
  },
});
const filters = byId("revocations-filters");
const kind = need(filters, "[name=kind]", HTMLSelectElement);
kind.addEventListener("change", () => {
  need(filters, "[name=value]", HTMLInputElement).placeholder = WHAT[kind.value]
    ? `The ${WHAT[kind.value]}`
    : "Token id, subject or key id";
});

keepCurrent([keys, tokens, revocations]);
