/** Domains with a replica of an RP: held events, lag and link of each; and the seals of this domain. */

import { count, plural } from "../format.js";
import { getJson } from "../requests.js";
import { Table, html, nothing, render } from "../table.js";
import { inviteAsked } from "./changing.js";
import { byId, page, setText, whileShown } from "./page.js";

/** @import { RpState } from "../shapes.d.ts" */
/** @import { AdminEvent } from "../types.d.ts" */

const LOOKED_MS = 5_000; // no event reports the state of links and seals
const LINKS = {
  eager: ["good", "eager", "events are sent at once"],
  lazy: ["", "lazy", "events arrive over another link; only announcements are sent"],
  stopped: ["bad", "stopped", "no events are sent: see the federation page"],
};
const TOLD = new Set([
  "io.herald.replica.added",
  "io.herald.replica.removed",
  "io.herald.rp.changed",
  "io.herald.rp.moved",
]);

/** @type {Table | null} */
let table = null;
let lookSoon = () => {};
let participants = [];
let progress = {}; // of the state: newer than what was looked up

/** Wire the tab. */
export function startReplicas() {
  table = new Table(byId("participants"), PARTICIPANTS);
  lookSoon = whileShown("replicas", look, { everyMs: LOOKED_MS });
  if (byId("invite")) byId("invite").hidden = false;
  byId("invite")?.addEventListener("click", () => void inviteAsked(participants.map(({ domain }) => domain)));
}

/** @param {RpState} state of the RP @param {AdminEvent[]} events */
export function showReplicas(state, events) {
  if (events.some(({ type }) => TOLD.has(type))) lookSoon();
  const others = Object.keys(state.replicas).length;
  setText(byId("replicas-count"), others > 1 ? others : "");
  if (progress === state.replicas) return;
  progress = state.replicas;
  if (participants.length) draw();
}

const PARTICIPANTS = {
  caption: "Domains with a replica of this rendezvous point",
  key: (row) => row.domain,
  columns: [
    {
      name: "Domain",
      header: true,
      cell: (row) =>
        html`<strong>${row.domain}</strong> ${row.role === "home" ? html`<span class="tag accent">home</span>` : nothing} ${row.domain === page.domain ? html`<span class="tag">this domain</span>` : nothing}<span class="rp-sub">${row.url || "address unknown"}</span>`,
      by: (row) => row.domain,
    },
    { name: "Link", width: "8rem", cell: link, by: (row) => row.link ?? "" },
    {
      name: "Behind",
      number: true,
      width: "8.5rem",
      cell: (row) => (row.behind === null ? "–" : row.behind ? plural(row.behind, "event") : "0"),
      by: (row) => row.behind,
    },
    { name: "Holds", width: "13rem", cell: holds },
    {
      name: "Admitted until",
      width: "10rem",
      cell: (row) => (row.expires_at ? html`<time datetime=${row.expires_at} data-countdown></time>` : "–"),
      by: (row) => row.expires_at ?? null,
    },
  ],
  empty: "No replicas are known.",
};

function link(row) {
  if (!row.link) return html`<span class="muted">${row.domain === page.domain ? "–" : "none"}</span>`;
  const [kind, words, about] = LINKS[row.link];
  return html`<span class="badge ${kind}" title=${about}>${words}</span>`;
}

function holds({ vector }) {
  const feeds = Object.entries(vector ?? {});
  if (feeds.length === 0) return html`<span class="muted">nothing yet</span>`;
  const total = feeds.reduce((sum, [, last]) => sum + last, 0);
  return html`<details class="vector"><summary>${plural(total, "event")} of ${plural(feeds.length, "feed")}</summary>
    <ul class="plain-list mono small">${feeds.map(([feed, last]) => html`<li>${feed.slice(0, 8)}… ${count(last)}</li>`)}</ul></details>`;
}

async function look() {
  try {
    const [{ items }, sealing] = await Promise.all([getJson(`${page.api}/replicas`), getJson(page.sealsUrl)]);
    participants = items;
    draw();
    render(seals(sealing), emptied(byId("seals")));
    byId("replicas").classList.remove("stale");
  } catch (error) {
    byId("replicas").classList.add("stale");
    if (participants.length === 0) {
      render(
        html`<div class="broken"><strong>The replicas could not be loaded</strong><span>${error.message} Retrying automatically.</span></div>`,
        emptied(byId("participants")),
      );
    }
  }
}

function draw() {
  table?.show(
    participants.map((one) => {
      const told = progress[one.domain];
      return {
        ...one,
        vector: told?.progress.vector ?? one.vector,
        behind: told?.progress.behind ?? one.backlog,
        expires_at: told?.expires_at ?? null,
      };
    }),
  );
}

const rendered = new WeakSet();

function emptied(element) {
  if (!rendered.has(element)) element.replaceChildren();
  rendered.add(element);
  return element;
}

// ---- seals ----

function seals({ own, others, epochs }) {
  if (!own) {
    return html`<p class="muted">${page.domain} has published no events here yet, so there is nothing to seal.</p>`;
  }
  const open = own.last - own.sealed;
  return html`
    <dl class="facts">
      <div><dt id="sealed-label">Sealed</dt><dd class="number">${count(own.sealed)} of ${plural(own.last, "event")}
        <meter min="0" max=${own.last} .value=${own.sealed} aria-labelledby="sealed-label"></meter></dd></div>
      <div><dt>Not sealed yet</dt><dd class="number">${open ? plural(open, "event") : "none"}</dd></div>
      <div><dt>Newest seal</dt><dd>${own.at ? html`<time datetime=${own.at} data-age></time>` : "none"}</dd></div>
      <div><dt>Feed</dt><dd class="mono">${own.feed}</dd></div>
      ${epochs.length ? html`<div><dt>Ended epochs</dt><dd>${epochs.map(({ epoch, sealed }) => html`<span class="mono">${epoch}</span> up to ${count(sealed)} `)}</dd></div>` : nothing}
      ${others.length ? html`<div><dt>Feeds of other domains here</dt><dd class="number">${count(others.length)}</dd></div>` : nothing}
    </dl>
    <p class="muted small space-above">${own.sealed ? "A seal signs a run of events before the run leaves the domain. Its holder can prove what was published." : "Events are sealed before they leave the domain, or when a proof is requested. Nobody has yet."}</p>`;
}
