/** Peers on a map and in a table, and one of them whole. Live from domain.admin; the peer that is open is in the address. */

import { byId, find, pageData } from "../elements.js";
import { awayWords } from "../away.js";
import { addPeer } from "../federation/actions.js";
import { judged, summary } from "../federation/health.js";
import { FederationMap } from "../federation/map.js";
import { BacklogPlot } from "../federation/past.js";
import { Panel, badge, domainName, quarantined, wrong } from "../federation/panel.js";
import { count, plural, rate } from "../format.js";
import { openDomain } from "../live.js";
import { getJson } from "../requests.js";
import { Table, html, nothing, render } from "../table.js";
import { fillTimes, serverNow } from "../times.js";

const TICK_MS = 1_000; // what grows old without an event: backlogs, samples of traffic
const WRONG_SHOWN = 5;
const page = pageData();
const may = { administrate: page.administrate === "true", operate: page.operate === "true" };
const hrefOf = (name) => `${page.listUrl}/${encodeURIComponent(name)}`;

const panel = new Panel(byId("panel"), may);
const map = new FederationMap(byId("map"), { hrefOf, onOpen: open });
const past = new BacklogPlot(page.loadUrl);
let evidence = []; // of all quarantined origins
let since = 0; // when the state was read; traffic is known from then on
let said = new Map(); // level by peer, to announce changes to screen readers

const table = new Table(byId("peers"), {
  caption: "Peers with their state and traffic",
  key: (row) => row.name,
  columns: [
    {
      name: "Peer",
      header: true,
      cell: (row) => html`${peerLink(row)}<span class="narrow-only">${badge(row.health)}${nextTry(row)}</span>`,
      by: (row) => row.name,
    },
    {
      name: "State",
      width: "13rem",
      wideOnly: true,
      cell: (row) => html`${badge(row.health)}<span class="rp-sub">${row.health.sentence}${nextTry(row)}</span>`,
      by: (row) => row.health.word,
    },
    {
      name: "Waiting",
      number: true,
      width: "9rem",
      cell: (row) =>
        html`${count(row.delivery.backlog)}${row.delivery.oldest_at ? html`<time class="rp-sub" datetime=${row.delivery.oldest_at} data-age></time>` : nothing}`,
      by: (row) => row.delivery.backlog,
    },
    {
      name: "Sent",
      number: true,
      width: "5.25rem",
      wideOnly: true,
      cell: (row) => rate(row.rates.sent),
      by: (row) => row.rates.sent,
    },
    {
      name: "Taken",
      number: true,
      width: "5.5rem",
      wideOnly: true,
      cell: (row) => rate(row.rates.taken),
      by: (row) => row.rates.taken,
    },
  ],
  empty: nothing,
});

function nextTry({ delivery }) {
  return delivery.next_try_at
    ? html` <span class="small muted">Next try <time class="nowrap" datetime=${delivery.next_try_at} data-countdown></time>.</span>`
    : nothing;
}

function peerLink(row) {
  return html`<a class="rp-link" href=${hrefOf(row.name)} aria-current=${panel.name === row.name ? "true" : nothing} @click=${(
    event,
  ) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(row.name);
  }}>${domainName(row.name)}</a>`;
}

// ---- which peer is open ----

function open(name) {
  if (name === panel.name) return;
  history.pushState(null, "", name ? hrefOf(name) : page.listUrl);
  turnTo(name);
  if (name) byId("panel").focus({ preventScroll: innerWidth > 1200 });
}

function turnTo(name) {
  document.title = document.title.replace(/^.*? · /, `${name || "Federation"} · `);
  byId("federation").classList.toggle("one", Boolean(name));
  panel.open(name);
  past.of(name);
  if (live.state) draw(live.state, new Set());
}

panel.onClose = () => {
  const was = panel.name;
  open("");
  find(byId("map"), `[href="${CSS.escape(hrefOf(was))}"]`, SVGElement)?.focus();
};
addEventListener("popstate", () => turnTo(nameOfAddress()));
byId("panel").addEventListener("keydown", ({ key }) => key === "Escape" && panel.onClose());
byId("add")?.addEventListener("click", () => void addPeer(open));
byId("add-first")?.addEventListener("click", () => void addPeer(open));

function nameOfAddress() {
  return decodeURIComponent(location.pathname.slice(page.listUrl.length + 1));
}

// ---- drawing ----

function draw(state, touched) {
  const now = serverNow();
  const rows = judged(state.peers, state.quarantines, now, now - since);
  const gateways = Object.values(state.gateways).sort((a, b) => a.gateway.localeCompare(b.gateway));
  byId("federation").classList.toggle("without", rows.length === 0);
  byId("none").hidden = rows.length > 0;
  setText(byId("summary"), rows.length ? summary(rows) : "No peers yet");
  if (rows.length) {
    map.show(rows, { own: state.domain.name, gateways, selected: panel.name });
    table.show(rows);
  }
  drawAttention(state, rows);
  const name = panel.name;
  if (name) {
    panel.show(
      rows.find((row) => row.name === name) ?? null,
      {
        misbehaviour: Object.values(state.misbehaviour)
          .filter(({ carrier, origin }) => carrier === name || origin === name)
          .sort(newest),
        quarantine: state.quarantines[name] ?? null,
      },
      touched.has(name),
    );
  }
  fillTimes(byId("federation"));
  tell(rows);
}

const newest = (a, b) => b.last_at.localeCompare(a.last_at);

/** Peers that need attention: requests, failures, misbehaviour. Shown while no peer is open. */
function drawAttention(state, rows) {
  const waiting = rows.filter(
    ({ health }) =>
      health.level === "bad" || (health.level === "wait" && health.word === "Asks") || health.level === "warn",
  );
  const wrongs = Object.values(state.misbehaviour).sort(newest);
  const quarantines = Object.values(state.quarantines);
  render(
    html`<section class="card flush" aria-labelledby="attention-title">
        <div class="card-head"><h2 id="attention-title">Needs attention</h2><span class="muted small">${waiting.length ? plural(waiting.length, "peer") : ""}</span></div>
        ${
          waiting.length
            ? html`<ul class="attention">${waiting.map((row) => html`<li>${peerLink(row)}${badge(row.health)}<span class="rp-sub">${row.health.sentence}</span></li>`)}</ul>`
            : html`<div class="empty"><strong>Nothing</strong><span>${rows.length ? "All peers are up to date." : ""}</span></div>`
        }
      </section>
      <section class="card" aria-labelledby="wrong-title">
        <div class="card-head"><h2 id="wrong-title">Misbehaviour</h2></div>
        ${quarantines.map((one) =>
          quarantined(
            one,
            evidence.filter(({ origin }) => origin === one.origin),
            may.administrate,
          ),
        )}
        ${
          wrongs.length
            ? html`<ul class="plain-list">${wrongs.slice(0, WRONG_SHOWN).map(wrong)}</ul>${wrongs.length > WRONG_SHOWN ? html`<p class="small muted">${plural(wrongs.length - WRONG_SHOWN, "more kind")} are shown with their peers.</p>` : nothing}`
            : quarantines.length
              ? nothing
              : html`<p class="muted small">No misbehaviour observed.</p>`
        }
      </section>`,
    byId("attention"),
  );
}

/** Announce changes of health to screen readers; not the state at page load. */
function tell(rows) {
  const changed = rows.filter(({ name, health }) => said.has(name) && said.get(name) !== health.word);
  const first = said.size === 0;
  said = new Map(rows.map(({ name, health }) => [name, health.word]));
  if (!first && changed.length) {
    byId("said").textContent = changed
      .map(({ name, health }) => `${name}: ${health.word}. ${health.sentence}`)
      .join(" ");
  }
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// ---- what moves ----

/** The peers that events are about. */
function touchedBy(events) {
  const names = events.flatMap(({ type, data }) => {
    if (type === "io.herald.peers.traffic") return data.peers.map(({ peer }) => peer);
    return [data.peer?.name ?? data.peer, data.origin, data.carrier, data.what === "peer" && data.id].filter(Boolean);
  });
  return new Set(names);
}

async function loadEvidence(state) {
  if (Object.keys(state.quarantines).length === 0) return;
  try {
    evidence = (await getJson("/api/v1/evidence?limit=100")).items;
    draw(live.state, new Set());
  } catch {
    // The quarantines are shown without it; the connection's pill shows the problem.
  }
}

const live = openDomain({
  onChange: (state, events, { fresh }) => {
    if (fresh) {
      byId("federation").classList.remove("loading");
      byId("away").hidden = true;
      since = serverNow();
    }
    draw(state, touchedBy(events));
    if (fresh || events.some(({ type }) => type === "io.herald.origin.quarantined")) void loadEvidence(state);
  },
  onState: (state, error) => {
    byId("federation").classList.toggle("stale", state !== "live");
    if (live.state) return; // the data shown is out of date, as the pill shows
    byId("away").hidden = state === "live";
    setText(byId("away"), awayWords(state, error));
  },
});
turnTo(nameOfAddress());
setInterval(() => {
  if (live.state && live.current && !document.hidden) draw(live.state, new Set());
}, TICK_MS);
