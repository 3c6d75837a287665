/** Signing keys, new tokens, revocations. The page's marks state the rights, and the domain checks them. */

import { byId, need, pageData } from "../elements.js";
import { ask } from "../dialog.js";
import { Listing, keepCurrent } from "../listing.js";
import { tellEnd } from "../domain_connection.js";
import { SessionEnded, request } from "../requests.js";
import { html, nothing, render } from "../table.js";
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

function wanted(form) {
  const field = (name) => form.elements.namedItem(name);
  const checked = [...form.querySelectorAll("[name=ops]:checked")].map(({ value }) => value);
  const all = checked.length === form.querySelectorAll("[name=ops]").length;
  const rps = field("rps")
    .value.split(/[\s,]+/)
    .filter(Boolean);
  const narrowed = rps.length ? { scopes: [{ rps, ops: checked }] } : all ? {} : { ops: checked };
  return {
    subject: field("subject").value.trim(),
    admin: field("admin").checked,
    lease_s: Number(field("lease").value) * Number(field("unit").value),
    ...narrowed,
  };
}

async function create(form) {
  const button = form.querySelector("button.primary");
  const problem = byId("token-problem");
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  problem.hidden = true;
  try {
    showToken(await request("POST", "/api/v1/tokens", wanted(form)));
  } catch (error) {
    if (error instanceof SessionEnded) tellEnd(error);
    problem.textContent = error.message;
    problem.hidden = false;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** Shown once: it is kept nowhere, here or at the domain. */
function showToken(made) {
  const box = byId("token-made");
  box.hidden = false;
  render(
    html`<div class="notice success">
        <p><strong>Copy the token now: it is not shown again.</strong> Anyone who has it acts as <strong>${made.subject}</strong>${made.admin ? ", an administrator," : ""}
          until <time datetime=${made.expires_at} data-local></time> (<time datetime=${made.expires_at} data-countdown></time>).</p>
        <div class="command"><pre id="token-text">${made.token}</pre><button type="button" class="copy" data-copy=${made.token}>Copy</button></div>
        <p class="small muted">Its id is <code>${made.id}</code>; revoking this id revokes only this token.</p>
      </div>`,
    box,
  );
  fillTimes(box);
  box.scrollIntoView({ block: "nearest" });
}

byId("token-form")?.addEventListener("submit", (event) => {
  event.preventDefault();
  void create(event.currentTarget);
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

keepCurrent([keys, revocations]);
