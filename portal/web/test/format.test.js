/** Numbers and instants as people read them. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { age, behind, byteRate, bytes, clock, count, duration, percent, plural, rate } from "../format.js";
import { snippets } from "../snippets.js";

const said = (quantity) => String(quantity).replaceAll("\u202f", " ").replaceAll(",", "");

test("counts and rates keep their unit and their width", () => {
  assert.equal(said(count(0)), "0");
  assert.equal(said(count(999_999)), "999999");
  assert.equal(said(count(1_234_567)), "1.23 M");
  assert.equal(said(rate(0)), "0 /s");
  assert.equal(said(rate(0.01)), "< 0.1 /s");
  assert.equal(said(rate(12.34)), "12.3 /s");
  assert.equal(said(rate(4321.9)), "4322 /s");
  assert.equal(said(rate(2_500_000)), "2.50 M/s");
});

test("bytes are in binary units", () => {
  for (const [value, text] of [
    [0, "0 B"],
    [1023, "1023 B"],
    [1536, "1.5 KiB"],
    [200 * 1024, "200 KiB"],
    [5 * 2 ** 30, "5.0 GiB"],
    [2 ** 50, "1024 TiB"],
  ]) {
    assert.equal(said(bytes(value)), text);
  }
  assert.equal(said(byteRate(2048)), "2.0 KiB/s");
});

test("what is lost is said with how far behind it is", () => {
  assert.equal(said(behind(7319, 6819)), "7319 behind 6819 of them lost");
  assert.equal(said(behind(12, 0)), "12 behind");
  assert.equal(said(behind(12)), "12 behind");
  assert.equal(said(behind(null, null)), "–");
});

test("parts, durations and ages", () => {
  assert.equal(said(percent(1, 3)), "33 %");
  assert.equal(said(percent(1, 1000)), "< 1 %");
  assert.equal(said(percent(1, 0)), "– %");
  assert.equal(said(duration(0.4)), "0.4 ms");
  assert.equal(said(duration(1500)), "1.5 s");
  assert.equal(said(duration(192_000)), "3 min 12 s");
  assert.equal(age("2026-01-01T00:00:00Z", Date.parse("2026-01-01T02:03:00Z")), "2 h 3 min");
  assert.equal(age(null), null);
  assert.equal(plural(1, "event"), "1 event");
  assert.equal(plural(2, "event"), "2 events");
});

test("what is not known is said to be unknown, and never NaN", () => {
  for (const nothing of [null, undefined, NaN, Infinity]) {
    for (const say of [count, rate, bytes, byteRate, duration]) assert.equal(say(nothing).value, "–");
  }
  assert.equal(clock("nonsense"), "–");
});

test("each example names the rendezvous point and carries the token", () => {
  const made = snippets({ origin: "https://h.example", rp: "abc", token: "t0k" });
  assert.deepEqual(Object.keys(made), ["curl", "python", "javascript"]);
  for (const text of Object.values(made)) {
    assert.match(text, /https:\/\/h\.example\/api\/v1\/rps\/abc\/events[^]*Bearer t0k/);
  }
});
