/** Readers of an RP: live sessions on all gateways, slowest first, and durable subscriptions with their lag. */

import { need } from "../elements.js";
import { ask } from "../dialog.js";
import { behind, bytes, count, plural } from "../format.js";
import { getJson, request } from "../requests.js";
import { Table, html, nothing, render } from "../table.js";
import { toast } from "../toast.js";
import { byId, page, setText, whileShown } from "./page.js";

/** @import { RpState } from "../shapes.d.ts" */
/** @import { AdminEvent } from "../types.d.ts" */

const LOOKED_MS = 2_000; // interval of requests to the gateways while the tab is visible: no event reports the lag of sessions
const STATES = {
  live: ["good", "live"],
  replaying: ["warn", "catching up"],
  stalled: ["bad", "not receiving"],
  idle: ["", "idle"],
};
const COMES_AND_GOES = new Set([
  "io.herald.sessions.changed",
  "io.herald.sessions.disconnected",
  "io.herald.gateway.lost",
]);

/** @type {Table | null} */
let sessions = null;
/** @type {Table | null} */
let subscriptions = null;
let lookSoon = () => {};
let mayAct = true;
/** @type {RpState["subscriptions"] | null} */
let drawnSubscriptions = null;

/** Wire the tab. */
export function startReaders() {
  if (page.mayOversee) {
    sessions = new Table(byId("sessions"), {
      ...SESSIONS,
      columns: SESSIONS.columns.filter(({ acts }) => !acts || page.mayOperate),
    });
    lookSoon = whileShown("readers", look, { everyMs: LOOKED_MS });
  }
  if (page.mayWatch) {
    const columns = SUBSCRIPTIONS.columns.filter(({ acts }) => !acts || page.mayAdminister);
    subscriptions = new Table(byId("subscriptions"), { ...SUBSCRIPTIONS, columns });
  }
}

/** @param {RpState} state of the RP @param {AdminEvent[]} events */
export function showReaders(state, events) {
  if (events.some(({ type }) => COMES_AND_GOES.has(type))) lookSoon();
  if (!state.rp) mayAct = false;
  if (!subscriptions || state.subscriptions === drawnSubscriptions) return;
  drawnSubscriptions = state.subscriptions;
  const rows = Object.values(state.subscriptions);
  subscriptions.show(rows);
  setText(byId("subscriptions-note"), rows.length ? plural(rows.length, "subscription") : "");
}

// ---- sessions ----

const SESSIONS = {
  caption: "Sessions that read this rendezvous point, slowest first",
  key: (row) => row.id,
  columns: [
    { name: "Who", header: true, cell: who, by: (row) => row.principal ?? "" },
    { name: "State", width: "14rem", cell: (row) => badge(...STATES[row.state]), by: (row) => row.state },
    {
      name: "Behind",
      number: true,
      width: "8.5rem",
      cell: (row) => (row.lag ? plural(row.lag, "event") : "0"),
      by: (row) => row.lag,
    },
    {
      name: "Unsent",
      number: true,
      width: "7rem",
      cell: (row) => bytes(row.waiting_bytes),
      by: (row) => row.waiting_bytes,
    },
    {
      name: "Connected",
      width: "8.5rem",
      cell: (row) => html`<time datetime=${row.since} data-age></time>`,
      by: (row) => row.since,
    },
    {
      name: "Actions",
      acts: true,
      width: "8.5rem",
      cell: (row) =>
        html`<button type="button" class="button compact" @click=${() => disconnect(row)}>Disconnect<span class="visually-hidden"> ${row.principal ?? "the stranger"}</span></button>`,
    },
  ],
  sort: { column: 2, descending: true },
  empty: html`<strong>No readers</strong><span>Sessions appear here when they subscribe.</span>`,
};

function who(row) {
  const issuer =
    row.issuer && row.issuer !== page.domain ? html` <span class="muted small">of ${row.issuer}</span>` : nothing;
  return html`<strong class="who">${row.principal ?? "a stranger"}</strong>${issuer}
    <span class="rp-sub">${row.kind === "sse" ? "Server-Sent Events" : row.kind}${row.address ? ` from ${row.address}` : ""}, ${row.readings === 1 ? "no other readings" : `reads ${plural(row.readings, "rendezvous point")}`}</span>`;
}

function badge(kind, words) {
  return html`<span class="badge ${kind}">${words}</span>`;
}

async function look() {
  try {
    const { items, matching, gateways } = await getJson(`/api/v1/sessions?sort=lag&limit=100&rp=${page.rp}`);
    sessions?.show(items);
    const all =
      matching > items.length
        ? `the ${items.length} slowest of ${count(matching)}`
        : items.length
          ? plural(matching, "session")
          : "";
    const missing = gateways.asked - gateways.answered;
    setText(
      byId("sessions-note"),
      [all, missing > 0 && `${plural(missing, "gateway")} did not respond: sessions are missing`]
        .filter(Boolean)
        .join("; "),
    );
    byId("sessions").classList.remove("stale");
  } catch (error) {
    byId("sessions").classList.add("stale");
    setText(byId("sessions-note"), `${error.message} Retrying automatically.`);
  }
}

async function disconnect(row) {
  if (!mayAct) return;
  const says = document.createElement("div");
  render(
    html`<p>${row.principal ?? "The stranger"} is disconnected${row.readings > 1 ? ` and stops reading ${count(row.readings)} rendezvous points` : ""}. The client can connect again; to deny access, change the policy or revoke the token.</p>
      <label class="check space-above"><input type="checkbox" name="retry"> Ask the client to connect again</label>`,
    says,
  );
  const done = await ask({
    title: `Disconnect ${row.principal ?? "this stranger"}?`,
    says,
    action: "Disconnect",
    danger: true,
    perform: () =>
      request(
        "DELETE",
        `/api/v1/sessions/${encodeURIComponent(row.id)}?retry=${need(says, "input", HTMLInputElement).checked}`,
      ),
  });
  if (done === null) return;
  toast("The session is disconnected.");
  lookSoon();
}

// ---- durable subscriptions ----

const SUBSCRIPTIONS = {
  caption: "Durable subscriptions, furthest behind first",
  key: (row) => row.id,
  columns: [
    {
      name: "Subscription",
      header: true,
      cell: (row) =>
        html`<strong class="who">${row.owner}</strong><span class="rp-sub mono" title=${row.id}>${row.id}</span>`,
      by: (row) => row.owner,
    },
    { name: "Behind", number: true, width: "11rem", cell: lagging, by: (row) => row.lag.events },
    {
      name: "Oldest waiting",
      width: "9rem",
      cell: (row) => (row.lag.oldest_at ? html`<time datetime=${row.lag.oldest_at} data-age></time>` : "–"),
      by: (row) => row.lag.oldest_at,
    },
    {
      name: "Lease ends",
      width: "10rem",
      cell: (row) => html`<time datetime=${row.lease.expires_at} data-countdown></time>`,
      by: (row) => row.lease.expires_at,
    },
    {
      name: "Actions",
      acts: true,
      width: "10rem",
      cell: (row) =>
        html`<span class="row-acts"><button type="button" class="button compact" @click=${() => renew(row)}>Renew<span class="visually-hidden"> ${row.owner}'s</span></button>
          <button type="button" class="button compact danger" @click=${() => remove(row)}>Delete<span class="visually-hidden"> ${row.owner}'s</span></button></span>`,
    },
  ],
  sort: { column: 1, descending: true },
  empty: html`<strong>No durable subscriptions</strong><span>A durable subscription keeps events for a reader that is disconnected. Create one with <code>herald sub --durable</code>.</span>`,
};

function lagging({ lag }) {
  if (!lag.events) return lag.events === null ? "–" : "0";
  return lag.lost
    ? html`<span class="badge bad">losing events</span> ${behind(lag.events, lag.lost)}`
    : behind(lag.events);
}

async function renew(row) {
  try {
    await request("POST", `/api/v1/subscriptions/${row.id}/renew`, { lease_s: row.lease.granted_s });
    toast("The subscription's lease is renewed.");
  } catch (error) {
    toast(error.message, "bad");
  }
}

async function remove(row) {
  const waiting = row.lag.events ? ` It is ${behind(row.lag.events, row.lag.lost)}; its unread events are lost.` : "";
  const done = await ask({
    title: `Delete ${row.owner}'s subscription?`,
    says: `The subscription and its position are deleted permanently.${waiting}`,
    action: "Delete",
    danger: true,
    perform: () => request("DELETE", `/api/v1/subscriptions/${row.id}`),
  });
  if (done !== null) toast("The subscription is deleted.");
}
