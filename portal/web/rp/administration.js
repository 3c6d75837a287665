/** The activity log: events of an RP's administrative RP in sentences, newest first, retention folded into one line. */

import { duration, plural } from "../format.js";
import { getJson } from "../requests.js";
import { html, nothing, render } from "../table.js";
import { fillTimes } from "../times.js";
import { KINDS, folded, isRetention } from "./activity.js";
import { byId } from "./page.js";

/** @import { Entry } from "./activity.js" */
/** @import { AdminEvent } from "../types.d.ts" */

const CATALOGUE_URL = "/api/v1/admin/catalogue"; // live.js has fetched it: the browser has it
const ROWS_MAX = 300;
const RETENTION_MAX = 100; // reports of retention that are kept besides
const SAMPLES = new Set([
  "io.herald.load.sampled",
  "io.herald.subscription.lagged",
  "io.herald.replica.progressed",
  "io.herald.alarm.changed",
]);
const WARNS = new Set([
  "io.herald.operations.refused",
  "io.herald.lease.warned",
  "io.herald.rp.paused",
  "io.herald.gateway.lost",
  "io.herald.alarm.raised",
]);
const ENDS = new Set(["io.herald.rp.deleted", "io.herald.lease.expired", "io.herald.epoch.renewed"]);

/** @type {Record<string, {about: string}> | null} */
let types = null;
let loaded = false;
/** @type {AdminEvent[]} */
let rows = []; // the newest first

/** Begin with what the administrative RP remembers. @param {{offset: number, event: AdminEvent}[] | null} events the newest first */
export async function startAdministration(events) {
  byId("activity-kind").addEventListener("change", draw);
  types = await getJson(CATALOGUE_URL)
    .then((catalogue) => catalogue.types)
    .catch(() => ({}));
  if (events) take(events.map(({ event }) => event).reverse());
  loaded = true;
  draw();
}

/** @param {AdminEvent[]} events oldest first */
export function showAdministration(events) {
  if (take(events) && loaded) draw();
}

/** Keep the events that are shown, without samples. Returns their number. */
function take(events) {
  const told = events.filter(({ type }) => !SAMPLES.has(type));
  if (told.length === 0) return 0;
  const known = new Map(rows.map((event) => [event.id, event]));
  for (const event of told) known.set(event.id, event);
  const left = { retention: RETENTION_MAX, others: ROWS_MAX };
  rows = [...known.values()]
    .sort((a, b) => (b.time ?? "").localeCompare(a.time ?? ""))
    .filter((event) => left[isRetention(event) ? "retention" : "others"]-- > 0);
  return told.length;
}

let begun = false;

function draw() {
  const box = byId("happened");
  if (!begun) box.replaceChildren();
  begun = true;
  const shown = rows.filter(KINDS[byId("activity-kind", HTMLSelectElement).value]);
  render(
    shown.length
      ? html`<ol class="happened">${folded(shown).map((entry) => (entry.retention.length ? retentionRow(entry) : row(entry.event)))}</ol>`
      : html`<div class="empty"><strong>No activity</strong><span>${
          rows.length ? "Nothing of this kind is in the log." : "Changes, leases and pauses appear here as they happen."
        }</span></div>`,
    box,
  );
  fillTimes(box);
}

function row(event) {
  const trimmed = event.type === "io.herald.history.trimmed" && event.data.by; // by its bounds is how it is meant to be
  const kind = ENDS.has(event.type) ? "bad" : WARNS.has(event.type) || trimmed ? "warn" : "";
  const { says = about(event.type), more = facts(event) } = ALARMS[event.type]?.(event.data) ?? {};
  return html`<li class=${kind}>
    <details>
      <summary>
        <time class="number" datetime=${event.time} data-moment></time>
        <span>${says}${more.length ? html` <span class="muted">${more.join(", ")}</span>` : nothing}</span>
      </summary>
      <pre class="ev-raw">${JSON.stringify(event, null, 2)}</pre>
    </details>
  </li>`;
}

/** @param {Entry} entry */
function retentionRow({ event, retention, removed }) {
  return html`<li>
    <details>
      <summary>
        <time class="number" datetime=${event.time} data-moment></time>
        <span>Retention removed ${plural(removed, "event")} <span class="muted">in ${plural(retention.length, "report")} since <time datetime=${retention.at(-1)?.time} data-moment></time></span></span>
      </summary>
      <ul class="plain-list retention">${retention.map(
        ({ time, data }) =>
          html`<li class="small"><time class="number" datetime=${time} data-moment></time> ${plural(data.removed, "event")}</li>`,
      )}</ul>
    </details>
  </li>`;
}

/** Sentences for alarms, whose detail states the problem. */
const ALARMS = {
  "io.herald.alarm.raised": ({ alarm }) => ({ says: alarm.detail, more: [`${alarm.severity} alarm raised`] }),
  "io.herald.alarm.acknowledged": ({ alarm, by }) => ({
    says: `${by} acknowledged an alarm: ${alarm.detail}`,
    more: [alarm.acknowledged?.note].filter(Boolean),
  }),
  "io.herald.alarm.cleared": ({ alarm, why }) => ({
    says: `Alarm cleared: ${alarm.detail}`,
    more: [why].filter(Boolean),
  }),
};

function about(type) {
  return types?.[type]?.about ?? type;
}

/** Details of an event, in words. */
function facts({ data }) {
  const told = [];
  if (data.changed) told.push(`changed: ${data.changed.join(", ")}`);
  if (data.rp?.name && data.changed?.includes("name")) told.push(`now ${data.rp.name}`);
  if (data.what) told.push(`of the ${data.what === "rp" ? "rendezvous point" : data.what}`);
  if (data.granted_s !== undefined) told.push(`${duration(data.granted_s * 1000)} granted`);
  if (typeof data.removed === "number") told.push(`${plural(data.removed, "event")} removed`);
  if (data.subscription?.owner) told.push(`of ${data.subscription.owner}`);
  if (typeof data.domain === "string") told.push(data.domain);
  if (data.rules) told.push(`now ${plural(data.rules.length, "rule")}`);
  if (data.joined !== undefined && data.left !== undefined) {
    told.push(`${data.joined} joined, ${data.left} left${who(data.who)}`);
  }
  if (Array.isArray(data.kinds)) {
    told.push(...data.kinds.map(({ action, reason, count }) => `${action} ${reason} ×${count}`));
  }
  if (data.gateway && data.reason) told.push(`gateway ${data.gateway}`);
  if (data.reason) told.push(`reason: ${data.reason}`);
  else if (data.rp?.paused?.reason) told.push(`reason: ${data.rp.paused.reason}`);
  if (data.by) told.push(`by ${data.by}`);
  return told;
}

function who(list) {
  const names = (list ?? []).map(({ principal }) => principal || "a stranger");
  return names.length ? `: ${names.join(", ")}` : "";
}
