/** Alarms of the domain, newest first: live while they are in force, and the history of those that were. */

import { byId, pageData } from "../elements.js";
import { causeOf } from "../alarm_cause.js";
import { ask } from "../dialog.js";
import { plural } from "../format.js";
import { Listing, keepCurrent } from "../listing.js";
import { request } from "../requests.js";
import { RpLabels } from "../rp_labels.js";
import { breakable, html, nothing } from "../table.js";
import { toast } from "../toast.js";

const SEVERITIES = { critical: "bad", warning: "warn" };
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
  if (!alarm.acknowledged) return html`<span class="badge ${SEVERITIES[alarm.severity]}">open</span>`;
  const { by, note } = alarm.acknowledged;
  return html`<span class="tag">acknowledged</span><span class="rp-sub" title=${note}>${by}${note ? `: ${note}` : ""}</span>`;
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
        cell: ({ detail, severity, kind, lasting }) => html`<span class="alarm-detail">${detail}</span>
          <span class="rp-sub"><span class="badge ${SEVERITIES[severity]}">${severity}</span> ${kind.replaceAll("_", " ")}${lasting ? ", until acknowledged" : ""}</span>`,
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
                  @click=${() => void acknowledge(alarm)}>Acknowledge</button></span>`,
            },
          ]
        : []),
    ],
  },
});

keepCurrent([alarms], (state, events) => {
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
