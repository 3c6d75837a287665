/** The domain at a glance: numbers, a range of the past, alarms, what is busy. Live from domain.admin. */

import { byId, findAll, need, pageData } from "../elements.js";
import { isMuted } from "../alarm_badge.js";
import { causeOf, runbookOf } from "../alarm_cause.js";
import { awayWords } from "../away.js";
import { LoadSeries } from "../load_series.js";
import { age, byteRate, bytes, count, duration, percent, plural, rate } from "../format.js";
import { Hottest } from "../hottest.js";
import { openDomain } from "../live.js";
import { Plot } from "../plot.js";
import { RANGES, beginsLater, chosenRange, startRange } from "../ranges.js";
import { SessionEnded, getJson } from "../requests.js";
import { drawSparkline } from "../sparkline.js";
import { Table, breakable, html, render } from "../table.js";
import { serverNow } from "../times.js";

const LOAD_SAMPLED = "io.herald.load.sampled";
const GATEWAY_LOST = "io.herald.gateway.lost";
const ALARMS_SHOWN = 5;
const HOT_SHOWN = 8;
const ENDING_EVERY_MS = 30_000; // how often is asked how many leases end soon
const LINES_EVERY_MS = 1_000; // how often the lines of the past are drawn anew
const page = pageData();

const load = new LoadSeries();
const hottest = new Hottest(page.labelsUrl);
let range = chosenRange();
const titleOf = () => `Events per second, ${RANGES[range].words}`;
const plot = new Plot(byId("rates"), {
  title: titleOf(),
  spanS: RANGES[range].seconds,
  format: rate,
  series: [
    { name: "in", fill: true },
    { name: "out to readers", dash: [7, 4] },
  ],
  height: 236,
});

// ---- tiles ----

/** Content of each tile by the state: [Quantity, note, series of the sparkline]. */
const TILES = {
  in: (now) => [rate(now.eventsIn), byteRate(now.bytesIn), "events_in"],
  out: (now) => [rate(now.deliveries), byteRate(now.bytesOut), "deliveries"],
  sessions: (now) => [count(now.sessions), plural(now.readings, "reading"), "sessions"],
  rps: (now, { counts }) => [count(counts.rps), now.newest, "rps"],
  subscriptions: (now, { counts }) => [count(counts.subscriptions), "", "subscriptions"],
  peers: (now) => [count(now.active), now.peersNote, null],
  backlog: (now) => [count(now.backlog), now.oldest, "backlog"],
  history: (now, { counts }) => [
    percent(counts.reserved_bytes, counts.quota_bytes),
    `${bytes(counts.reserved_bytes)} of ${bytes(counts.quota_bytes)}`,
    null,
  ],
};
const tiles = new Map(
  findAll(document, "[data-tile]").map((element) => [
    element.dataset.tile,
    {
      element,
      value: element.querySelector(".tile-value"),
      note: element.querySelector(".tile-note"),
      line: element.querySelector("svg"),
      meter: element.querySelector("meter"),
    },
  ]),
);

/** Sums over the gateways and over the peers. */
function summary(domain) {
  const gateways = Object.values(domain.gateways);
  const sum = (name) => gateways.reduce((total, sample) => total + sample[name], 0);
  const each = (name) => gateways.reduce((total, sample) => total + sample[name] / sample.interval_s, 0);
  const peers = Object.values(domain.peers);
  const failing = peers.filter(({ delivery }) => delivery?.failures > 0).length;
  const waiting = peers.filter(({ state }) => state === "asked").length;
  const backlog = peers.reduce((total, { delivery }) => total + (delivery?.backlog ?? 0), 0);
  const oldest = peers
    .map(({ delivery }) => delivery?.oldest_at)
    .filter(Boolean)
    .sort()[0];
  const newest = Object.values(domain.recent_rps)
    .map(({ created_at: at }) => at)
    .sort()
    .at(-1);
  return {
    eventsIn: each("events_in"),
    bytesIn: each("bytes_in"),
    deliveries: each("deliveries"),
    bytesOut: each("bytes_out"),
    sessions: sum("sessions"),
    readings: sum("readings"),
    active: peers.filter(({ state }) => state === "active").length,
    failing,
    waiting,
    backlog,
    peersNote:
      [failing && `${failing} failing`, waiting && `${waiting} waiting for you`].filter(Boolean).join(", ") ||
      (peers.length ? "all healthy" : "none yet"),
    oldest: oldest ? `oldest waiting ${age(oldest)}` : "no backlog",
    newest: newest ? `newest ${age(newest)} ago` : "",
  };
}

function drawTiles(state, now) {
  for (const [name, tile] of tiles) {
    const [quantity, note] = TILES[name](now, state);
    setNumber(tile.value, quantity);
    setText(tile.note, String(note));
    if (name === "history" && tile.meter) {
      tile.meter.value = state.counts.quota_bytes ? state.counts.reserved_bytes / state.counts.quota_bytes : 0;
    }
  }
  mark("peers", now.failing ? "bad" : now.waiting ? "warn" : "");
  mark("backlog", now.failing && now.backlog ? "bad" : "");
}

function setNumber(element, { value, unit }) {
  const text = `${value}\u202f${unit}`;
  if (element.dataset.text === text) return;
  element.dataset.text = text;
  if (!unit) {
    element.textContent = value;
    return;
  }
  const small = document.createElement("span");
  small.className = "unit";
  small.textContent = unit;
  element.replaceChildren(value, small);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text || "\u00a0";
}

/** Mark a tile that needs attention: a word and a sign in its note, and the colour. */
function mark(name, kind) {
  const { classList } = need(document, `[data-tile="${name}"]`);
  classList.toggle("bad", kind === "bad");
  classList.toggle("warn", kind === "warn");
}

function drawLines() {
  const { series } = load;
  plot.show(series.times, [series.column("events_in"), series.column("deliveries")]);
  setText(byId("rates-title"), titleOf());
  setText(byId("rates-begin"), loaded ? beginsLater(range, series.times, serverNow() / 1000) : "");
  for (const [name, { line, element }] of tiles) {
    const column = line && TILES[name]({}, { counts: {} })[2];
    if (!column) {
      if (line) line.setAttribute("hidden", "");
      continue;
    }
    const known = series.column(column);
    drawSparkline(line, known, Math.ceil(RANGES[range].seconds / series.stepS));
    const most = Math.max(0, ...known.filter((value) => value !== null));
    const title = need(element, ".tile-name").textContent;
    const words = `${title}, ${RANGES[range].words}: at most ${column === "events_in" || column === "deliveries" ? rate(most) : count(most)}`;
    if (line.getAttribute("aria-label") !== words) line.setAttribute("aria-label", words);
  }
}

// ---- leases that end soon ----

async function askEnding() {
  try {
    const { ending } = await getJson(page.endingUrl);
    byId("ending").hidden = ending === 0;
    setText(byId("ending-count"), ending === 1 ? "1 lease ends" : `${ending.toLocaleString()} leases end`);
  } catch (error) {
    if (error instanceof SessionEnded) return;
  }
  setTimeout(askEnding, ENDING_EVERY_MS);
}

// ---- alarms ----

const SEVERITIES = { critical: "bad", warning: "warn" };

/** Above all else while there are any; muted ones are counted only. */
function drawAlarms(state) {
  const order = Object.keys(SEVERITIES);
  const all = Object.values(state.alarms);
  const alarms = all
    .filter((one) => !isMuted(one))
    .sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity) || b.raised_at.localeCompare(a.raised_at));
  const muted = all.length - alarms.length;
  const rules = Object.keys(state.watches).length;
  const none = rules ? `No active alarms, ${plural(rules, "watch rule")} in use.` : "No active alarms.";
  byId("alarms-card").hidden = alarms.length === 0;
  byId("alarms-card").classList.toggle("bad", alarms[0]?.severity === "critical");
  setText(byId("alarms-none"), `${alarms.length ? "" : none}${muted ? ` ${plural(muted, "alarm")} muted.` : ""}`);
  setText(byId("alarms-count"), alarms.length > ALARMS_SHOWN ? `All ${alarms.length}` : "All");
  render(html`<ul class="alarm-list">${alarms.slice(0, ALARMS_SHOWN).map(alarm)}</ul>`, byId("alarms"));
}

function alarm(one) {
  const { severity, detail, kind, acknowledged, since } = one;
  return html`<li>
    <span class="badge ${SEVERITIES[severity] ?? ""}">${severity}</span>
    <span class="alarm-what"><a class="alarm-link" href=${causeOf(one)}>${detail}</a>
      <span class="small muted">since <time datetime=${since} data-age></time>${acknowledged ? `, acknowledged by ${acknowledged.by}` : ""} · <a href=${runbookOf(kind)}>What to do</a></span></span>
  </li>`;
}

// ---- tables ----

const hot = new Table(byId("hot"), {
  caption: "The rendezvous points with the most events now",
  key: (row) => row.rp,
  rowsMax: HOT_SHOWN,
  columns: [
    {
      name: "Name",
      header: true,
      cell: (row) => html`<a class="rp-link" href=${`/rps/${row.rp}`} title=${row.label}>${breakable(row.label)}</a>`,
    },
    { name: "In", number: true, width: "5.25rem", cell: (row) => rate(row.eventsIn), by: (row) => row.eventsIn },
    { name: "Out", number: true, width: "5.25rem", cell: (row) => rate(row.deliveries), by: (row) => row.deliveries },
    {
      name: "Readers",
      number: true,
      width: "5.75rem",
      wideOnly: true,
      cell: (row) => count(row.readings),
      by: (row) => row.readings,
    },
  ],
  sort: { column: 1, descending: true },
  empty: html`<strong>No traffic</strong><span>Rendezvous points with events appear here.</span>`,
});

const gateways = new Table(byId("gateways"), {
  caption: "Gateway processes and their current load",
  key: (row) => row.gateway,
  columns: [
    {
      name: "Gateway",
      header: true,
      cell: (row) => html`<span class="mono nowrap">${row.gateway}</span>`,
      by: (row) => row.gateway,
    },
    { name: "Sessions", number: true, width: "6rem", cell: (row) => count(row.sessions), by: (row) => row.sessions },
    {
      name: "CPU",
      number: true,
      width: "5.25rem",
      cell: (row) => percent(row.cpu_s, row.interval_s),
      by: (row) => row.cpu_s / row.interval_s,
    },
    {
      name: "Memory",
      number: true,
      width: "6.25rem",
      wideOnly: true,
      cell: (row) => bytes(row.rss_bytes),
      by: (row) => row.rss_bytes,
    },
    {
      name: "Loop lag",
      number: true,
      width: "6rem",
      wideOnly: true,
      cell: (row) => duration(row.lag_ms),
      by: (row) => row.lag_ms,
    },
  ],
  sort: { column: 0 },
  empty: html`<strong>No samples yet</strong><span>Each gateway sends its first sample within ten seconds of its start.</span>`,
});

function drawTables(state) {
  hot.show(hottest.rows());
  gateways.show(Object.values(state.gateways));
  const { used_bytes: used, ops_s: operations } = state.redis;
  setText(byId("redis"), used ? `Redis ${bytes(used)}, ${rate(operations)}` : "");
}

// ---- what moves ----

let lines = 0; // when the lines were drawn last
let loaded = false;

async function loadRange() {
  const asked = range;
  try {
    const answer = await getJson(`${page.loadUrl}?range=${asked}`);
    if (asked !== range) return;
    load.reset(answer);
  } catch {
    // Without the past the lines begin now; the connection's pill shows the problem.
  }
  loaded = true;
}

startRange(byId("range"), (name) => {
  range = name;
  plot.range(RANGES[name].seconds, titleOf());
  void loadRange().then(drawLines);
});

function onChange(state, events, { fresh }) {
  if (fresh) {
    byId("overview").classList.remove("loading");
    byId("away").hidden = true;
    for (const sample of Object.values(state.gateways)) hottest.take(sample);
  }
  const now = summary(state);
  for (const { type, data } of events) {
    if (type === LOAD_SAMPLED) {
      if (loaded) load.add(data, now.backlog);
      hottest.take(data);
    } else if (type === GATEWAY_LOST) {
      load.forget(data.gateway);
    } else if (type === "io.herald.alarm.raised") {
      byId("said").textContent = `Alarm, ${data.alarm.severity}: ${data.alarm.detail}`;
    }
  }
  drawTiles(state, now);
  drawAlarms(state);
  drawTables(state);
  if (fresh || performance.now() - lines >= LINES_EVERY_MS) {
    lines = performance.now();
    drawLines();
  }
}

const live = openDomain({
  onChange,
  onState: (state, error) => {
    byId("overview").classList.toggle("stale", state !== "live");
    if (live.state) return; // the data shown is out of date, as the pill shows; before the first snapshot there is none
    byId("away").hidden = state === "live";
    byId("away").textContent = awayWords(state, error);
  },
});
hottest.onNames = () => hot.show(hottest.rows());
await loadRange();
if (live.state) drawLines();
setTimeout(askEnding, ENDING_EVERY_MS);
