/** Policies as rows: nothing is lost on the way there and back, and what is typed wrong is stated at its row. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  PRESETS,
  condition,
  documentOf,
  doubtOf,
  faultsOf,
  row,
  rowsOf,
  ruleOf,
  shadowsOf,
} from "../rp/policy_rows.js";

const ID = "https://id.example.org";

/** One of each test, and those that have no fields of their own. */
const WHOLE = [
  { issuer: "domain", claims: { sub: { in: ["eve", "mallory"] } }, allow: [] },
  { issuer: "domain", claims: { sub: { prefix: "" }, n: { equals: "1" }, m: { equals: 1 } }, allow: ["publish"] },
  { issuer: "domain", claims: { a: { equals: true }, b: { equals: false } }, allow: ["describe"] },
  { issuer: ID, jwks: `${ID}/certs`, claims: { age: { range: { min: 18 } } }, allow: ["describe", "history"] },
  { issuer: ID, jwks: `${ID}/certs`, claims: { age: { range: { min: 12.5, max: 17 } } }, allow: ["subscribe"] },
  { issuer: "peer:b.example", claims: { "/realm/roles": { audience: "editor" } }, allow: ["subscribe", "replicate"] },
  { issuer: "peer:b.example", claims: { a: { exists: true }, b: { exists: false } }, allow: ["replicate"] },
  {
    issuer: "domain",
    claims: { n: { in: [1, "1", true] }, m: { in: [] }, t: { in: ["two\nlines"] } },
    allow: ["publish"],
  },
  { issuer: "domain", claims: { a: { equals: "" }, b: { prefix: "two\nlines" } }, allow: ["describe"] },
  { issuer: "anyone", allow: ["describe"] },
];

test("rows and document are each other's inverse", () => {
  assert.deepEqual(documentOf(rowsOf(WHOLE)), WHOLE);
  assert.deepEqual(documentOf(rowsOf([])), []);
  assert.equal(faultsOf(rowsOf(WHOLE)).size, 0);
});

test("a preset needs only what it cannot know", () => {
  const faults = Object.entries(PRESETS).filter(([, { make }]) => faultsOf([make()]).size);
  assert.deepEqual(
    faults.map(([name]) => name),
    ["peer", "subject", "deny"],
  );
  assert.deepEqual(documentOf([PRESETS.everybody.make()]), [
    { issuer: "anyone", allow: ["describe", "subscribe", "history"] },
  ]);
});

test("what is typed wrong is stated at its row", () => {
  /** @type {[Partial<import("../rp/policy_rows.js").Row>, RegExp][]} */
  const wrongs = [
    [{ kind: "peer" }, /name of the peer/],
    [{ kind: "oidc", name: " " }, /address of the issuer/],
    [{ conditions: [condition({ claim: "" })] }, /name of the claim/],
    [{ conditions: [condition({ value: "a" }), condition({ value: "b" })] }, /Only one condition/],
    [{ conditions: [condition({ test: "is-number", value: "1.5" })] }, /integer/],
    [{ conditions: [condition({ test: "in", value: " \n" })] }, /at least one text/],
    [{ conditions: [condition({ test: "range", value: "x" })] }, /numbers/],
    [{ conditions: [condition({ test: "range" })] }, /at least one end/],
    [{ conditions: [condition({ test: "json", value: "{" })] }, /as JSON/],
  ];
  for (const [stated, said] of wrongs) {
    const good = row({ allow: ["describe"] });
    const wrong = row(stated);
    const faults = faultsOf([good, wrong]);
    assert.deepEqual([...faults.keys()], [wrong.key]);
    assert.match(faults.get(wrong.key) ?? "", said);
  }
});

test("a rule that never decides is told from one that does", () => {
  const [all, eve, peer, anyone, after] = rowsOf([
    { issuer: "domain", allow: ["describe"] },
    { issuer: "domain", claims: { sub: { equals: "eve" } }, allow: [] },
    { issuer: "peer:b.example", allow: ["subscribe"] },
    { issuer: "anyone", allow: [] },
    { issuer: ID, allow: ["publish"] },
  ]);
  assert.deepEqual(
    [...shadowsOf([all, eve, peer, anyone, after])],
    [
      [eve.key, 1],
      [after.key, 4],
    ],
  );
  assert.match(doubtOf(row({ kind: "anyone", allow: ["administer"] })), /Everybody/);
  assert.equal(doubtOf(row({ kind: "domain", allow: ["administer"] })), "");
});

test("the domain's sentence leads to the rule that it is about", () => {
  assert.equal(ruleOf("policy rule 3: issuer is ..."), 2);
  assert.equal(ruleOf("policy is a list of rules."), -1);
});
