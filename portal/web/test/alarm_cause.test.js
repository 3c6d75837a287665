/** Links from alarms to their causes. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { causeOf, ruleOf, runbookOf } from "../alarm_cause.js";

test("an alarm leads to its cause: the page that the domain names, and on an RP's page the tab that shows it", () => {
  assert.equal(
    causeOf({ kind: "backlog", rp: null, about: "far.test", link: "/federation/far.test" }),
    "/federation/far.test",
  );
  assert.equal(causeOf({ kind: "lag", rp: "x", about: "sub_1", link: "/subscriptions?rp=x" }), "/subscriptions?rp=x");
  assert.equal(causeOf({ kind: "audience", rp: "x", about: "auditors", link: "/rps/x" }), "/rps/x#readers");
  assert.equal(causeOf({ kind: "silence", rp: "x", about: "", link: "/rps/x" }), "/rps/x#events-tab");
  assert.equal(causeOf({ kind: "lease_gap", rp: "x", about: "sub_1", link: "/rps/x" }), "/rps/x#readers");
  assert.equal(causeOf({ kind: "lease_gap", rp: "x", about: "", link: "/rps/x" }), "/rps/x#overview");
});

test("an alarm of a kind that is not known here still leads somewhere", () => {
  assert.equal(causeOf({ kind: "new", rp: "x" }), "/rps/x#watching");
  assert.equal(causeOf({ kind: "new" }), "/alarms");
});

test("an alarm leads to its rule, where one is stated, and to what to do", () => {
  const watches = { a: { rp: "x" }, b: { rp: null } };
  assert.equal(ruleOf({ rule: "a" }, watches), "/rps/x#watching");
  assert.equal(ruleOf({ rule: "b" }, watches), "/alarms#rule-b");
  assert.equal(ruleOf({ rule: "lasting" }, watches), "");
  assert.equal(runbookOf("lease_gap"), "/docs/alarms#lease_gap");
});
