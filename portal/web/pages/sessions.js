/** Live sessions of all gateways, the slowest first; operators end them. Sessions are no events: the list is asked for again. */

import { byId, need, pageData } from "../elements.js";
import { ask } from "../dialog.js";
import { bytes, count, plural, rate } from "../format.js";
import { Listing, keepCurrent } from "../listing.js";
import { request } from "../requests.js";
import { RpLabels } from "../rp_labels.js";
import { breakable, html, nothing, render } from "../table.js";
import { toast } from "../toast.js";

const EVERY_MS = 3_000;
const SECOND_LOOK_MS = 1_500; // rates are between two looks
const RATES_KEPT = 5_000; // sessions whose last look is remembered
const RPS_SHOWN = 3;
const CHANNELS = { "herald.v1": "WebSocket", cloudevents: "WebSocket, CloudEvents", sse: "Server-Sent Events" };
const STATES = { live: "good", idle: "", replaying: "warn", stalled: "bad" };
const page = pageData();
const labels = new RpLabels(page.labelsUrl, () => sessions.redraw());

/** What each session had passed at the last look, and its rate since the one before. @type {Map<string, {passed: number, readings: number, at: number, perSecond: number | null}>} */
const looks = new Map();

function measure(items) {
  const at = performance.now();
  for (const { id, passed, readings } of items) {
    const before = looks.get(id);
    const seconds = before ? (at - before.at) / 1000 : 0;
    if (before && seconds < 1) continue;
    // Another reading begins at its own place: no rate across that.
    const moved = before && before.readings === readings ? passed - before.passed : -1;
    looks.delete(id);
    looks.set(id, { passed, readings, at, perSecond: moved < 0 ? null : moved / seconds });
  }
  for (const id of looks.keys()) {
    if (looks.size <= RATES_KEPT) break;
    looks.delete(id);
  }
}

function reads({ rps, readings }) {
  if (readings === 0) return html`<span class="muted">nothing</span>`;
  const shown = rps.slice(0, RPS_SHOWN);
  return html`${shown.map(
    (rp, index) =>
      html`${index ? ", " : ""}<a class="rp-link" href=${`/rps/${rp.replace(/\.admin$/, "")}`}>${breakable(labels.of(rp))}</a>`,
  )}${readings > shown.length ? html` <span class="muted">and ${count(readings - shown.length)} more</span>` : nothing}`;
}

async function end(session) {
  const who = session.principal ?? "a stranger";
  const says = document.createElement("div");
  render(
    html`<p>The session of ${who}, which reads ${plural(session.readings, "rendezvous point")}, ends. The client can connect again; to deny access, change the policy or revoke the token.</p>
      <label class="check space-above"><input type="checkbox" name="retry"> Ask the client to connect again</label>`,
    says,
  );
  const done = await ask({
    title: `End the session of ${who}?`,
    says,
    action: "End session",
    danger: true,
    reason: { hint: "Recorded in the audit." },
    perform: (reason) => {
      const query = new URLSearchParams({ retry: String(need(says, "input", HTMLInputElement).checked), reason });
      return request("DELETE", `/api/v1/sessions/${encodeURIComponent(session.id)}?${query}`);
    },
  });
  if (done === null) return;
  toast("The session has ended.");
  sessions.refresh();
}

const sessions = new Listing({
  url: "/api/v1/sessions",
  concerns: ({ type }) => type === "io.herald.sessions.disconnected",
  onShown: ({ items, matching, gateways }) => {
    measure(items);
    sessions.redraw(); // with the rates
    const missing = gateways.asked - gateways.answered;
    byId("matching").textContent = [
      plural(matching, "session"),
      missing > 0 && `${plural(missing, "gateway")} did not respond: sessions are missing`,
    ]
      .filter(Boolean)
      .join("; ");
    void labels.ask(items.flatMap(({ rps }) => rps.slice(0, RPS_SHOWN)));
  },
  table: {
    caption: "Live sessions",
    key: ({ id }) => id,
    empty: html`<strong>No sessions</strong><span>Readers and publishers that stay connected appear here. <a href="/start">Start here</a> shows how a program connects.</span>`,
    columns: [
      {
        name: "Principal",
        header: true,
        cell: ({ principal, issuer, address }) =>
          html`<strong class="who">${principal ?? "a stranger"}</strong>${issuer && issuer !== page.domain ? html` <span class="muted small">of ${issuer}</span>` : nothing}
            ${address ? html`<span class="rp-sub mono">${address}</span>` : nothing}`,
      },
      { name: "Reads", width: "14rem", cell: reads },
      {
        name: "Channel",
        width: "9.5rem",
        cell: ({ kind, gateway }) =>
          html`${CHANNELS[kind] ?? kind}<span class="rp-sub mono" title="gateway">${gateway}</span>`,
      },
      { name: "Since", width: "8.5rem", cell: ({ since }) => html`<time datetime=${since} data-age></time>` },
      {
        name: "Lag",
        number: true,
        width: "7rem",
        cell: ({ lag, state, waiting_bytes: waiting }) =>
          html`${count(lag)}<span class="rp-sub"><span class="badge ${STATES[state] ?? ""}">${state}</span></span>${waiting ? html`<span class="rp-sub">${bytes(waiting)} unsent</span>` : nothing}`,
      },
      { name: "Rate", number: true, width: "6rem", cell: ({ id }) => rate(looks.get(id)?.perSecond ?? null) },
      ...("operates" in page
        ? [
            {
              name: "Actions",
              width: "6.5rem",
              cell: (session) =>
                html`<span class="row-actions"><button type="button" class="button compact danger" @click=${() => void end(session)}>End…</button></span>`,
            },
          ]
        : []),
    ],
  },
});
keepCurrent([sessions]);
setTimeout(() => sessions.refresh(), SECOND_LOOK_MS);
setInterval(() => document.hidden || sessions.refresh(), EVERY_MS);
