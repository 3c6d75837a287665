import assert from "node:assert/strict";
import test from "node:test";

import { treeOf } from "../event_path.js";

/** @param {[string, string, ...string[]][]} hops source, target, and who state it */
function path(hops, more = {}) {
  const shown = hops.map(([source, target, ...by]) => ({ source, target, stated_by: by, at: null }));
  return /** @type {import("../shapes.d.ts").EventPath} */ ({
    ...{
      rp: "r",
      feed: "f",
      sequence: 1,
      origin: "a",
      offset: 1,
      route: ["a", "b"],
      hops: shown,
      domains: [],
      asked: true,
    },
    ...more,
  });
}

/** @param {import("../event_path.js").PathNode[]} nodes @returns {unknown[]} */
function plain(nodes) {
  return nodes.map(({ domain, children }) => (children.length ? [domain, plain(children)] : domain));
}

test("hops are a tree from the origin", () => {
  const tree = treeOf(path([["a", "b", "b"], ["b", "c", "c"], ["b", "d", "d"]])); // prettier-ignore
  assert.deepEqual(plain(tree), [["a", [["b", ["c", "d"]]]]]);
});

test("of two senders that are named for a domain, its own word counts", () => {
  const tree = treeOf(path([["a", "b", "b"], ["a", "c", "d"], ["b", "c", "c"], ["c", "d", "d"]])); // prettier-ignore
  assert.deepEqual(plain(tree), [["a", [["b", [["c", ["d"]]]]]]]);
});

test("words that contradict each other end in no endless tree, and hide nobody", () => {
  const tree = treeOf(path([["b", "c", "c"], ["c", "b", "b"], ["b", "a", "b"]], { route: [] })); // prettier-ignore
  const names = JSON.stringify(plain(tree));
  for (const name of ["a", "b", "c"]) assert.equal(names.split(`"${name}"`).length, 2, names);
});

test("an event that was published here and went nowhere is its origin alone", () => {
  assert.deepEqual(plain(treeOf(path([], { route: ["a"] }))), ["a"]);
});
