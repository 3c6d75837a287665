/** Requests triggered by events: one at a time, bounded in rate, and none lost while another is under way. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { PacedPoll } from "../polling.js";

const deferred = () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};
const refused = () => Object.assign(new Error("no"), { name: "Refused" });

test("however often it is asked, it looks once, and once more for what came meanwhile", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const looks = [];
  const told = [];
  const look = new PacedPoll(
    () => looks[looks.push(deferred()) - 1].promise,
    (answer) => told.push(answer),
    assert.fail,
  );
  for (let times = 0; times < 5; times++) look.soon();
  t.mock.timers.tick(10);
  assert.equal(looks.length, 1);
  look.soon();
  t.mock.timers.tick(60_000);
  assert.equal(looks.length, 1, "one at a time");
  looks[0].resolve("first");
  await new Promise(setImmediate);
  assert.equal(looks.length, 1, "not at once again");
  t.mock.timers.tick(60_000);
  assert.equal(looks.length, 2);
  looks[1].resolve("second");
  await new Promise(setImmediate);
  t.mock.timers.tick(60_000);
  assert.equal(looks.length, 2, "nobody asked");
  assert.deepEqual(told, ["first", "second"]);
});

/** A page whose requests take `tookMs` each, under a clock that the test moves; records the start of each request. */
function timed(t, tookMs) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const begun = [];
  const ask = () => {
    begun.push(now);
    return new Promise((resolve) => setTimeout(resolve, tookMs));
  };
  const look = new PacedPoll(ask, () => {}, assert.fail);
  /** @param {number} ms @param {(now: number) => unknown} [each] */
  const pass = async (ms, each) => {
    for (let left = ms; left > 0; left -= 10) {
      now += 10;
      t.mock.timers.tick(10);
      await new Promise(setImmediate);
      each?.(now);
    }
  };
  return { look, begun, pass };
}

test("single changes wait for the pause and no longer, however many there were before", async (t) => {
  const { look, begun, pass } = timed(t, 200);
  await pass(60_000, (now) => now % 500 === 0 && look.soon());
  const waits = begun.map((at) => at % 500);
  assert.ok(begun.length >= 119, `${begun.length} looks at 120 changes`);
  assert.ok(Math.max(...waits) <= 20, `put off by ${Math.max(...waits)} ms`);
});

test("a flood of changes takes a bounded share of the domain's time, and what comes after it is seen soon", async (t) => {
  const { look, begun, pass } = timed(t, 100);
  await pass(60_000, () => look.soon(3));
  const took = 100 * begun.length;
  assert.ok(took <= 60_000 / 10 + 2_000, `${took} ms of looks in a minute`);
  await pass(5_000);
  const before = begun.length;
  look.soon();
  await pass(20);
  assert.equal(begun.length, before + 1);
});

test("a flood puts off a look that was about to come", async (t) => {
  const { look, begun, pass } = timed(t, 100);
  await pass(30_000, () => look.soon(3));
  await pass(1_500); // the flood's last look
  const last = begun.length;
  look.soon();
  await pass(150);
  assert.equal(begun.length, last + 1);
  look.soon();
  look.soon(100);
  await pass(500); // twice the pause
  assert.equal(begun.length, last + 1);
  await pass(5_000);
  assert.equal(begun.length, last + 2);
});

test("an answer that a newer look has overtaken is dropped, and so is its failure", async () => {
  const looks = [];
  const told = [];
  const look = new PacedPoll(
    () => looks[looks.push(deferred()) - 1].promise,
    (answer) => told.push(answer),
    (error) => told.push(error.message),
  );
  void look.now();
  void look.now();
  void look.now();
  looks[2].resolve("newest");
  looks[0].resolve("old");
  looks[1].reject(refused());
  await pause(5);
  assert.deepEqual(told, ["newest"]);
});

test("what the domain refuses is told, and it can be asked again", async () => {
  const told = [];
  let fail = true;
  const look = new PacedPoll(
    async () => {
      if (fail) throw refused();
      return "well";
    },
    (answer) => told.push(answer),
    (error) => told.push(error.message),
  );
  await look.now();
  fail = false;
  await look.now();
  assert.deepEqual(told, ["no", "well"]);
});

test("our own mistakes are not hidden", async () => {
  const look = new PacedPoll(async () => JSON.parse("null").x, assert.fail, assert.fail);
  await assert.rejects(look.now(), TypeError);
});
