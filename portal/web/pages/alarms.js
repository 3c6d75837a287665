/** Alarms of the domain, newest first: live while they are in force, and the history of those that were. */

import { byId, pageData } from "../elements.js";
import { isMuted } from "../alarm_badge.js";
import { causeOf, ruleOf, runbookOf } from "../alarm_cause.js";
import { startContactPoints } from "../alarms/contact_points.js";
import { ask } from "../dialog.js";
import { durationField, typedNumber } from "../durations.js";
import { plural } from "../format.js";
import { Listing, keepCurrent } from "../listing.js";
import { request } from "../requests.js";
import { RpLabels } from "../rp_labels.js";
import { ruleWords } from "../rule_words.js";
import { breakable, html, nothing, render } from "../table.js";
import { toast } from "../toast.js";

const SEVERITIES = { critical: "bad", warning: "warn" };
const MUTE_S_DEFAULT = 3600;
const RAISED = "io.herald.alarm.raised";
const page = pageData();
const labels = new RpLabels(page.labelsUrl, () => alarms.redraw());

async function acknowledge(alarm) {
  const note = await ask({
    title: "Acknowledge this alarm?",
    says: `${alarm.detail} ${alarm.lasting ? "Acknowledging clears this alarm, which has no other end." : "The alarm stays active until its rule holds again. Others see that you acknowledged it."}`,
    action: "Acknowledge",
    reason: { label: "Note", hint: "Optional. Shown with the alarm.", value: alarm.acknowledged?.note ?? "" },
    perform: (reason) => request("POST", `/api/v1/alarms/${alarm.id}/acknowledge`, { note: reason }),
  });
  if (note === null) return;
  toast("Acknowledged.");
  alarms.refresh();
}

async function mute(alarm) {
  const box = document.createElement("div");
  const words = document.createElement("p");
  words.textContent = `${alarm.detail} Nobody is notified of it, and it is not counted in the menu, until then; nor if it is cleared and raised again meanwhile. It stays listed.`;
  box.className = "stack";
  box.append(words, durationField("for", { label: "Mute for", seconds: MUTE_S_DEFAULT }));
  const reason = await ask({
    title: "Mute this alarm?",
    says: box,
    action: "Mute",
    reason: { hint: "Recorded in the audit, and shown with the alarm." },
    perform: (why) =>
      request("POST", `/api/v1/alarms/${alarm.id}/mute`, { for_s: typedNumber(box, "for") ?? 0, reason: why }),
  });
  if (reason === null) return;
  toast("Muted.");
  alarms.refresh();
}

async function unmute(alarm) {
  try {
    await request("POST", `/api/v1/alarms/${alarm.id}/unmute`, {});
    toast("No longer muted.");
    alarms.refresh();
  } catch (error) {
    toast(error.message, "bad");
  }
}

/** Whose it is, as a link to where more is to be seen. */
function subject(alarm) {
  const { rp, about } = alarm;
  const name = rp ? breakable(labels.of(rp)) : "the domain";
  return html`<a class="rp-link" href=${causeOf(alarm)}>${name}</a>
    ${about ? html`<span class="rp-sub mono" title=${about}>${about}</span>` : nothing}`;
}

function status(alarm) {
  if (alarm.cleared) {
    return html`<span class="badge good">cleared</span>
      <span class="rp-sub"><time datetime=${alarm.cleared.at} data-age></time></span>`;
  }
  const { acknowledged, muted } = alarm;
  return html`${
    acknowledged
      ? html`<span class="tag">acknowledged</span><span class="rp-sub" title=${acknowledged.note}>${acknowledged.by}${acknowledged.note ? `: ${acknowledged.note}` : ""}</span>`
      : html`<span class="badge ${SEVERITIES[alarm.severity]}">open</span>`
  }${
    isMuted(alarm)
      ? html`<span class="rp-sub" title=${muted.reason}>muted until <time datetime=${muted.until} data-clock></time> by ${muted.by}${muted.reason ? `: ${muted.reason}` : ""}</span>`
      : nothing
  }`;
}

/** @type {Record<string, any>} */
let watches = {}; // rules in force, by id

/** Links to the rule and to what to do. */
function links(alarm) {
  const rule = ruleOf(alarm, watches);
  return html`<a href=${runbookOf(alarm.kind)}>What to do</a>${rule ? html` · <a href=${rule}>Rule</a>` : nothing}`;
}

const alarms = new Listing({
  url: "/api/v1/alarms",
  concerns: ({ type }) => type.startsWith("io.herald.alarm."),
  onShown: ({ items }) => void labels.ask(items.map(({ rp }) => rp)),
  table: {
    caption: "Alarms, newest first",
    key: ({ id }) => id,
    empty: html`<strong>No active alarms</strong><span>All watch rules hold.</span>`,
    columns: [
      {
        name: "Problem",
        header: true,
        cell: (alarm) => html`<span class="alarm-detail">${alarm.detail}</span>
          <span class="rp-sub"><span class="badge ${SEVERITIES[alarm.severity]}">${alarm.severity}</span> ${alarm.kind.replaceAll("_", " ")}${alarm.lasting ? ", until acknowledged" : ""} · ${links(alarm)}</span>`,
      },
      { name: "Object", width: "13rem", cell: (alarm) => subject(alarm) },
      { name: "Since", width: "9.75rem", cell: ({ since }) => html`<time datetime=${since} data-age></time>` },
      { name: "State", width: "8.5rem", cell: (alarm) => status(alarm) },
      ...("operates" in page
        ? [
            {
              name: "Actions",
              width: "9.5rem",
              cell: (alarm) =>
                alarm.cleared
                  ? nothing
                  : html`<span class="row-actions"><button type="button" class="button compact"
                  @click=${() => void acknowledge(alarm)}>Acknowledge</button>
                  ${
                    isMuted(alarm)
                      ? html`<button type="button" class="button compact" @click=${() => void unmute(alarm)}>Unmute</button>`
                      : html`<button type="button" class="button compact" @click=${() => void mute(alarm)}>Mute…</button>`
                  }</span>`,
            },
          ]
        : []),
    ],
  },
});

/** Rules of the domain, each with the anchor that alarms link to. */
function drawRules() {
  const rules = Object.values(watches)
    .filter(({ rp }) => !rp)
    .sort((a, b) => a.kind.localeCompare(b.kind) || a.id.localeCompare(b.id));
  byId("domain-rules").hidden = rules.length === 0;
  render(
    html`<ol class="watched">${rules.map(
      ({ id, kind, settings, severity, for_s }) =>
        html`<li id=${`rule-${id}`}><p>${ruleWords({ [kind]: settings, severity, for_s })}</p></li>`,
    )}</ol>`,
    byId("domain-rules-list"),
  );
  if (location.hash.startsWith("#rule-")) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

startContactPoints(page);
keepCurrent([alarms], (state, events) => {
  if (state.watches !== watches) {
    watches = state.watches;
    drawRules();
    alarms.redraw();
  }
  const rules = Object.keys(state.watches).length;
  const watched = byId("watched");
  const words = rules ? `${plural(rules, "watch rule")}` : "No watch rules";
  if (watched.textContent !== words) watched.textContent = words;
  for (const { type, data } of events) {
    if (type === RAISED) {
      byId("said").textContent = `Alarm, ${data.alarm.severity}: ${data.alarm.detail}`;
    }
  }
});
