/**
 * The timescale: the axis of time, marks and their numbers, events that a lane holds and drops, bytes as hexadecimal
 * numbers.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { CELL_PX, between, firstFrom, marksOf } from "../timescale/clusters.js";
import { fromBase64, hexdump } from "../timescale/hexdump.js";
import { HELD_MAX, Lane } from "../timescale/lane.js";
import { SPAN_MAX_MS, SPAN_MIN_MS, Scale, tickText, ticks } from "../timescale/scale.js";
import { WATCHED_MS, watch } from "../timescale/way.js";
import { momentText } from "../times.js";

const NOON = Date.UTC(2026, 10, 21, 12);

// -- the axis ---------------------------------------------------------------------------------------------------------

test("pixels and instants are two names of one place", () => {
  const scale = new Scale(1_000, 11_000, 500);
  assert.equal(scale.x(1_000), 0);
  assert.equal(scale.x(11_000), 500);
  assert.equal(scale.at(250), 6_000);
  for (const x of [0, 17, 499]) assert.ok(Math.abs(scale.x(scale.at(x)) - x) < 1e-9);
});

test("zooming keeps the instant under the pointer where it is, and coming back is where it was", () => {
  const scale = new Scale(NOON, NOON + 60_000, 800);
  const anchor = NOON + 12_345;
  for (const factor of [0.1, 0.5, 2, 7]) {
    const zoomed = scale.zoomed(factor, anchor);
    assert.ok(Math.abs(zoomed.x(anchor) - scale.x(anchor)) < 1e-6);
    assert.ok(Math.abs(zoomed.span - factor * 60_000) < 1e-6);
    assert.ok(Math.abs(zoomed.zoomed(1 / factor, anchor).from - scale.from) < 1e-3);
  }
});

test("nothing is nearer or farther than the bounds, nor before 1970", () => {
  const scale = new Scale(NOON, NOON + 1_000, 800);
  assert.equal(scale.zoomed(1e-9).span, SPAN_MIN_MS);
  assert.equal(scale.zoomed(1e15).span, SPAN_MAX_MS);
  assert.ok(scale.zoomed(1e15).moved(-1e15).from >= 0);
  assert.ok(new Scale(5, 5, 0).msPerPixel > 0);
});

test("ticks are at round times of the reader's zone, and as far apart as text needs", () => {
  for (const span of [SPAN_MIN_MS, 5_000, 60_000, 3_600_000, 86_400_000, 30 * 86_400_000, SPAN_MAX_MS]) {
    const scale = new Scale(NOON, NOON + span, 1_000);
    const found = ticks(scale, 110, () => 0);
    assert.ok(found.length >= 1 || span > 30 * 86_400_000, `${span} has ${found.length}`);
    for (const { at, step } of found) {
      assert.equal(at % step, 0);
      assert.ok(at >= scale.from && at <= scale.to);
    }
    for (let index = 1; index < found.length; index++) {
      assert.ok(scale.x(found[index].at) - scale.x(found[index - 1].at) >= 109);
    }
  }
  const kathmandu = 5.75 * 3_600_000;
  const [tick] = ticks(new Scale(NOON, NOON + 7 * 86_400_000, 800), 110, () => kathmandu);
  assert.equal((tick.at + kathmandu) % 86_400_000, 0, "a day begins at the reader's midnight");
});

test("days begin at midnight also after the clocks were changed", () => {
  const [hour, day] = [3_600_000, 86_400_000];
  const changed = Date.UTC(2026, 2, 29, 1); // Berlin: one hour ahead of UTC before, two after
  const zone = (at) => (at < changed ? hour : 2 * hour);
  const found = ticks(new Scale(changed - 3 * day, changed + 3 * day, 1_000), 110, zone);
  assert.equal(found.length, 6);
  for (const { at } of found) assert.equal((at + zone(at)) % day, 0);
});

test("an event's time is to the millisecond, of 24 hours, on any day", () => {
  const now = new Date();
  assert.match(momentText(now.getTime()), /^\d\d:\d\d:\d\d[.,]\d{3}$/);
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate(), 0, 5, 9, 7);
  assert.match(momentText(midnight), /^00:05:09[.,]007$/);
  assert.match(momentText(Date.UTC(2020, 1, 2, 12)), /Feb.*\d\d:\d\d:\d\d[.,]000$/);
});

test("a lane counts what the log still holds, not what the page has kept of what left it", () => {
  const lane = new Lane();
  const events = (from, to) =>
    Array.from({ length: to - from + 1 }, (_, index) => ({ offset: from + index, at: NOON + from + index }));
  lane.take({ epoch: "e", first: 1, next: 501, events: events(1, 500) });
  assert.deepEqual([lane.shown, lane.held], [500, 500]);
  lane.take({ epoch: "e", first: 7, next: 512, events: events(501, 511) });
  assert.equal(lane.events.length, 511);
  assert.deepEqual([lane.shown, lane.held], [505, 505]);
  lane.take({ epoch: "e", first: 512, next: 512, events: [] });
  assert.deepEqual([lane.shown, lane.held], [0, 0]);
});

test("a tick says what tells it from its neighbours", () => {
  assert.match(tickText(NOON + 1_234, 2, "UTC"), /01[.,]234/);
  assert.match(tickText(NOON + 1_000, 1_000, "UTC"), /12:00:01|00:01/);
  assert.match(tickText(NOON, 60_000, "UTC"), /12:00/);
  assert.match(tickText(NOON, 86_400_000, "UTC"), /21/);
});

// -- marks ------------------------------------------------------------------------------------------------------------

const at = (...instants) => instants.map((one, offset) => ({ at: one, offset }));

test("events that would lie on one another are one mark with their number, and each event is in exactly one mark", () => {
  const scale = new Scale(0, 100_000, 1_000); // 100 ms a pixel
  const events = at(...Array.from({ length: 300 }, (_, n) => (n * n * 7) % 100_000).sort((a, b) => a - b));
  const marks = marksOf(events, scale);
  assert.equal(
    marks.reduce((sum, { count }) => sum + count, 0),
    300,
  );
  assert.ok(marks.length <= scale.width / CELL_PX + 1);
  let next = 0;
  for (const { first, last, count, from, to } of marks) {
    assert.equal(first, next);
    assert.equal(last - first + 1, count);
    assert.deepEqual([from, to], [events[first].at, events[last].at]);
    next = last + 1;
  }
});

test("near enough, each event has its own mark at its own place", () => {
  const events = at(10_000, 10_050, 10_400);
  const marks = marksOf(events, new Scale(9_900, 10_500, 600));
  assert.deepEqual(
    marks.map(({ x, count }) => [Math.round(x), count]),
    [
      [100, 1],
      [150, 1],
      [500, 1],
    ],
  );
});

test("marks keep together while the axis moves under them", () => {
  const events = at(...Array.from({ length: 50 }, (_, n) => 50_000 + n * 331));
  const groups = (scale) => marksOf(events, scale).map(({ first, last }) => `${first}-${last}`);
  const still = new Scale(40_000, 80_000, 700);
  for (const ms of [13, 57, 400]) assert.deepEqual(groups(still.moved(ms)), groups(still));
});

test("what is outside costs nothing and is not drawn", () => {
  const events = at(1, 2, 3, 5_000, 9_000, 9_001);
  const marks = marksOf(events, new Scale(4_000, 6_000, 1_000));
  assert.deepEqual(
    marks.map(({ first }) => first),
    [3],
  );
  assert.equal(firstFrom(events, 3), 2);
  assert.equal(firstFrom(events, 10_000), 6);
  assert.deepEqual(
    between(events, 3, 9_000).map(({ offset }) => offset),
    [2, 3, 4],
  );
  assert.deepEqual(marksOf([], new Scale(0, 1, 1)), []);
});

// -- lanes ------------------------------------------------------------------------------------------------------------

const EPOCH = "aaaaaaaa";

function pageOf(from, to, { first = 1, next = to + 1, epoch = EPOCH } = {}) {
  const events = Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => ({
    offset: from + n,
    at: 1_000 * (from + n),
    type: "t",
    size: 9,
  }));
  return { epoch, first, next, events };
}

const live = (offset, epoch = EPOCH) => [
  { id: `${offset}`, source: "/s", type: "t", data: { n: offset } },
  { epoch, offset },
  1_000 * offset + 5,
];
const held = (lane) => lane.events.map(({ offset }) => offset);

test("pages of the past are put together where they adjoin, in either direction", () => {
  const lane = new Lane();
  lane.take(pageOf(11, 20, { next: 31 }));
  lane.take(pageOf(1, 10, { next: 31 }));
  lane.take(pageOf(19, 25, { next: 31 }));
  assert.deepEqual(
    held(lane),
    Array.from({ length: 25 }, (_, n) => n + 1),
  );
  assert.equal(lane.whole, false);
  lane.take(pageOf(40, 45, { next: 46 }));
  assert.deepEqual([lane.oldest, lane.newest, lane.whole], [40, 45, true], "what does not adjoin takes the place");
});

test("live events follow what is held, with the time of their arrival until they are stamped", () => {
  const lane = new Lane();
  lane.take(pageOf(1, 3));
  assert.ok(lane.arrived(...live(4)));
  assert.equal(lane.events.at(-1).at, 4_005);
  assert.equal(lane.unstamped.offset, 4);
  assert.equal(lane.arrived(...live(7)), false, "5 and 6 lack");
  assert.deepEqual(held(lane), [1, 2, 3, 4]);
  lane.take(pageOf(4, 7));
  assert.deepEqual(held(lane), [1, 2, 3, 4, 5, 6, 7]);
  assert.equal(lane.unstamped, null);
  assert.equal(lane.find(4).at, 4_000);
  assert.equal(lane.arrived(...live(7)), false, "it is held already");
});

test("a lane holds at most its bound: the side that is not looked at is let go, with a sign", () => {
  const lane = new Lane();
  lane.take(pageOf(1, HELD_MAX));
  lane.arrived(...live(HELD_MAX + 1));
  assert.equal(lane.events.length, HELD_MAX);
  assert.equal(lane.oldest, 2);
  assert.match(lane.holes()[0].text, /^#1 unloaded/);
  const back = new Lane();
  back.take(pageOf(501, 500 + HELD_MAX));
  back.take(pageOf(1, 500, { next: 501 + HELD_MAX }), "older");
  assert.deepEqual([back.oldest, back.newest, back.whole], [1, HELD_MAX, false]);
});

test("a gap is a gap between its neighbours, and reading goes on behind it", () => {
  const lane = new Lane();
  lane.take(pageOf(1, 3));
  lane.missed({ epoch: EPOCH, from: 4, to: 8, previousEpoch: null }, 9_100);
  assert.ok(lane.arrived(...live(9)));
  assert.deepEqual(lane.holes(), [{ left: 3_000, right: 9_005, text: "#4 to #8 are missing" }]);
});

test("what no longer in the history before the oldest event is said", () => {
  const lane = new Lane();
  lane.take(pageOf(41, 50, { first: 41 }));
  assert.deepEqual(lane.holes(), [{ left: null, right: 41_000, text: "#1 to #40 no longer in the history" }]);
  const some = new Lane();
  some.take(pageOf(41, 50, { first: 7 }));
  assert.equal(some.holes()[0].text, "#7 to #40 not loaded");
});

test("a new epoch begins anew, and says so", () => {
  const lane = new Lane();
  lane.take(pageOf(1, 3));
  lane.missed({ epoch: "bbbbbbbb", from: 1, to: 0, previousEpoch: EPOCH }, 5_000);
  assert.ok(lane.arrived(...live(1, "bbbbbbbb")));
  assert.deepEqual(held(lane), [1]);
  assert.match(lane.holes()[0].text, /new epoch/);
});

// -- bytes ------------------------------------------------------------------------------------------------------------

test("bytes are shown in rows, with what of them is text", () => {
  const bytes = Uint8Array.from([...new TextEncoder().encode('{"a":"é"}'), 0]);
  assert.equal(
    hexdump(bytes, { width: 8 }),
    '000000  7b 22 61 22 3a 22 c3 a9  {"a":"··\n000008  22 7d 00                 "}·',
  );
  assert.equal(hexdump(bytes, { width: 4, most: 4 }), '000000  7b 22 61 22  {"a"');
  assert.deepEqual([...fromBase64("AP8=")], [0, 255]);
  assert.throws(() => fromBase64("*"));
});

// -- the way of a published event ---------------------------------------------------------------------------------------

/** @param {any[][]} answers @param {Parameters<typeof watch>[0]["readers"]} [readers] */
async function watched(answers, readers = async () => null) {
  let clock = 0;
  const told = [];
  await watch({
    look: async () => ({ domains: answers.length > 1 ? (answers.shift() ?? []) : answers[0] }),
    readers,
    domain: "here",
    onSteps: (steps) => told.push(steps.map(({ name, state, ms }) => `${name} ${state} ${ms}`).join(", ")),
    now: () => clock,
    wait: async (ms) => void (clock += ms),
  });
  return told;
}

const here = { domain: "here", held: true };

test("a replica is told of with the time at which it was seen to have the event", async () => {
  const told = await watched([
    [here, { domain: "b", held: false }],
    [here, { domain: "b", held: false }],
    [here, { domain: "b", held: true }],
  ]);
  assert.deepEqual(told, ["b wait null", "b wait null", "b done 1000"]);
});

test("who never gets it is told of as late, and is not asked about for ever", async () => {
  const told = await watched([[here, { domain: "b", held: false }, { domain: "c", held: null }]]);
  assert.equal(told.at(-1), "b late null, c unknown null");
  assert.equal(told.length, WATCHED_MS / 500 + 1);
});

test("readers that are behind are waited for", async () => {
  const behind = [2, 1, 0];
  const told = await watched([[here]], async () => ({ sessions: 3, behind: behind.shift() ?? 0 }));
  assert.deepEqual(told, ["Readers wait null", "Readers wait null", "Readers done 1000"]);
});
