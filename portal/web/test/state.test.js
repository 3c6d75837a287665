/** The interpreter of the catalogue's effects, proved with the vectors that admin_rp/state.py is proved with. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { DOMAIN, RP, apply } from "../state.js";

const kinds = (effects) => ({ types: { t: { effects } } });
const event = (data, more = {}) => ({ type: "t", source: "/d", time: "2026-01-01T00:00:00Z", data, ...more });
/** @param {any[]} effects @param {any} state @param {object} data @param {"domain" | "rp"} [which] */
const after = (effects, state, data, which = RP) => apply(kinds(effects), which, state, event(data));

test("old snapshot + event = new snapshot, for every vector of the Python tests", () => {
  const { catalogue, vectors } = JSON.parse(
    readFileSync(new URL("../../../tests/admin_rp/vectors.json", import.meta.url), "utf8"),
  );
  assert.ok(vectors.length > 0);
  for (const { name, in: which, before, event: given, after: wanted } of vectors) {
    const kept = structuredClone(before);
    assert.deepEqual(apply(catalogue, which, before, given), wanted, name);
    assert.deepEqual(before, kept, `${name}: the state before was changed`);
  }
});

test("put, merge and remove change the place that the data names, and share the rest", () => {
  const state = { rows: { a: { n: 1, kept: true } }, other: {} };
  const put = after([{ op: "put", at: ["rows", "$row.id"], value: "$row" }], state, { row: { id: "b", n: 2 } });
  assert.deepEqual(put.rows.b, { id: "b", n: 2 });
  assert.equal(put.other, state.other);
  const merged = after([{ op: "merge", at: ["rows", "$id"], value: { n: "$n" } }], state, { id: "a", n: 5 });
  assert.deepEqual(merged.rows.a, { n: 5, kept: true });
  assert.deepEqual(after([{ op: "remove", at: ["rows", "$id"] }], state, { id: "a" }), { rows: {}, other: {} });
});

test("an older event does not overwrite a newer row", () => {
  const effects = [{ op: "put", at: ["rows", "$row.id"], value: "$row", newer: "version" }];
  const state = { rows: { a: { id: "a", version: 3 } } };
  assert.equal(after(effects, state, { row: { id: "a", version: 2 } }), state);
  assert.equal(after(effects, state, { row: { id: "a", version: 4 } }).rows.a.version, 4);
});

test("effects of the other state, of unknown types, and with missing data change nothing", () => {
  const state = { rows: {} };
  const effects = [{ op: "put", at: ["rows", "$id"], value: "$row", in: DOMAIN }];
  assert.equal(after(effects, state, { id: "a", row: {} }), state);
  assert.equal(after(effects, state, { id: "a" }, DOMAIN), state);
  assert.equal(apply(kinds(effects), DOMAIN, state, event({ id: "a", row: {} }, { type: "toString" })), state);
});

test("each, when, if, without and most do what they say", () => {
  const each = [
    { op: "put", at: ["rows", "$each.id"], value: "$each", each: "$all", when: { kind: "x" }, without: ["secret"] },
  ];
  assert.deepEqual(after(each, { rows: {} }, { kind: "x", all: [{ id: "a", secret: 1 }, { id: "b" }] }).rows, {
    a: { id: "a" },
    b: { id: "b" },
  });
  assert.deepEqual(after(each, { rows: {} }, { kind: "y", all: [{ id: "a" }] }).rows, {});
  const absent = [{ op: "put", at: ["rows", "$id"], value: "new", if: "absent" }];
  assert.deepEqual(after(absent, { rows: { a: "old" } }, { id: "a" }).rows, { a: "old" });
  const bounded = [{ op: "put", at: ["rows", "$row.id"], value: "$row", most: 2, by: "at" }];
  assert.deepEqual(
    Object.keys(after(bounded, { rows: { a: { at: "1" }, b: { at: "3" } } }, { row: { id: "c", at: "2" } }).rows),
    ["b", "c"],
  );
});

test("names that mean something to JavaScript are names like any other", () => {
  const effects = [{ op: "put", at: ["rows", "$id"], value: { n: "$n" } }];
  const state = after(effects, { rows: {} }, { id: "__proto__", n: 1 });
  assert.deepEqual(Object.keys(state.rows), ["__proto__"]);
  assert.equal({}.n, undefined);
});
