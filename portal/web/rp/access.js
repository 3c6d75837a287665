/** The policy of an RP in words, and why it decides as it does about somebody. */

import { findAll, need } from "../elements.js";
import { PacedPoll } from "../polling.js";
import { getJson, request } from "../requests.js";
import { html, nothing, render } from "../table.js";
import { byId, page, setText, whenShown } from "./page.js";
import { draftPolicy, openPolicyEditor } from "./policy_editor.js";

/** @import { RpState } from "../shapes.d.ts" */
/** @import { AdminEvent } from "../types.d.ts" */

let version = page.version; // of the policy shown
const looking = new PacedPoll(
  () => getJson(page.api),
  (answer) => {
    version = answer.version;
    show(answer.policy);
  },
  () => {}, // what stands there is what it was when the page was loaded
);

/** Wire the tab. */
export function startAccess() {
  show(JSON.parse(byId("policy").textContent));
  if (byId("change-policy")) byId("change-policy").hidden = false;
  byId("change-policy")?.addEventListener("click", () => void openPolicyEditor());
  if (!byId("explain")) return;
  const form = byId("explain", HTMLFormElement);
  form.addEventListener("change", () => {
    const { value } = need(form, "[name=who]:checked", HTMLInputElement);
    for (const box of findAll(form, "[data-who]")) box.hidden = box.dataset.who !== value;
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void explain(form);
  });
  whenShown("access", () => void looking.now());
}

/** @param {RpState} state @param {AdminEvent[]} events @param {boolean} fresh whether the state is that of a new snapshot */
export function showAccess({ rp }, events, fresh) {
  const changed = events.some(({ type, data }) => type === "io.herald.rp.changed" && data.changed.includes("policy"));
  if (changed || (fresh && rp && rp.version !== version)) void looking.now();
}

function show(policy) {
  setText(byId("policy"), JSON.stringify(policy, null, 2));
  render(
    policy.length
      ? html`<ol class="rules">${policy.map(rule)}</ol>`
      : html`<div class="empty"><strong>No rules</strong><span>Only the creator and administrators have access.</span></div>`,
    byId("rules"),
  );
}

function rule({ issuer, claims = {}, allow, jwks }) {
  return html`<li>
    <p><strong>${people(issuer)}</strong>${claimsWords(claims)} may
      ${allow.length ? allow.map((operation) => html`<span class="tag accent">${operation}</span> `) : html`<span class="tag bad">nothing</span>`}</p>
    ${jwks ? html`<p class="muted small">Keys from ${jwks}</p>` : nothing}
  </li>`;
}

function people(issuer) {
  if (issuer === "anyone") return "Anyone, with or without a token,";
  if (issuer === "domain") return `Bearers of tokens of ${page.authority}`;
  return `Bearers of tokens of ${issuer.replace(/^peer:/, "")}`;
}

const WORDS = {
  equals: (value) => html`is <code>${text(value)}</code>`,
  in: (values) =>
    html`is one of ${values.map((value, index) => html`${index ? ", " : ""}<code>${text(value)}</code>`)}`,
  prefix: (value) => html`begins with <code>${value}</code>`,
  exists: (value) => (value ? "is present" : "is missing"),
  range: ({ min, max }) =>
    min === undefined ? `is at most ${max}` : max === undefined ? `is at least ${min}` : `is from ${min} to ${max}`,
  audience: (value) => html`names <code>${value}</code>`,
};

/**
 * " whose role is auditor and …": conditions on a token's claims; empty where there are none.
 * @param {Record<string, any>} claims
 */
export function claimsWords(claims) {
  const asked = Object.entries(claims);
  return asked.length
    ? html` whose ${asked.map((one, index) => html`${index ? " and " : ""}${predicate(...one)}`)}`
    : nothing;
}

function predicate(claim, tested) {
  return html`<code>${claim}</code> ${Object.entries(tested).map(([test, value]) => WORDS[test]?.(value) ?? html`<code>${text(tested)}</code>`)}`;
}

function text(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

// ---- explaining ----

async function explain(form) {
  const who = form.elements.who.value;
  const asked = { operation: form.elements.operation.value };
  const box = byId("explanation");
  const button = form.querySelector("button.primary");
  button.setAttribute("aria-busy", "true");
  try {
    if (who === "claims") asked.claims = claimsTyped();
    if (who === "token") asked.token = byId("token", HTMLTextAreaElement).value.trim();
    const draft = draftPolicy();
    const [saved, tried] = await Promise.all(
      [asked, draft && { ...asked, policy: draft }].map(
        (one) => one && request("POST", `${page.api}/policy/explain`, one),
      ),
    );
    render(explanation(tried ?? saved, asked.operation, tried && saved), box);
  } catch (error) {
    render(html`<p class="answer" data-kind="bad">${error.message}</p>`, box);
  } finally {
    button.removeAttribute("aria-busy");
  }
}

function claimsTyped() {
  try {
    return JSON.parse(byId("claims", HTMLTextAreaElement).value);
  } catch (error) {
    byId("claims").focus();
    throw new Error(`Not valid JSON: ${error.message}.`, { cause: error });
  }
}

/** @param {any} answer @param {string} operation @param {any} saved the answer by the saved policy, if an unsaved one decided */
function explanation({ allowed, decided_by: by, reason, rules }, operation, saved) {
  return html`<div class="explanation">
    <p>${verdict(allowed)} <strong>${operation}</strong> <span class="muted">decided by ${by}</span></p>
    ${saved ? html`<p class="small">Saved policy: ${verdict(saved.allowed)} <span class="muted">decided by ${saved.decided_by}</span></p>` : nothing}
    <p>${reason}</p>
    ${
      rules.length
        ? html`<ol class="findings">${rules.map(
            (one) =>
              html`<li value=${one.rule}><span class="badge ${one.matches ? "accent" : ""}">${one.matches ? "matches" : "does not match"}</span> <span class="muted">${one.issuer}</span><br>${one.why}</li>`,
          )}</ol>`
        : nothing
    }
  </div>`;
}

function verdict(allowed) {
  return html`<span class="badge ${allowed ? "good" : "bad"}">${allowed ? "allowed" : "refused"}</span>`;
}
