/** The activity log: retention is one line, however often it was reported; nothing else is hidden. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { KINDS, folded, isRetention } from "../rp/activity.js";

const at = (minute, type, data = {}) => ({
  specversion: /** @type {const} */ ("1.0"),
  id: `${minute}`,
  source: "/test",
  type: `io.herald.${type}`,
  time: `2026-11-24T10:${minute}:00Z`,
  data,
});

test("reports of retention are one entry, where the newest of them was", () => {
  const events = [
    at(59, "rp.paused"),
    at(50, "history.trimmed", { removed: 5 }),
    at(40, "history.trimmed", { removed: 7, by: "ann" }),
    at(30, "history.trimmed", { removed: 11 }),
    at(20, "rp.created"),
    at(10, "history.trimmed", { removed: null }),
  ];
  const [paused, retention, trimmed, created, ...none] = folded(events);
  assert.deepEqual(none, []);
  assert.deepEqual([paused.event.id, trimmed.event.id, created.event.id], ["59", "40", "20"]);
  assert.equal(retention.removed, 16);
  assert.equal(retention.event, events[1]);
  assert.deepEqual(
    retention.retention.map(({ id }) => id),
    ["50", "30", "10"],
  );
});

test("one report is an entry like the others", () => {
  const events = [at(50, "history.trimmed", { removed: 5 }), at(40, "rp.created")];
  assert.deepEqual(
    folded(events).map(({ event, retention }) => [event.id, retention.length]),
    [
      ["50", 0],
      ["40", 0],
    ],
  );
  assert.equal(isRetention(at(40, "history.trimmed", { by: "ann" })), false);
});

test("every kind of the filter but two is a part of everything", () => {
  const event = at(10, "alarm.raised");
  assert.deepEqual(
    Object.keys(KINDS).filter((kind) => KINDS[kind](event)),
    ["most", "all", "alarms"],
  );
  assert.equal(KINDS.most(at(10, "sessions.changed")), false);
});
