/** The timescale debugger: lanes of events under one axis, a list of what is seen, one event whole, a test event on its way. */

import { byId, pageData } from "../elements.js";
import { html, render } from "lit-html";
import { count, duration, plural } from "../format.js";
import { eachFrame } from "../frame.js";
import { showConnection } from "../connection.js";
import { startSearch } from "../timescale/adding.js";
import { Chart } from "../timescale/chart.js";
import { Detail } from "../timescale/detail.js";
import { drawRows, seen } from "../timescale/event_rows.js";
import { momentText } from "../times.js";
import { Publishing } from "../timescale/publishing.js";
import { LaneReader } from "../timescale/reader.js";
import { View } from "../timescale/view.js";

const SELECT_WAIT_MS = 200; // an event is fetched when the arrow keys rest on it
const ROWS_EVERY_MS = 400;
const NEARER = 0.5;
const FARTHER = 2;
const PAN_PART = 0.25; // of what is seen
const FIT_MIN_MS = 1_000;
const page = pageData();

const readers = [];
/** @type {{reader: LaneReader, offset: number} | null} */
let selected = null; // {reader, offset}
let awaited = ""; // the place that the address asks for, until it is shown: a reload meanwhile asks for it again
let begun = false; // whether the first span was chosen: once all lanes are there
let rowsAt = -Infinity;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let selecting;

// ---- drawing ----

const redraw = eachFrame(draw);
const view = new View(({ moved }) => {
  if (moved) rowsAt = -Infinity;
  redraw();
});
const chart = new Chart(byId("chart"), {
  zoom: (factor, x) => view.zoom(factor, view.scale.at(x)),
  pan: (pixels) => pan(pixels * view.scale.msPerPixel),
  resize: (width) => view.resize(width),
  select: (reader, offset) => select(reader, offset),
  open: (from, to) => open(from, to),
  remove,
});
const detail = new Detail(byId("detail"), {
  url: page.eventUrl,
  domain: page.domain,
  asks: { step: stepTime, close: unselect },
});
const publishing = new Publishing(byId("publish", HTMLFormElement), {
  url: page.eventUrl,
  domain: page.domain,
  source: page.source,
  oversees: "oversee" in page,
  onPublished: (reader, offset) => {
    announce(`Published as event ${offset}.`);
    if (!view.follows) follow();
    select(reader, offset, { reveal: false });
  },
});

function draw() {
  const { scale } = view;
  chart.draw({ scale, readers, selected });
  byId("timescale").classList.toggle("without", readers.length === 0);
  drawRange(scale);
  drawFollowing();
  for (const reader of readers) void reader.reach(scale.from, scale.to);
  const now = performance.now();
  if (now - rowsAt >= ROWS_EVERY_MS) {
    rowsAt = now;
    const total = drawRows(byId("rows"), { readers, scale, selected, colour: (type) => chart.colour(type), select });
    byId("rows-count").textContent = plural(total, "event");
    drawKey();
  }
}

function drawRange({ from, to, span }) {
  byId("range").textContent = `${momentText(from)} – ${momentText(to)}`;
  byId("span").textContent = `${duration(span)}`;
}

function drawFollowing() {
  const waiting = readers.reduce((sum, reader) => sum + reader.waiting, 0);
  const button = byId("follow");
  button.toggleAttribute("data-paused", !view.follows);
  button.textContent = view.follows ? "Pause" : waiting ? `Live, ${count(waiting)} new` : "Live";
  const apart = readers.some(({ state, connected }) => state === "ready" && !connected);
  byId("following").textContent = view.follows
    ? apart
      ? "No new events until the connection is back"
      : "Following new events"
    : waiting
      ? `Paused: ${plural(waiting, "new event")}`
      : "Paused";
}

function drawKey() {
  render(
    chart.key.map(
      ({ number, types }) =>
        html`<li><span class="ts-row-sign s${number}" aria-hidden="true">●</span> ${types.length > 2 ? `${plural(types.length, "other type")}` : types.join(", ")}</li>`,
    ),
    byId("key"),
  );
}

function announce(text) {
  byId("said").textContent = text;
}

// ---- lanes ----

async function add(reference, place = {}) {
  const known = readers.find((one) => one.reference === reference || one.rp === reference);
  if (known) {
    announce(`${known.label} is already shown.`);
    return;
  }
  if (readers.length >= Number(page.lanesMax)) {
    announce(`At most ${page.lanesMax} rendezvous points are shown; remove one first.`);
    byId("full").hidden = false;
    return;
  }
  const reader = new LaneReader(reference, {
    url: page.pastUrl,
    onChange: () => changed(reader),
    onArrival: (event) => publishing.arrived(event),
  });
  readers.push(reader);
  if (!view.follows) reader.hold();
  address();
  redraw();
  await reader.begin(place);
  const twin = readers.find((one) => one !== reader && one.rp && one.rp === reader.rp);
  if (twin) remove(reader);
}

function remove(reader) {
  reader.close();
  readers.splice(readers.indexOf(reader), 1);
  byId("full").hidden = true;
  if (selected?.reader === reader) unselect();
  awaited = "";
  if (readers.length === 0) byId("connection").hidden = true;
  publishing.offer(readers);
  address();
  rowsAt = -Infinity;
  redraw();
}

function changed(reader) {
  if (!begun && view.follows && readers.every(({ state }) => state !== "loading")) {
    begun = true;
    view.begin(readers.flatMap(({ lane }) => lane.events.map(({ at }) => at)));
  }
  if (selected && selected.reader === reader && reader.lane.find(selected.offset)) chosenText();
  publishing.offer(readers);
  redraw();
}

/** Keep the address in step with the view, so that the view can be shared. */
function address() {
  const query = new URLSearchParams(readers.map((reader) => ["rp", reader.rp || reader.reference]));
  if (selected) query.set("event", String(selected.offset));
  else if (awaited) query.set("event", awaited);
  history.replaceState(history.state, "", readers.length ? `?${query}` : location.pathname);
}

// ---- time ----

function follow() {
  view.follow();
  for (const reader of readers) void reader.follow();
  announce("Following new events.");
}

function hold() {
  view.hold();
  held();
  announce("Paused. New events are counted.");
}

function held() {
  for (const reader of readers) reader.hold();
}

function pan(ms) {
  view.pan(ms);
  held();
}

function open(from, to) {
  if (to - from < 1) select(...firstAt(from));
  else {
    held();
    view.show(from, to);
  }
}

function firstAt(at) {
  const row = seen(readers, view.scale).findLast(({ event }) => event.at >= at);
  return [row.reader, row.event.offset];
}

function fit() {
  const all = readers.flatMap(({ lane }) => (lane.events.length ? [lane.events[0].at, lane.events.at(-1).at] : []));
  if (all.length === 0) return;
  held();
  view.show(Math.min(...all), Math.max(...all, Math.min(...all) + FIT_MIN_MS));
}

async function jump(at) {
  view.pan(at - (view.scale.from + view.scale.to) / 2);
  held();
  await Promise.all(readers.map((reader) => reader.jump(at)));
  announce(`${plural(seen(readers, view.scale).length, "event")} around ${momentText(at)}.`);
}

// ---- the chosen event ----

function select(reader, offset, { reveal = true } = {}) {
  selected = { reader, offset };
  const event = reader.lane.find(offset);
  if (event && reveal) {
    view.reveal(event.at);
    if (!view.follows) held();
  }
  chosenText();
  address();
  rowsAt = -Infinity;
  redraw();
  clearTimeout(selecting);
  selecting = setTimeout(() => detail.show(reader, offset), SELECT_WAIT_MS);
}

function chosenText() {
  if (!selected) return;
  const event = selected.reader.lane.find(selected.offset);
  const where = readers.length > 1 ? `, ${selected.reader.label}` : "";
  if (event) announce(`Event ${event.offset}, ${event.type}, ${momentText(event.at)}${where}`);
}

function unselect() {
  clearTimeout(selecting);
  selected = null;
  detail.close();
  address();
  rowsAt = -Infinity;
  redraw();
}

/** To the event before or after the chosen one, of all lanes in the order of time. */
function stepTime(by) {
  const all = readers.flatMap((reader) => reader.lane.events.map((event) => ({ reader, event })));
  all.sort((a, b) => a.event.at - b.event.at || a.event.offset - b.event.offset);
  if (all.length === 0) return;
  const { reader: chosen, offset } = selected ?? {};
  const here = all.findIndex(({ reader, event }) => reader === chosen && event.offset === offset);
  const to = here < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(here + by, 0), all.length - 1);
  select(all[to].reader, all[to].event.offset);
}

/** To the nearest event of the lane above or below. */
function stepLane(by) {
  const lanes = readers.filter(({ lane }) => lane.events.length);
  if (!selected || lanes.length < 2) return;
  const reader = lanes[(lanes.indexOf(selected.reader) + by + lanes.length) % lanes.length];
  const at = selected.reader.lane.find(selected.offset)?.at ?? 0;
  const nearest = reader.lane.events.reduce((best, event) =>
    Math.abs(event.at - at) < Math.abs(best.at - at) ? event : best,
  );
  select(reader, nearest.offset);
}

function end(which) {
  const all = readers.flatMap((reader) => {
    const event = reader.lane.events.at(which);
    return event ? [{ reader, event }] : [];
  });
  const found = all.sort((a, b) => a.event.at - b.event.at).at(which);
  if (found) select(found.reader, found.event.offset);
}

// ---- hands ----

const KEYS = {
  ArrowLeft: ({ shiftKey }) => (shiftKey ? pan(-PAN_PART * view.scale.span) : stepTime(-1)),
  ArrowRight: ({ shiftKey }) => (shiftKey ? pan(PAN_PART * view.scale.span) : stepTime(1)),
  ArrowUp: () => stepLane(-1),
  ArrowDown: () => stepLane(1),
  Home: () => end(0),
  End: () => end(-1),
  "+": () => view.zoom(NEARER, anchor()),
  "=": () => view.zoom(NEARER, anchor()),
  "-": () => view.zoom(FARTHER, anchor()),
  0: fit,
  " ": () => (view.follows ? hold() : follow()),
  Enter: () => byId("detail-title")?.focus(),
  Escape: unselect,
};

/** Zooming by key stays at the chosen event. */
function anchor() {
  const event = selected?.reader.lane.find(selected.offset);
  return event && event.at >= view.scale.from && event.at <= view.scale.to ? event.at : undefined;
}

byId("chart").addEventListener("keydown", (event) => {
  const act = KEYS[event.key];
  if (!act || event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act(event);
});
byId("follow").addEventListener("click", () => (view.follows ? hold() : follow()));
byId("nearer").addEventListener("click", () => view.zoom(NEARER, anchor()));
byId("farther").addEventListener("click", () => view.zoom(FARTHER, anchor()));
byId("earlier").addEventListener("click", () => pan(-PAN_PART * view.scale.span));
byId("later").addEventListener("click", () => pan(PAN_PART * view.scale.span));
byId("fit").addEventListener("click", fit);
byId("jump").addEventListener("submit", (event) => {
  event.preventDefault();
  const at = new Date(byId("jump-at", HTMLInputElement).value).getTime();
  if (!Number.isNaN(at)) void jump(at);
});
startSearch({
  input: byId("search", HTMLInputElement),
  list: byId("found"),
  onChoose: (reference) => void add(reference),
});

// ---- what the address asks for ----

const asked = new URLSearchParams(location.search);
const offset = Number((asked.get("event") ?? "").split(":").at(-1)) || 0;
const at = Date.parse(asked.get("at") ?? "") || 0;
if (offset || at) view.hold();
if (offset) awaited = String(offset);
if (page.references) showConnection("connecting");
const references = JSON.parse(byId("references").textContent);
const adding = references.map((reference, index) => add(reference, offset && index === 0 ? { offset } : { at }));
publishing.offer(readers);
byId("rows").replaceChildren();
detail.close();
redraw();
if (offset && readers.length) {
  const [first] = readers;
  await adding[0];
  const event = first.lane.find(offset);
  if (event) {
    const { events } = first.lane;
    const index = events.indexOf(event);
    view.show(events[Math.max(0, index - 15)].at, events[Math.min(events.length - 1, index + 15)].at);
  }
  awaited = "";
  select(first, offset, { reveal: false });
  await Promise.all(readers.slice(1).map((reader) => (event ? reader.jump(event.at) : null)));
} else if (at) {
  await Promise.all(adding);
  await jump(at);
}
