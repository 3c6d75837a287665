/** Words of deliveries. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { excerptText, newSecret, offsets, reasonWords, stateOf, whyOf } from "../deliveries/words.js";

test("reasons are words, and those that are not known are shown as they are", () => {
  assert.equal(reasonWords("http-503"), "status 503");
  assert.equal(reasonWords("schedule-exhausted: connect-timeout"), "all tries failed: no connection in time");
  assert.equal(reasonWords("something-new"), "something-new");
  assert.equal(reasonWords("constructor"), "constructor");
});

test("a pause that its owner wanted is no fault", () => {
  assert.equal(stateOf({ state: "paused", reason: "by-owner" })[0], "warn");
  assert.equal(stateOf({ state: "paused", reason: "schedule-exhausted: http-500" })[0], "bad");
  assert.equal(whyOf({ reason: "http-500", failures: 3 }), "status 500, 3 failures");
  assert.equal(whyOf({ reason: "", failures: 0 }), "");
});

test("one offset is a number, several are a range", () => {
  assert.equal(offsets({ first: 7, last: 7 }), "7");
  assert.equal(offsets({ first: 7, last: 9 }), "7–9");
});

test("an answer's bytes are text, whatever they are", () => {
  assert.equal(excerptText(btoa("<b>no</b>")), "<b>no</b>");
  assert.equal(excerptText(btoa("\xff")), "\ufffd");
});

test("a new secret is as Standard Webhooks has them, and another one each time", () => {
  const [one, other] = [newSecret(), newSecret()];
  assert.match(one, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.notEqual(one, other);
});
