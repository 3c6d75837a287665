import assert from "node:assert/strict";
import test from "node:test";

import { health, judged, rates, summary } from "../federation/health.js";
import { place, ring } from "../federation/layout.js";

/** @import { PeerRow } from "../shapes.d.ts" */

const NOW = Date.parse("2026-05-01T12:00:00Z");
const ago = (seconds) => new Date(NOW - seconds * 1000).toISOString();
const WELL = { backlog: 0, oldest_at: null, failures: 0, class: null, detail: "", next_try_at: null, stopped_at: null };

/** The members of a row that are used. @returns {PeerRow} */
function peer(changed = {}, delivery = {}) {
  const row = {
    name: "b.example",
    state: "active",
    theirs: "approves",
    delivery: { ...WELL, ...delivery },
    ...changed,
  };
  return /** @type {any} */ (row);
}

/** @type {[about: string, row: PeerRow, level: string, word: string][]} */
const CASES = [
  ["nothing is wrong", peer(), "good", "Healthy"],
  ["a batch is on its way", peer({}, { backlog: 5, oldest_at: ago(2) }), "good", "Healthy"],
  ["a backlog is old", peer({}, { backlog: 5, oldest_at: ago(60) }), "warn", "Behind"],
  [
    "something always waits while events flow",
    peer({ traffic: { sent: 50, taken: 0, copies: 0, interval_s: 1, at: ago(1) } }, { backlog: 5, oldest_at: ago(60) }),
    "good",
    "Healthy",
  ],
  [
    "less flows than waits",
    peer(
      { traffic: { sent: 50, taken: 0, copies: 0, interval_s: 1, at: ago(1) } },
      { backlog: 5000, oldest_at: ago(60) },
    ),
    "warn",
    "Behind",
  ],
  ["it fails", peer({}, { failures: 2, class: "unreachable" }), "bad", "Failing"],
  [
    "it asked for a pause",
    peer({}, { class: "paused", first_failure_at: ago(90), next_try_at: ago(-3000) }),
    "bad",
    "Paused",
  ],
  [
    "it answers and takes nothing",
    peer({}, { backlog: 5, oldest_at: ago(60), class: "not-taking", first_failure_at: ago(60) }),
    "bad",
    "Not accepting",
  ],
  ["it stopped", peer({}, { failures: 1, class: "refused", stopped_at: ago(5) }), "bad", "Stopped"],
  ["it asks", peer({ state: "asked" }), "wait", "Asks"],
  ["it has yet to approve", peer({ state: "proposed", theirs: "waits" }), "wait", "Proposed"],
  ["it declined", peer({ state: "proposed", theirs: "leaves" }), "warn", "Declined"],
  ["suspended here, whatever failed before", peer({ state: "suspended" }, { failures: 3 }), "off", "Suspended"],
  ["suspended there", peer({ theirs: "suspends" }), "warn", "Suspended by the peer"],
];
for (const [about, row, level, word] of CASES) {
  test(`how a peer is: ${about}`, () => {
    const found = health(row, {}, NOW, 60_000);
    assert.deepEqual([found.level, found.word], [level, word]);
    assert.ok(found.sentence.endsWith("."));
  });
}

test("whether it is behind is known when what flows was sampled", () => {
  assert.equal(health(peer({}, { backlog: 5, oldest_at: ago(60) }), {}, NOW, 500).level, "good");
});

test("a quarantined peer is not well", () => {
  assert.equal(health(peer(), { "b.example": { origin: "b.example", why: "", since: ago(1) } }, NOW, 0).level, "bad");
});

test("what asks for attention comes first, and the summary counts it", () => {
  const rows = judged(
    { a: peer({ name: "a" }), b: peer({ name: "b" }, { failures: 1, class: "busy" }), c: peer({ name: "c" }) },
    {},
    NOW,
    0,
  );
  assert.deepEqual(
    rows.map(({ name }) => name),
    ["b", "a", "c"],
  );
  assert.equal(summary(rows), "3 peers: 1 failing, 2 healthy");
});

test("rates are of now: an old sample says nothing", () => {
  const traffic = { sent: 30, taken: 10, copies: 5, interval_s: 2, at: ago(1) };
  assert.deepEqual(rates(peer({ traffic }), NOW), { sent: 15, taken: 5, copies: 2.5 });
  assert.deepEqual(rates(peer({ traffic: { ...traffic, at: ago(20) } }), NOW), { sent: 0, taken: 0, copies: 0 });
  assert.deepEqual(rates(peer({ traffic: { sent: 0, interval_s: 0, at: null } }), NOW), {
    sent: 0,
    taken: 0,
    copies: 0,
  });
});

for (const [width, height, many] of [
  [900, 500, 3],
  [900, 500, 48],
  [340, 336, 8],
  [340, 336, 1],
]) {
  test(`${many} peers on ${width}×${height} are all on the map, each time at the same places, whatever their order`, () => {
    const names = Array.from({ length: many }, (_, index) => `peer${index}.example`);
    const places = place(names, width, height);
    assert.equal(places.size, many);
    for (const { x, y } of places.values()) {
      assert.ok(x >= 0 && x <= width && y >= 0 && y <= height);
    }
    assert.deepEqual([...place([...names].reverse(), width, height)].sort(), [...places].sort());
  });
}

test("peers do not stand on each other or on the own domain where there is room", () => {
  const places = [
    ...place(
      Array.from({ length: 8 }, (_, index) => `p${index}`),
      900,
      520,
    ).values(),
  ];
  places.forEach((one, index) => {
    assert.ok(Math.hypot(one.x - 450, one.y - 260) > 80);
    for (const other of places.slice(index + 1)) assert.ok(Math.hypot(one.x - other.x, one.y - other.y) > 70);
  });
});

test("gateways are around the middle", () => {
  for (const { x, y } of ring(["g1", "g2", "g3"], 600, 400).values()) {
    assert.ok(Math.abs(Math.hypot(x - 300, y - 200) - 50) < 1);
  }
});
