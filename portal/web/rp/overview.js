/** An RP at a glance: what flows now and did lately, how full its history is, alarms, its lease. */

import { need } from "../elements.js";
import { isMuted } from "../alarm_badge.js";
import { causeOf, runbookOf } from "../alarm_cause.js";
import { age, behind, byteRate, bytes, count, plural, rate } from "../format.js";
import { LoadSeries } from "../load_series.js";
import { Plot } from "../plot.js";
import { RANGES, beginsLater, chosenRange, startRange } from "../ranges.js";
import { Rate, pollEnds, rateText } from "../poll.js";
import { getJson, request } from "../requests.js";
import { html, render } from "../table.js";
import { fillTimes, serverNow, stretch } from "../times.js";
import { toast } from "../toast.js";
import { byId, page, setNumber, setText } from "./page.js";

/** @import { LoadAnswer } from "../load_series.js" */

/** @import { RpState } from "../shapes.d.ts" */
/** @import { AdminEvent } from "../types.d.ts" */

const LOAD_SAMPLED = "io.herald.load.sampled";
const GATEWAY_LOST = "io.herald.gateway.lost";
const FRESH_MS = 5_000; // an RP without traffic is not sampled: an older sample is not current
const INTERVAL_LEAST_S = 0.5; // the first sample for who begins to watch may be of an instant
const SETTLED_S = 15; // steps so far back are complete: where nothing was sampled, nothing moved
const DRAWN_EVERY_MS = 1_000;
const UNITS_S = { minutes: 60, hours: 3600, days: 86_400 };
const SEVERITIES = { critical: "bad", warning: "warn" };

const load = new LoadSeries();
/** @type {Plot | null} */
let plot = null;
/** @type {RpState} */
let state; // none before the first snapshot

let range = chosenRange();
const titleOf = () => `Events per second, ${RANGES[range].words}`;

/** Begin: live data for principals who may read the administrative RP; for others the fill of the history, polled. */
export function startOverview() {
  byId("renew")?.addEventListener("submit", (event) => {
    event.preventDefault();
    void renew(event.target);
  });
  if (!page.mayWatch) {
    pollFill();
    return;
  }
  plot = new Plot(byId("load"), {
    title: titleOf(),
    spanS: RANGES[range].seconds,
    format: rate,
    series: [
      { name: "in", fill: true },
      { name: "out to readers", dash: [7, 4] },
    ],
  });
  setText(byId("load-title"), titleOf());
  startRange(byId("range"), (name) => {
    range = name;
    plot?.range(RANGES[name].seconds, titleOf());
    setText(byId("load-title"), titleOf());
    void pastAsked().then((past) => past && startLoad(past.load));
  });
  setInterval(() => state && !document.hidden && drawNow(), DRAWN_EVERY_MS);
}

/** The past, as the domain remembers it. @param {LoadAnswer} answer of /console/rps/ID/past: `load` */
export function startLoad(answer) {
  load.reset(answer);
  if (state) drawPlot();
}

/** @param {RpState} now @param {AdminEvent[]} events */
export function showOverview(now, events) {
  state = now;
  for (const { type, data } of events) {
    if (type === LOAD_SAMPLED) {
      load.add({ sessions: 0, refused: 0, ...data }, 0); // what samples of an RP lack
    } else if (type === GATEWAY_LOST) load.forget(data.gateway);
  }
  byId("tiles").classList.remove("loading");
  drawNow();
  drawFacts();
  drawAlarms();
}

/** Values that are as old as the connection. @param {boolean} stale */
export function markOverview(stale) {
  byId("overview").classList.toggle("stale", stale);
}

function flows() {
  const now = serverNow();
  const samples = Object.values(state.load);
  const fresh = samples.filter(
    ({ at, interval_s: interval }) => now - Date.parse(at) <= Math.max(FRESH_MS, 3000 * interval),
  );
  const each = (name) =>
    fresh.reduce((total, sample) => total + sample[name] / Math.max(sample.interval_s, INTERVAL_LEAST_S), 0);
  return {
    eventsIn: each("events_in"),
    bytesIn: each("bytes_in"),
    deliveries: each("deliveries"),
    bytesOut: each("bytes_out"),
    readings: samples.reduce((total, { readings }) => total + readings, 0),
    gateways: samples.filter(({ readings }) => readings > 0).length,
  };
}

function drawNow() {
  const now = flows();
  const subscriptions = Object.values(state.subscriptions);
  const furthest = subscriptions
    .map(({ lag }) => ({ events: lag.events ?? 0, lost: lag.lost }))
    .reduce((one, other) => (other.events > one.events ? other : one), { events: 0, lost: null });
  const oldest = subscriptions
    .map(({ lag }) => lag.oldest_at)
    .filter(Boolean)
    .sort()[0];
  tile("in", rate(now.eventsIn), byteRate(now.bytesIn));
  tile("out", rate(now.deliveries), byteRate(now.bytesOut));
  tile("readings", count(now.readings), now.readings ? `at ${plural(now.gateways, "gateway")}` : "no readers");
  tile("subscriptions", count(subscriptions.length), lagWords(subscriptions.length, furthest, oldest));
  setText(byId("readers-count"), now.readings + subscriptions.length || "");
  drawPlot();
}

function lagWords(number, furthest, oldest) {
  if (number === 0) return "none";
  if (!furthest.events) return "all have read all";
  return `${behind(furthest.events, furthest.lost)}${oldest ? `, ${age(oldest)}` : ""}`;
}

function tile(name, quantity, note) {
  const element = need(document, `[data-tile="${name}"]`);
  setNumber(need(element, ".tile-value"), quantity);
  setText(element.querySelector(".tile-note"), note);
}

function drawPlot() {
  const { series } = load;
  const now = serverNow() / 1000;
  const since = Math.max(now - RANGES[range].seconds, Date.parse(state.rp?.created_at ?? "") / 1000 || 0);
  if (series.times.length === 0) series.set(since, {});
  if (now - SETTLED_S > (series.times.at(-1) ?? 0)) series.set(now - SETTLED_S, {});
  const idle = (name) => series.column(name).map((value) => value ?? 0);
  plot?.show(series.times, [idle("events_in"), idle("deliveries")]);
  setText(byId("load-begin"), beginsLater(range, series.times, now));
}

// ---- facts ----

const ACKS = { stored: "on disk (stored)", accepted: "in memory (accepted)" };

function drawFacts() {
  const { rp, history } = state;
  if (rp) {
    fact("name", rp.name ?? "none");
    fact("version", count(rp.version));
    fact("ack", ACKS[rp.ack] ?? `on disk, and held by ${plural(Number(rp.ack.split(":")[1]), "replica")}`);
    fact("max_events", count(rp.history.max_events));
    fact("max_bytes", bytes(rp.history.max_bytes));
    fact("max_age", rp.history.max_age_s === null ? "never" : stretch(rp.history.max_age_s * 1000));
    byId("events-meter", HTMLMeterElement).max = rp.history.max_events;
    byId("bytes-meter", HTMLMeterElement).max = rp.history.max_bytes;
    if (rp.lease) byId("lease-end", HTMLTimeElement).dateTime = rp.lease.expires_at;
  }
  if (history) fill(history.epoch, history.next - history.first, history.bytes);
}

function fact(name, text) {
  const element = need(document, `[data-fact="${name}"]`, HTMLElement);
  if (element.dataset.text === String(text)) return;
  element.dataset.text = String(text);
  element.textContent = String(text);
}

function fill(epoch, held, size) {
  setText(byId("epoch"), epoch);
  setText(byId("held-events"), count(held));
  setText(byId("held-bytes"), bytes(size));
  byId("events-meter", HTMLMeterElement).value = held;
  byId("bytes-meter", HTMLMeterElement).value = size;
}

function pollFill() {
  const flow = new Rate();
  const onEnds = (ends, at) => {
    const end = ends[page.rp];
    if (!end) return;
    const perSecond = flow.look(end.epoch, end.offset, at);
    if (perSecond !== null) setText(byId("rate"), rateText(perSecond));
    fill(end.epoch, end.offset - end.first + 1, end.bytes);
  };
  pollEnds(page.ratesUrl, [page.rp], onEnds, () => setText(byId("rate"), ""));
}

// ---- alarms ----

/** @type {RpState["alarms"] | null} */
let alarmsDrawn = null;

function drawAlarms() {
  if (alarmsDrawn === state.alarms) return;
  if (!alarmsDrawn) byId("alarms").replaceChildren();
  alarmsDrawn = state.alarms;
  const alarms = Object.values(state.alarms).sort((a, b) => b.raised_at.localeCompare(a.raised_at));
  const rules = Object.keys(state.watches).length;
  render(
    alarms.length
      ? html`<ul class="alarm-list">${alarms.map(alarm)}</ul>`
      : html`<div class="empty"><strong>No active alarms</strong><span>${rules ? `${plural(rules, "watch rule")}` : html`Loss by durable subscriptions is watched; <a href="#watching">add rules</a>`}.</span></div>`,
    byId("alarms"),
  );
  fillTimes(byId("alarms"));
}

function alarm(one) {
  const { kind, severity, detail, raised_at: at } = one;
  return html`<li>
    <span class="alarm-head"><span class="badge ${SEVERITIES[severity] ?? ""}">${severity}</span><time class="small muted" datetime=${at} data-age></time></span>
    <span><a class="alarm-link" href=${causeOf(one)}>${detail}</a></span>
    <span class="small muted">${isMuted(one) ? "muted · " : ""}<a href=${runbookOf(kind)}>What to do</a></span>
  </li>`;
}

// ---- the lease ----

async function renew(form) {
  const button = form.querySelector("button");
  const asked = Number(form.elements.lease.value) * UNITS_S[form.elements.lease_unit.value];
  button.setAttribute("aria-busy", "true");
  try {
    const { lease } = await request("POST", `${page.api}/renew`, { lease_s: asked });
    byId("lease-end", HTMLTimeElement).dateTime = lease.expires_at; // who may renew need not be able to watch
    toast(
      `The lease is renewed.${lease.granted_s < asked ? ` It is ${stretch(lease.granted_s * 1000)}, the longest that this domain grants.` : ""}`,
    );
  } catch (error) {
    toast(error.message, "bad");
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** Request the history of ID.admin: {load, events}; null without a response, whose reason the pill shows. */
export async function pastAsked() {
  try {
    return await getJson(`${page.pastUrl}?range=${range}`);
  } catch {
    return null;
  }
}
