/** What is served where (replica_locations.js), by plain calls. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Problem } from "../errors.js";
import { ReplicaLocations } from "../replica_locations.js";

const [A, B, C] = ["wss://a.example/ws", "wss://b.example/ws", "wss://c.example/ws"];
const NOT_FOUND = new Problem({ type: "urn:herald:problem:not-found", detail: "There is none." });
const moved = (...to) => new Problem({ type: "urn:herald:problem:moved", detail: "It has moved.", to });
const made = (...urls) => new ReplicaLocations(urls, (named) => /** @type {string[]} */ (named));

test("what one refuses may be at another, and what all refuse ends with all answers", () => {
  const where = made(A, B);
  assert.equal(where.refuses("rp x", A, NOT_FOUND), null);
  assert.deepEqual([...where.refused("rp x").keys()], [A]);
  assert.deepEqual([...where.refused("rp y").keys()], [], "of another nothing is known");
  assert.match(
    where.refuses("rp x", B, NOT_FOUND).message,
    /^a\.example: There is none\. b\.example: There is none\.$/,
  );
  assert.deepEqual([...where.refused("rp x").keys()], [], "the next wish begins anew");
});

test("replicas that an answer names come after those given, for that target alone", () => {
  const where = made(A);
  assert.equal(where.refuses("subscription s", A, moved(B, C)), null);
  assert.deepEqual(where.candidates("subscription s"), [A, B, C]);
  assert.deepEqual(where.candidates("rp x"), [A]);
});

test("who is named by where it went is asked again, however often it goes to and fro, but not for ever", () => {
  const where = made(A);
  let [here, there] = [A, B];
  for (let turn = 0; turn < 1_001; turn++) {
    assert.equal(where.refuses("subscription s", here, moved(there)), null, `turn ${turn}`);
    assert.deepEqual([...where.refused("subscription s").keys()], [here]);
    [here, there] = [there, here];
  }
  assert.notEqual(where.refuses("subscription s", here, moved(there)), null);
});

test("a refusal that named nobody is not taken back by another's word", () => {
  const where = made(A, B);
  assert.equal(where.refuses("rp x", A, NOT_FOUND), null);
  assert.notEqual(where.refuses("rp x", B, moved(A)), null);
});
