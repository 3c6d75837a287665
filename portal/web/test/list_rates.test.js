/** Rates of the list's rows, from samples that name the busiest only. */

import assert from "node:assert/strict";
import test from "node:test";

import { ListRates, SLOTS } from "../rp/list_rates.js";

const hot = (number) =>
  Array.from({ length: number }, (_, index) => ({ rp: `rp${index}`, events_in: 100 - index, deliveries: 10 }));
const sample = (gateway, rows, at = Date.now()) => ({
  gateway,
  at: new Date(at).toISOString(),
  interval_s: 2,
  hot: rows,
});
const value = (quantity) => String(quantity).replaceAll("\u202f", " ");

test("nothing is said before anything is known", () => {
  const rates = new ListRates();
  rates.tick(["rp0"]);
  assert.equal(rates.of("rp0"), null);
});

test("the rates of all gateways are added up, per second", () => {
  const rates = new ListRates();
  rates.take(sample("a", hot(3)));
  rates.take(sample("b", hot(1)));
  rates.tick(["rp0", "rp1", "quiet"]);
  assert.equal(value(rates.of("rp0")?.in), "100 /s");
  assert.equal(value(rates.of("rp0")?.out), "10.0 /s");
  assert.equal(value(rates.of("rp1")?.in), "49.5 /s");
  assert.deepEqual([value(rates.of("quiet")?.in), rates.of("quiet")?.idle], ["0 /s", true]);
});

test("of one that a full list does not name, only a bound is known", () => {
  const rates = new ListRates();
  rates.take(sample("a", hot(20)));
  rates.tick(["quiet"]);
  assert.equal(value(rates.of("quiet")?.in), "< 45.5 /s"); // the least of those named: (81 + 10) / 2
  assert.match(rates.of("quiet")?.about ?? "", /busiest/);
});

test("a gateway that has ended, or is silent, counts no more", () => {
  const rates = new ListRates();
  rates.take(sample("a", hot(1)));
  rates.take(sample("silent", hot(1), Date.now() - 60_000));
  rates.tick(["rp0"]);
  assert.equal(value(rates.of("rp0")?.in), "50.0 /s");
  rates.forget("a");
  rates.tick(["rp0"]);
  assert.equal(rates.of("rp0")?.samples.at(-1), 0);
});

test("it remembers a minute, of the rows that there are", () => {
  const rates = new ListRates();
  rates.take(sample("a", hot(1)));
  for (let second = 0; second < 2 * SLOTS; second++) rates.tick(["rp0", "rp9"]);
  assert.equal(rates.of("rp0")?.samples.length, SLOTS);
  rates.tick(["rp0"]);
  assert.equal(rates.of("rp9"), null);
});
