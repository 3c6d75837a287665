/** Words and shares of self-administration. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { decisionState, inputWords, modeWords, ninesPlace, planState, shareWords } from "../planning/words.js";

test("a share has the digits that tell it from all, and is never rounded up to more than it is", () => {
  assert.equal(shareWords(0.9999), "99.99\u202f%");
  assert.equal(shareWords(0.99974), "99.974\u202f%");
  assert.equal(shareWords(0.92), "92\u202f%");
  assert.equal(shareWords(0.999999), "99.9999\u202f%");
  assert.equal(shareWords(0.99999999999), "99.999999\u202f%");
  assert.equal(shareWords(0.95999), "95.9\u202f%");
  assert.equal(shareWords(1), "100\u202f%");
  assert.equal(shareWords(0), "0\u202f%");
  assert.equal(shareWords(null), "–");
});

test("the scale has a place for each nine, and an end", () => {
  assert.equal(ninesPlace(0, 5), 0);
  assert.ok(Math.abs(ninesPlace(0.999, 5) - 0.6) < 1e-9);
  assert.equal(ninesPlace(1, 5), 1);
  assert.equal(ninesPlace(0.9999999, 5), 1);
});

test("a planner's mode is said in words of what it does", () => {
  assert.match(modeWords("advise", "placement"), /approve/);
  assert.match(modeWords("advise", "routes"), /without effect/);
  assert.equal(modeWords("constructor", "routes"), "");
});

test("states that are not known are shown as they are", () => {
  assert.deepEqual(decisionState("paused"), ["", "paused"]);
  assert.equal(decisionState("working")[1], "under way");
  assert.equal(planState("toString")[1], "toString");
});

test("inputs are numbers that people read", () => {
  assert.equal(inputWords("pressure", 0.9012), "90\u202f%");
  assert.equal(inputWords("demand", 1.23456), "1.23");
  assert.equal(inputWords("replicas", 3), "3");
  assert.equal(inputWords("domain", "b.example"), "b.example");
});
