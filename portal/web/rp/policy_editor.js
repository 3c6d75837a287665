/**
 * The policy editor: rules as rows, or as JSON, in step with each other; checked by the domain while it is typed, and explained
 * before it is saved (access.js asks `draftPolicy`).
 *
 * The rows are what is edited; the JSON is made of them, and they of it as soon as it can be read. Nothing is saved before
 * *Save policy*, and nothing is saved over somebody else's change (If-Match).
 */

import { repeat } from "lit-html/directives/repeat.js";

import { tellEnd } from "../domain_connection.js";
import { find, findAll } from "../elements.js";
import { Refused, SessionEnded, getJson, request } from "../requests.js";
import { html, nothing, render } from "../table.js";
import { toast } from "../toast.js";
import { patchMatching } from "./changing.js";
import { byId, page } from "./page.js";
import * as rows from "./policy_rows.js";

/** @import { Condition, Row } from "./policy_rows.js" */

const CHECKED_AFTER_MS = 400; // without a key pressed, the domain is asked whether it would take the policy

/** @typedef {{version: number, rows: Row[], view: "rows" | "json", json: string, document: any, touched: Set<number>,
 *   refused: string, jsonFault: string, saved: string}} Draft `document`: the policy as it was typed, null where the rows are newer;
 *   `refused`: the domain's sentence; `saved`: the policy as it was opened */

/** @type {Draft | null} */
let draft = null;
/** @type {string[]} */
let peers = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
/** @type {Map<number, string[]>} operations of rules that were set to refuse, by key, for who sets them back */
const setAside = new Map();

/** Open the editor with the policy as it is now. */
export async function openPolicyEditor() {
  if (draft) return;
  try {
    const { version, policy } = await getJson(page.api);
    const text = JSON.stringify(policy, null, 2);
    const made = rows.rowsOf(policy);
    draft = {
      version,
      rows: made,
      view: "rows",
      json: text,
      document: policy,
      touched: new Set(),
      refused: "",
      jsonFault: "",
      saved: JSON.stringify(policy),
    };
  } catch (error) {
    if (error instanceof SessionEnded) tellEnd(error);
    toast(error.message, "bad");
    return;
  }
  show(true);
  draw();
  find(byId("policy-editor"), "select, .presets .button", HTMLElement)?.focus();
  const found = await getJson("/api/v1/peers").catch(() => ({ items: [] })); // suggestions only: not everybody may list them
  peers = found.items.map(({ name }) => name);
  draw();
}

/** The policy as it would be saved; null while it is not edited. Throws where it cannot be read. */
export function draftPolicy() {
  if (!draft) return null;
  const fault = faultIn(draft);
  if (fault) throw new Error(fault);
  return policyOf(draft);
}

/** @param {Draft} one @returns {any} the policy, of a draft without faults */
function policyOf(one) {
  return one.document ?? rows.documentOf(one.rows);
}

/** @param {Draft} one */
function faultIn({ jsonFault, document, rows: made }) {
  return jsonFault || (document ? "" : ([...rows.faultsOf(made).values()][0] ?? ""));
}

function close() {
  clearTimeout(timer);
  draft = null;
  setAside.clear();
  show(false);
  byId("change-policy").focus();
}

/** @param {boolean} editing */
function show(editing) {
  byId("access").classList.toggle("editing", editing);
  byId("policy-view").hidden = editing;
  byId("policy-editor").hidden = byId("explain-draft").hidden = !editing;
  byId("change-policy").hidden = editing;
}

// ---- what is typed ----

/** Something has changed: it is drawn, and the domain is asked soon. @param {string} [jsonFault] why the JSON cannot be read */
function edited(jsonFault = "") {
  if (!draft) return;
  draft.refused = "";
  draft.jsonFault = jsonFault;
  draw();
  clearTimeout(timer);
  timer = setTimeout(() => void check(), CHECKED_AFTER_MS);
}

/** Rows have changed: the JSON is made of them. */
function rowsEdited() {
  if (draft) draft.document = null;
  edited();
}

async function check() {
  const asked = draft;
  if (!asked || faultIn(asked)) return;
  const policy = policyOf(asked);
  const refused = await request("POST", `${page.api}/policy/explain`, { operation: "describe", policy }).then(
    () => "",
    (error) => (error instanceof Refused ? error.message : ""),
  );
  if (asked !== draft || faultIn(asked) || JSON.stringify(policy) !== JSON.stringify(policyOf(asked))) return;
  asked.refused = refused;
  draw();
}

/** @param {Row} row @param {Partial<Row>} changes */
function set(row, changes) {
  Object.assign(row, changes);
  rowsEdited();
}

/** @param {Row} row @param {Condition} one @param {Partial<Condition>} changes */
function setCondition(row, one, changes) {
  Object.assign(one, changes);
  set(row, {});
}

/** @param {Row} row @param {string} operation */
function toggle(row, operation) {
  const has = row.allow.includes(operation);
  set(row, { allow: has ? row.allow.filter((one) => one !== operation) : [...row.allow, operation] });
}

/** @param {Row} row @param {boolean} allows */
function setEffect(row, allows) {
  if (!allows) setAside.set(row.key, row.allow);
  const before = setAside.get(row.key);
  set(row, { allow: allows ? (before?.length ? before : ["describe", "subscribe", "history"]) : [] });
}

/** @param {number} index @param {number} by -1 up, 1 down */
function move(index, by) {
  if (!draft) return;
  const [moved] = draft.rows.splice(index, 1);
  draft.rows.splice(index + by, 0, moved);
  rowsEdited();
  const buttons = findAll(rowElement(moved.key), ".rule-tools .button:not([disabled])");
  (buttons[by < 0 ? 0 : buttons.length - 2] ?? buttons[0])?.focus();
}

/** @param {number} index */
function remove(index) {
  if (!draft) return;
  draft.rows.splice(index, 1);
  rowsEdited();
  const next = draft.rows[Math.min(index, draft.rows.length - 1)];
  find(next ? rowElement(next.key) : byId("policy-editor"), "select, .presets .button", HTMLElement)?.focus();
}

/** @param {string} preset */
function add(preset) {
  if (!draft) return;
  const made = rows.PRESETS[preset].make();
  draft.rows.push(made);
  rowsEdited();
  const fields = findAll(rowElement(made.key), "input:not([type]), select");
  (fields.find((field) => field instanceof HTMLInputElement && !field.value) ?? fields[0])?.focus();
}

/** @param {Row} row */
function addCondition(row) {
  set(row, { conditions: [...row.conditions, rows.condition({ claim: row.conditions.length ? "" : "sub" })] });
  const lines = findAll(rowElement(row.key), ".condition");
  lines.at(-1)?.querySelector("input")?.focus();
}

/** @param {number} key @returns {HTMLElement} */
function rowElement(key) {
  return /** @type {HTMLElement} */ (byId("policy-editor").querySelector(`[data-key="${key}"]`));
}

/** @param {string} text */
function typedJson(text) {
  if (!draft) return;
  draft.json = text;
  let fault = "";
  try {
    const policy = JSON.parse(text);
    draft.rows = rows.rowsOf(policy); // throws for what is no list of rules
    draft.document = policy;
  } catch (error) {
    fault = error instanceof SyntaxError ? `Not valid JSON: ${error.message}.` : "Not a list of rules.";
  }
  draft.touched = new Set(draft.rows.map(({ key }) => key));
  edited(fault);
}

/** @param {"rows" | "json"} view */
function setView(view) {
  if (!draft || draft.view === view || (view === "rows" && draft.jsonFault)) {
    draw();
    return;
  }
  if (view === "json") {
    try {
      draft.json = JSON.stringify(policyOf(draft), null, 2);
    } catch {
      draft.touched = new Set(draft.rows.map(({ key }) => key)); // a test that is no JSON: said at its row
      draw();
      return;
    }
  }
  draft.view = view;
  draw();
}

async function save(button) {
  const saved = draft;
  if (!saved || button.getAttribute("aria-busy") === "true") return;
  saved.touched = new Set(saved.rows.map(({ key }) => key));
  saved.refused = "";
  draw();
  if (focusFault()) return;
  button.setAttribute("aria-busy", "true");
  try {
    await patchMatching(`"${saved.version}"`, { policy: policyOf(saved) });
    toast("The policy is changed and takes effect at once.");
    close();
  } catch (error) {
    if (error instanceof SessionEnded) tellEnd(error);
    saved.refused = error.message;
    draw();
    focusFault();
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** Lead to what is wrong. Returns whether anything is. */
function focusFault() {
  const box = byId("policy-editor");
  const fault = box.querySelector(".policy-row:has(.error-list) select, [aria-invalid=true]");
  if (fault instanceof HTMLElement) fault.focus();
  return Boolean(fault || box.querySelector(".error-list:not([hidden])"));
}

// ---- drawing ----

function draw() {
  if (draft) render(editor(draft), byId("policy-editor"));
}

/** @param {Draft} shown */
function editor(shown) {
  const faults = rows.faultsOf(shown.rows);
  const at = rows.ruleOf(shown.refused);
  const whole = shown.refused && (at < 0 || shown.view === "json") ? shown.refused : "";
  return html`<datalist id="policy-peers">${peers.map((name) => html`<option value=${name}></option>`)}</datalist>
    <div class="label-line">
      <div class="choices" role="radiogroup" aria-label="Edit the policy as">
        ${["rows", "json"].map(
          (view) => html`<label><input type="radio" name="policy-view" value=${view} .checked=${shown.view === view}
            ?disabled=${view === "rows" && Boolean(shown.jsonFault)}
            @change=${() => setView(/** @type {"rows" | "json"} */ (view))}><span>${view === "rows" ? "Rules" : "JSON"}</span></label>`,
        )}
      </div>
      <a class="small" href="/docs/policy" target="_blank" rel="noopener">The language of policies</a>
    </div>
    ${shown.view === "json" ? json(shown) : rulesView(shown, faults, at)}
    ${whole ? html`<p class="error-list" role="alert">${whole}</p>` : nothing}
    <div class="actions">
      <button type="button" class="button primary" @click=${({ currentTarget }) => void save(currentTarget)}>Save policy</button>
      <button type="button" class="button" @click=${close}>Cancel</button>
      <span class="muted small" role="status">${changed(shown) ? "Not saved yet. Explain an access decision to try it." : ""}</span>
    </div>`;
}

/** @param {Draft} shown */
function changed(shown) {
  return Boolean(faultIn(shown)) || JSON.stringify(policyOf(shown)) !== shown.saved;
}

/** @param {Draft} shown */
function json(shown) {
  return html`<div class="field">
    <label for="policy-typed">Rules, as JSON</label>
    <textarea id="policy-typed" class="tall" spellcheck="false" autocomplete="off" .value=${shown.json}
      aria-invalid=${shown.jsonFault ? "true" : nothing} aria-describedby="policy-json-fault"
      @input=${({ target }) => typedJson(target.value)}></textarea>
    <p class="error-list" id="policy-json-fault" role="status" ?hidden=${!shown.jsonFault}>${shown.jsonFault}</p>
  </div>`;
}

/** @param {Draft} shown @param {Map<number, string>} faults @param {number} refusedAt */
function rulesView(shown, faults, refusedAt) {
  const shadows = rows.shadowsOf(shown.rows);
  return html`
    ${
      shown.rows.length
        ? html`<ol class="policy-rows">${repeat(
            shown.rows,
            ({ key }) => key,
            (row, index) => {
              const fault = shown.touched.has(row.key) ? faults.get(row.key) : "";
              return ruleRow(row, index, {
                last: index === shown.rows.length - 1,
                fault: fault || (index === refusedAt ? shown.refused.replace(/^policy rule \d+: /, "") : ""),
                doubt: shadows.has(row.key)
                  ? `Never decides: rule ${shadows.get(row.key)} matches everybody whom this rule matches.`
                  : rows.doubtOf(row),
              });
            },
          )}</ol>`
        : html`<p class="empty"><strong>No rules</strong><span>Only the creator and administrators have access.</span></p>`
    }
    <div class="presets" role="group" aria-label="Add a rule">
      <span class="muted small">Add rule</span>
      ${Object.entries(rows.PRESETS).map(
        ([name, { says }]) =>
          html`<button type="button" class="button compact" @click=${() => add(name)}>${says}</button>`,
      )}
    </div>`;
}

/** @param {Row} row @param {number} index @param {{last: boolean, fault?: string, doubt: string}} about */
function ruleRow(row, index, { last, fault, doubt }) {
  const number = index + 1;
  const id = (part) => `rule-${row.key}-${part}`;
  const kind = rows.KINDS[row.kind];
  return html`<li class="policy-row" data-key=${row.key} @focusout=${(event) => left(row, event)}>
    <div class="rule-line">
      <span class="rule-number" aria-hidden="true">${number}</span>
      <div class="rule-who">
        <label class="visually-hidden" for=${id("kind")}>Rule ${number}: who</label>
        <select id=${id("kind")} aria-describedby=${fault ? id("fault") : nothing} @change=${({ target }) => set(row, { kind: target.value })}>
          ${Object.entries(rows.KINDS).map(([name, { says }]) => html`<option value=${name} ?selected=${row.kind === name}>${says}</option>`)}
        </select>
        ${
          "field" in kind
            ? html`<input aria-label=${`Rule ${number}: ${kind.field}`} list=${row.kind === "peer" ? "policy-peers" : nothing} maxlength="255"
                placeholder=${kind.example} autocomplete="off" spellcheck="false" autocapitalize="none" .value=${row.name}
                @input=${({ target }) => set(row, { name: target.value })}>`
            : nothing
        }
        ${
          row.kind === "oidc"
            ? html`<input aria-label=${`Rule ${number}: address of the issuer's keys, if it does not publish them`} maxlength="255"
                placeholder="Address of its keys (optional)" autocomplete="off" spellcheck="false" autocapitalize="none" .value=${row.jwks}
                @input=${({ target }) => set(row, { jwks: target.value })}>`
            : nothing
        }
      </div>
      <div class="rule-tools">
        <button type="button" class="button compact quiet" ?disabled=${index === 0} aria-label=${`Move rule ${number} up`} @click=${() => move(index, -1)}>↑</button>
        <button type="button" class="button compact quiet" ?disabled=${last} aria-label=${`Move rule ${number} down`} @click=${() => move(index, 1)}>↓</button>
        <button type="button" class="button compact" aria-label=${`Remove rule ${number}`} @click=${() => remove(index)}>Remove</button>
      </div>
    </div>
    <div class="rule-body">
      ${row.conditions.map((one, place) => conditionLine(row, one, { number, place }))}
      <button type="button" class="button compact quiet add-condition" @click=${() => addCondition(row)}><span aria-hidden="true">+</span> Condition on a claim<span class="visually-hidden"> of rule ${number}</span></button>
      <div class="rule-effect">
        <div class="choices" role="radiogroup" aria-label=${`Effect of rule ${number}`}>
          ${[true, false].map(
            (allows) => html`<label><input type="radio" name=${id("effect")} .checked=${row.allow.length > 0 === allows}
              @change=${() => setEffect(row, allows)}><span>${allows ? "Allow" : "Refuse"}</span></label>`,
          )}
        </div>
        <div class="chips" role="group" aria-label=${`Operations that rule ${number} allows`}>
          ${rows.OPERATIONS.map(
            (operation) => html`<label class="chip"><input type="checkbox" .checked=${row.allow.includes(operation)}
              @change=${() => toggle(row, operation)}><span>${operation}</span></label>`,
          )}
        </div>
      </div>
      ${fault ? html`<p class="error-list" id=${id("fault")} role="alert">${fault}</p>` : nothing}
      ${doubt ? html`<p class="doubt small">${doubt}</p>` : nothing}
    </div>
  </li>`;
}

/** @param {Row} row @param {Condition} one @param {{number: number, place: number}} at */
function conditionLine(row, one, { number, place }) {
  const about = `Rule ${number}, condition ${place + 1}`;
  const typed =
    (name) =>
    ({ target }) =>
      setCondition(row, one, { [name]: target.value });
  const { takes } = rows.TESTS[one.test];
  return html`<div class="condition">
    <input class="claim" aria-label=${`${about}: claim`} placeholder="claim" maxlength="256" autocomplete="off" spellcheck="false"
      autocapitalize="none" .value=${one.claim} @input=${typed("claim")}>
    <select aria-label=${`${about}: test`} @change=${typed("test")}>
      ${Object.entries(rows.TESTS).map(([name, { says }]) => html`<option value=${name} ?selected=${one.test === name}>${says}</option>`)}
    </select>
    ${
      takes === "lines"
        ? html`<textarea rows="2" aria-label=${`${about}: texts, one per line`} spellcheck="false" .value=${one.value} @input=${typed("value")}></textarea>`
        : takes
          ? html`<input aria-label=${`${about}: ${takes === "range" ? "from" : "value"}`} placeholder=${takes === "range" ? "from" : "value"}
              maxlength="1024" autocomplete="off" spellcheck="false" autocapitalize="none" .value=${one.value} @input=${typed("value")}>`
          : nothing
    }
    ${
      takes === "range"
        ? html`<input aria-label=${`${about}: to`} placeholder="to" maxlength="32" autocomplete="off" .value=${one.end} @input=${typed("end")}>`
        : nothing
    }
    <button type="button" class="button compact quiet" aria-label=${`Remove condition ${place + 1} of rule ${number}`}
      @click=${() => set(row, { conditions: row.conditions.filter((other) => other !== one) })}>Remove</button>
  </div>`;
}

/** What is missing in a row is said when the reader has left it. @param {Row} row @param {FocusEvent} event */
function left(row, { currentTarget, relatedTarget }) {
  if (!draft || (relatedTarget instanceof Node && /** @type {Node} */ (currentTarget).contains(relatedTarget))) return;
  draft.touched.add(row.key);
  if (!pointed) queueMicrotask(draw);
  else addEventListener("pointerup", () => setTimeout(draw), { once: true }); // nothing moves away under a press
}

let pointed = false; // whether a button of the pointer is down
addEventListener("pointerdown", () => (pointed = true), true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pointed = false), true);
