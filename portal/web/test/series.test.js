/** Bounded series, and the last hour of load. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { LoadSeries, STEPS } from "../load_series.js";
import { Hottest } from "../hottest.js";
import { RpLabels } from "../rp_labels.js";
import { Series } from "../series.js";

test("a series keeps the newest steps, leaves holes empty, and begins anew after a long silence", () => {
  const series = new Series(["a"], { stepS: 10, steps: 4 });
  series.set(103, { a: 1 });
  series.set(131, { a: 2 });
  assert.deepEqual(
    [series.times, series.column("a")],
    [
      [100, 110, 120, 130],
      [1, null, null, 2],
    ],
  );
  series.set(112, { a: 9 });
  series.set(145, { a: 3 });
  assert.deepEqual(
    [series.times, series.column("a")],
    [
      [110, 120, 130, 140],
      [9, null, 2, 3],
    ],
  );
  series.set(50, { a: 7 });
  assert.deepEqual(series.column("a"), [9, null, 2, 3]);
  series.set(10_000, { a: 4 });
  assert.deepEqual([series.times, series.column("a")], [[10_000], [4]]);
});

const sample = (gateway, atS, numbers = {}) => ({
  gateway,
  at: new Date(atS * 1000).toISOString(),
  interval_s: 1,
  publishes: 0,
  events_in: 0,
  bytes_in: 0,
  deliveries: 0,
  bytes_out: 0,
  refused: 0,
  sessions: 0,
  readings: 0,
  hot: [],
  ...numbers,
});

test("samples of several gateways add up to the rate of their step, each counted once", () => {
  const load = new LoadSeries();
  for (let second = 1; second <= 10; second++) {
    for (const gateway of ["a", "b"]) load.add(sample(gateway, 1000 + second, { events_in: 5, sessions: 3 }), 7);
  }
  load.add(sample("a", 1010, { events_in: 5000 }), 7);
  assert.deepEqual(load.series.times, [1000]);
  assert.equal(load.series.column("events_in")[0], 10);
  assert.equal(load.series.column("sessions")[0], 6);
  assert.equal(load.series.column("backlog")[0], 7);
});

test("a sample of ten seconds is spread over the steps that it touches", () => {
  const load = new LoadSeries();
  load.add(sample("a", 1014, { interval_s: 10, events_in: 100 }), 0);
  assert.deepEqual(load.series.times, [1000, 1010]);
  assert.deepEqual(load.series.column("events_in").map(Math.round), [6, 10]); // 60 events in a step of 10 s, 40 in 4 s
});

test("live samples go on where the domain's answer ends", () => {
  const load = new LoadSeries();
  load.reset({ start: 990, until: 1005, series: { events_in: [4, 10], sessions: [1, 1] }, seen: { a: 1005 } });
  load.add(sample("a", 1005, { events_in: 1000 }), 0);
  assert.equal(load.series.column("events_in")[1], 10);
  load.add(sample("a", 1006, { events_in: 10 }), 0);
  assert.equal(load.series.column("events_in")[1], 10);
  load.add(sample("a", 1010, { interval_s: 4, events_in: 0 }), 0);
  assert.equal(load.series.column("events_in")[1], 6);
});

test("an hour of samples each second holds an hour of steps and no more", () => {
  const load = new LoadSeries();
  for (let second = 0; second < 2 * 3600; second++) load.add(sample("a", 1e6 + second, { events_in: 1 }), 0);
  assert.equal(load.series.times.length, STEPS);
  assert.equal(load.series.column("events_in").length, STEPS);
});

test("the busiest are named once, smoothed, and forgotten when they are quiet", async () => {
  const asked = [];
  globalThis.fetch = async (url) => {
    asked.push(url);
    return new Response(JSON.stringify({ x: "/d/x/" }));
  };
  const hottest = new Hottest("/labels");
  const now = Date.now() / 1000;
  const hot = [{ rp: "x", events_in: 100, deliveries: 0, readings: 2 }];
  hottest.take(sample("a", now - 30, { hot }));
  hottest.take(sample("b", now - 30, { hot }));
  assert.equal(hottest.rows()[0].eventsIn, 200);
  await new Promise((resolve) => (hottest.onNames = () => resolve(null)));
  hottest.take(sample("a", now - 29));
  const [row] = hottest.rows();
  assert.equal(row.label, "/d/x/");
  assert.ok(row.eventsIn < 200 && row.eventsIn > 100, "one second of silence lowers it and does not hide it");
  assert.deepEqual(asked, ["/labels?ids=x"]);
  for (const gateway of ["a", "b"]) hottest.take(sample(gateway, now));
  assert.deepEqual(hottest.rows(), []);
});

test("where the busiest change with each sample their names are asked for now and then, those shown once", async (t) => {
  const asked = [];
  globalThis.fetch = async (url) => {
    const ids = new URL(url, "http://h").searchParams.get("ids")?.split(",") ?? [];
    asked.push(ids);
    return new Response(JSON.stringify(Object.fromEntries(ids.map((id) => [id, `/d/${id}/`]))));
  };
  let ms = 1e6;
  t.mock.method(performance, "now", () => ms);
  const hottest = new Hottest("/labels");
  const now = Date.now() / 1000;
  for (let second = 0; second < 60; second++, ms += 1000) {
    hottest.take(sample("a", now, { hot: [{ rp: `rp${second % 30}`, events_in: 1, deliveries: 0, readings: 0 }] }));
    hottest.rows();
    await new Promise(setImmediate);
  }
  assert.ok(asked.length <= 60 / 5, `${asked.length} times`);
  assert.equal(asked.flat().length, 30, "none twice");
  assert.ok(hottest.rows().every(({ rp, label }) => label === `/d/${rp}/`));
});

test("names of more than are kept: the oldest are forgotten", async () => {
  globalThis.fetch = async (url) => {
    const ids = new URL(url, "http://h").searchParams.get("ids")?.split(",") ?? [];
    return new Response(JSON.stringify(Object.fromEntries(ids.map((id) => [id, `/d/${id}/`]))));
  };
  const labels = new RpLabels("/labels", () => {});
  for (let number = 0; number < 3_000; number += 50) {
    await labels.ask(Array.from({ length: 50 }, (_, index) => `rp${number + index}`));
  }
  assert.equal(labels.of("rp2999"), "/d/rp2999/");
  assert.equal(labels.of("rp0"), "rp0");
  assert.deepEqual([labels.lacks(["rp2999"]), labels.lacks(["rp2999", "rp0"])], [false, true]);
});
