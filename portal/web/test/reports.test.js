/** Reports in words, and the differences of two. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { headlines, movers } from "../reports/compare.js";
import { change, period, rowsOf, shown, spoken } from "../reports/words.js";

const part = (rows) => ({
  about: "",
  columns: [
    { name: "rp", unit: "" },
    { name: "moved", unit: "events" },
  ],
  rows,
});
const report = (hot, events) => ({
  report: "load",
  headline: { events_in: { value: events, unit: "events", about: "" } },
  tops: { hot: part(hot) },
});

test("values are said in their units", () => {
  assert.equal(String(shown(2048, "bytes")), "2.0\u202fKiB");
  assert.equal(String(shown(1500, "microseconds")), "1.5\u202fms");
  assert.equal(shown(null, "bytes"), "–");
  assert.equal(shown("", ""), "–");
  assert.equal(shown(true, ""), "yes");
  assert.equal(spoken("publish_p99_us"), "publish p99");
});

test("periods of whole days are those of UTC, wherever the reader is", () => {
  assert.match(period({ from: "2027-01-14T00:00:00Z", to: "2027-01-15T00:00:00Z" }), /14.*UTC/);
  assert.match(period({ from: "2027-01-14T00:00:00Z", to: "2027-01-16T00:00:00Z" }), /14.*15.*UTC/);
  assert.match(period({ from: "2027-01-14T08:00:00Z", to: "2027-01-14T09:00:00Z" }), /one hour/);
});

test("changes have a sign, and none where nothing is known", () => {
  assert.deepEqual(
    [change(3, 2), change(1, 2), change(2, 2), change(1, 0), change(null, 2)],
    ["+50 %", "−50 %", "", "new", ""],
  );
});

test("rows are objects by the names of their columns", () => {
  assert.deepEqual(rowsOf(part([["a", 1]])), [{ rp: "a", moved: 1 }]);
  assert.deepEqual(rowsOf(undefined), []);
});

test("what moved most comes first, and what a short list does not hold is not known", () => {
  const now = report(
    [
      ["a", 10],
      ["b", 100],
      ["same", 5],
    ],
    115,
  );
  const before = report(
    [
      ["a", 40],
      ["c", 7],
      ["same", 5],
    ],
    52,
  );
  assert.deepEqual(headlines(now, before), [{ name: "events_in", unit: "events", now: 115, before: 52 }]);
  const [list] = movers(now, before);
  assert.deepEqual(
    list.rows.map(({ key, now: one, before: two }) => [key, one, two]),
    [
      ["b", 100, null],
      ["a", 10, 40],
      ["c", null, 7],
    ],
  );
});
