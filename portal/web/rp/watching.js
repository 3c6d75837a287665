/** Watch rules and audience of an RP, and whether they hold. */

import { PacedPoll } from "../polling.js";
import { getJson } from "../requests.js";
import { plural } from "../format.js";
import { canonical, kindOf, ruleLabel, ruleWords } from "../rule_words.js";
import { html, nothing, render } from "../table.js";
import { fillTimes } from "../times.js";
import { claimsWords } from "./access.js";
import { byId, page, setText, whenShown } from "./page.js";
import { audienceAsked, audienceEnded, ruleAsked, ruleEnded } from "./watch_asking.js";

/** @import { RpState } from "../shapes.d.ts" */
/** @import { AdminEvent, Audience, WatchRule } from "../types.d.ts" */

const CHANGED = "io.herald.watch.changed";
const LOSS = "loss";
const BADGES = { critical: "bad", warning: "warn" };

/** @type {{watch: WatchRule[], audience: Audience[]} | null} */
let described = null; // {watch, audience} of the RP
/** @type {RpState | null} */
let state = null; // the RP's state, for who may watch it: the alarms in force
let wasShown = false;

/** Wire the tab. */
export function startWatching() {
  for (const [id, asked] of Object.entries({ "add-rule": ruleAsked, "add-audience": audienceAsked })) {
    byId(id)?.addEventListener("click", () => void asked().then(look));
    if (byId(id)) byId(id).hidden = false;
  }
  whenShown("watching", look);
}

/** @param {RpState} now @param {AdminEvent[]} events @param {boolean} fresh whether the state is that of a new snapshot */
export function showWatching(now, events, fresh) {
  const before = state;
  state = now;
  if (events.some(({ type }) => type === CHANGED) || (fresh && wasShown)) look();
  else if (before?.alarms !== now.alarms) draw();
}

const looking = new PacedPoll(
  () => getJson(page.api),
  (answer) => {
    described = answer;
    draw();
  },
  (error) => {
    if (described) return; // what stands there was so a moment ago
    for (const id of ["watch-rules", "audience"]) {
      render(
        html`<div class="broken"><strong>Loading failed</strong><span>${error.message}</span></div>`,
        emptied(byId(id)),
      );
    }
  },
);

function look() {
  wasShown = true;
  void looking.now();
}

function draw() {
  if (state) setText(byId("watching-count"), Object.keys(state.alarms).length || "");
  if (!described) return;
  const { watch, audience } = described;
  render(
    html`<ol class="watched">
      ${watch.map((rule) => shown(rule, ruleWords(rule), alarmsOf(kindOf(rule), rule), ruleAsked, ruleEnded, ruleLabel(rule)))}
      ${watch.some((rule) => LOSS in rule) ? nothing : lossRules()}
    </ol>`,
    emptied(byId("watch-rules")),
  );
  render(
    audience.length
      ? html`<ol class="watched">${audience.map((one) => shown(one, audienceWords(one), alarmsOf("audience", one), audienceAsked, audienceEnded, one.label))}</ol>`
      : html`<div class="empty"><strong>No audience required</strong><span>Events are accepted whether or not there are readers.</span></div>`,
    emptied(byId("audience")),
  );
  fillTimes(byId("watching"));
}

/** The rules about loss that an RP without any of its own has: the domain's, or the one that is built in. */
function lossRules() {
  const { by, rules } = JSON.parse(byId("loss-rules").textContent);
  const alarms = state && Object.values(state.alarms).filter(({ kind }) => kind === LOSS);
  const whose = by === "domain" ? "a rule of the domain" : "built in";
  return rules.map(
    (rule) => html`<li><div class="watched-line"><div>
    <p>${ruleWords(rule)} <span class="tag">${whose}</span></p>
    ${alarms === null || !rule[LOSS].within_s ? nothing : alarms.length ? alarms.map(alarm) : html`<p class="small"><span class="badge good">holds</span></p>`}
  </div></div></li>`,
  );
}

const begun = new WeakSet();

/** lit-html renders into elements that it has emptied itself: remove the server's markup first. */
function emptied(element) {
  if (!begun.has(element)) element.replaceChildren();
  begun.add(element);
  return element;
}

function shown(one, words, alarms, change, end, label) {
  return html`<li>
    <div class="watched-line">
      <div>
        <p>${words}</p>
        ${alarms === null ? nothing : alarms.length ? alarms.map(alarm) : html`<p class="small"><span class="badge good">holds</span></p>`}
      </div>
      ${
        page.mayAdminister
          ? html`<div class="row-acts">
              <button type="button" class="button compact" aria-label=${`Change: ${label}`} @click=${() => void change(one).then(look)}>Change…</button>
              <button type="button" class="button compact danger" aria-label=${`Remove: ${label}`} @click=${() => void end(one).then(look)}>Remove…</button>
            </div>`
          : nothing
      }
    </div>
  </li>`;
}

function alarm({ severity, detail, raised_at: at }) {
  return html`<p class="small"><span class="badge ${BADGES[severity] ?? ""}">${severity}</span> ${detail} <time class="muted" datetime=${at} data-age></time></p>`;
}

/** The alarms in force of a rule as stated; null for who may not see them. */
function alarmsOf(kind, stated) {
  if (!state) return null;
  const settings = canonical(kind === "audience" ? stated : stated[kind]);
  const same = (rule) =>
    rule.kind === kind &&
    canonical(rule.settings) === settings &&
    (kind === "audience" || (rule.severity === stated.severity && rule.for_s === stated.for_s));
  const ids = Object.values(state.watches)
    .filter(same)
    .map(({ id }) => id);
  return Object.values(state.alarms).filter(({ rule }) => ids.includes(rule));
}

// ---- in words ----

/** @param {Audience} audience */
function audienceWords({ label, at_least: least, claims, issuer, publishing }) {
  return html`<strong>${label}</strong>: at least ${plural(least, "reader")}${claims ? claimsWords(claims) : nothing}${issuer ? ` of ${issuer}` : ""}.
    <span class="muted small">Otherwise events are ${publishing === "flag" ? "accepted, and an alarm is raised" : "rejected, and a critical alarm is raised"}.</span>`;
}
