/** Durable subscriptions: who reads where, how far behind, until when. Lag follows the load. */

import { byId, pageData } from "../elements.js";
import { act, renewed } from "../acting.js";
import { ask } from "../dialog.js";
import { behind, duration } from "../format.js";
import { Listing, keepCurrent } from "../listing.js";
import { request } from "../requests.js";
import { RpLabels } from "../rp_labels.js";
import { breakable, html } from "../table.js";

const LOAD_SAMPLED = "io.herald.load.sampled";
const LAG_SHOWN = 1; // events behind from which a row is marked
const LAGS_EVERY_MS = 5_000; // an order by lag is made of thousands of logs: not for each sample
let lagsAt = -Infinity; // when they were asked for last because they had moved
let unseen = false; // whether they have moved since

const page = pageData();
const labels = new RpLabels(page.labelsUrl, () => subscriptions.redraw());
const path = ({ id }) => `/api/v1/subscriptions/${encodeURIComponent(id)}`;

function renew(button, row) {
  const asked = row.lease.granted_s;
  const perform = () => request("POST", `${path(row)}/renew`, { lease_s: asked });
  void act(button, perform, ({ lease }) => renewed(lease, asked)).then(() => subscriptions.refresh());
}

async function remove(row) {
  const answer = await ask({
    title: "Delete this subscription?",
    says: `${row.owner} receives no more events through this subscription, and its position in the log is deleted${row.lag ? `: it is ${behind(row.lag, row.lost)}` : ""}. This cannot be undone.`,
    action: "Delete",
    danger: true,
    perform: () => request("DELETE", path(row)),
  });
  if (answer !== null) subscriptions.refresh();
}

function lagging({ lag, lost }) {
  if (lag < LAG_SHOWN) return html`<span class="muted">0</span>`;
  return lost ? html`<span class="badge bad">losing events</span> ${behind(lag, lost)}` : behind(lag);
}

/** Whether a load sample shows that lags have changed, so that rows are due for a reload. */
function moved({ data }, rows) {
  unseen ||= data.events_in > 0 || data.deliveries > 0 || rows.some(({ lag }) => lag > 0);
  if (!unseen || performance.now() - lagsAt < LAGS_EVERY_MS) return false;
  unseen = false;
  lagsAt = performance.now();
  return true;
}

const subscriptions = new Listing({
  url: "/api/v1/subscriptions",
  concerns: (event, rows) =>
    event.type.startsWith("io.herald.subscription.") ||
    (event.type.startsWith("io.herald.lease.") && event.data.what === "subscription") ||
    (event.type === LOAD_SAMPLED && moved(event, rows)),
  onShown: ({ items, complete }) => {
    void labels.ask(items.map(({ rp }) => rp));
    byId("incomplete").hidden = complete;
  },
  table: {
    caption: "Durable subscriptions with their lag and the end of their lease",
    key: ({ id }) => id,
    empty: html`<strong>No durable subscriptions</strong>
      <span>Create one with <code>POST /api/v1/rps/ID/subscriptions</code> or <code>herald sub-durable</code>. A durable subscription outlives its reader's connection.</span>`,
    columns: [
      {
        name: "Reads",
        header: true,
        cell: (row) => html`<a class="rp-link" href=${`/rps/${row.rp}`}>${breakable(labels.of(row.rp))}</a>
          <span class="rp-sub mono" title=${row.id}>${row.id}</span>`,
      },
      { name: "Owner", width: "9rem", cell: (row) => row.owner },
      { name: "Delivery", width: "5.5rem", cell: (row) => row.deliver.mode },
      {
        name: "Behind",
        number: true,
        width: "11rem",
        cell: lagging,
      },
      {
        name: "Lease ends",
        width: "9.5rem",
        cell: (row) => html`<time datetime=${row.lease.expires_at} data-countdown></time>
          <span class="rp-sub">granted ${duration(row.lease.granted_s * 1000)}</span>`,
      },
      ...("operates" in page
        ? [
            {
              name: "Actions",
              width: "11.5rem",
              cell: (row) => html`<span class="row-actions">
              <button type="button" class="button compact" @click=${({ currentTarget }) => renew(currentTarget, row)}>Renew</button>
              <button type="button" class="button compact danger" @click=${() => remove(row)}>Delete</button></span>`,
            },
          ]
        : []),
    ],
  },
});
keepCurrent([subscriptions]);
