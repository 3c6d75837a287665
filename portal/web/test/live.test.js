/** Live state over a real socket: snapshot, events, gaps, refusals; calls to the page, and their time. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Domain } from "../../../client/js/test/domain.js";
import { elements, leave, makePage, nextFrame } from "./page.js";

const CATALOGUE = { types: { set: { effects: [{ op: "put", at: ["rows", "$id"], value: "$n" }] } } };
const WITHIN_MS = 60_000;
let domain;
let openDomain;
let answers; // what the domain's REST endpoints say, by path
let asked;

before(async () => {
  domain = await new Domain().start();
  makePage(domain.url);
  globalThis.fetch = async (url, { method = "GET" } = {}) => {
    const path = String(url).replace(domain.url, "");
    asked.push(`${method} ${path}`);
    const [status, body] = answers[path] ?? [404, { detail: "There is none." }];
    return new Response(JSON.stringify(body), { status });
  };
  ({ openDomain } = await import("../live.js"));
});

after(async () => {
  leave();
  await domain.stop();
});

/** @param {object} [state] @param {[status: number, body: object]} [snapshot] */
function begin(state = { rows: {} }, snapshot = undefined) {
  const log = domain.log("domain.admin");
  asked = [];
  answers = {
    "/api/v1/admin/catalogue": [200, CATALOGUE],
    "/api/v1/admin/snapshot": snapshot ?? [200, { cursor: `${log.epoch}:${log.events.length}`, state }],
    "/console/session": [200, {}],
  };
  const seen = [];
  const live = openDomain({
    onChange: (now, events, { fresh }) =>
      seen.push({ rows: { ...Reflect.get(now, "rows") }, events: events.length, fresh }),
  });
  return { live, seen };
}

async function until(condition, about) {
  const deadline = performance.now() + WITHIN_MS;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${WITHIN_MS} ms: ${about}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const set = (id, n) =>
  domain.append("domain.admin", { id: `${Math.random()}`, source: "/t", type: "set", data: { id, n } });

test("events behind the snapshot's cursor are applied at once and drawn once per frame", async () => {
  set("before", 0);
  const { live, seen } = begin({ rows: { kept: 1 } });
  await until(() => live.current, "live");
  assert.deepEqual(seen, [{ rows: { kept: 1 }, events: 0, fresh: true }]);
  set("a", 1);
  set("a", 2);
  set("b", 3);
  await until(() => live.state.rows.b === 3, "the state is current");
  assert.equal(seen.length, 1, "nothing is drawn between frames");
  nextFrame();
  assert.deepEqual(seen[1], { rows: { kept: 1, a: 2, b: 3 }, events: 3, fresh: false });
  assert.equal(elements.connection.textContent, "Live");
  live.close();
});

test("a tab that nobody sees keeps its state current and few events", async () => {
  const { live, seen } = begin();
  await until(() => live.current, "live");
  for (let n = 1; n <= 1200; n++) set("a", n);
  await until(() => live.state.rows.a === 1200, "all applied");
  nextFrame();
  assert.deepEqual(seen.slice(1), [{ rows: { a: 1200 }, events: 500, fresh: false }]);
  live.close();
});

test("after a gap there is a new snapshot, and the old one's events are not applied to it", async () => {
  const { live, seen } = begin({ rows: { old: 1 } });
  await until(() => live.current, "live");
  const log = domain.log("domain.admin");
  answers["/api/v1/admin/snapshot"] = [
    200,
    { cursor: `${log.epoch}:${log.events.length}`, state: { rows: { fresh: 1 } } },
  ];
  const missing = log.events.length + 1;
  domain.say({ op: "gap", rp: "domain.admin", epoch: log.epoch, from: missing, to: missing + 4 });
  await until(() => seen.length === 2 && live.current, "a second snapshot");
  assert.deepEqual(seen[1], { rows: { fresh: 1 }, events: 0, fresh: true });
  assert.equal(asked.filter((one) => one === "GET /api/v1/admin/snapshot").length, 2);
  set("a", 1);
  await until(() => live.state.rows.a === 1, "it goes on");
  live.close();
});

test("while the domain is away it is asked again, and the reader sees when", async () => {
  const { live, seen } = begin({}, [503, { detail: "Redis does not answer." }]);
  await until(() => elements.connection.dataset.state === "reconnecting", "reconnecting");
  assert.match(elements.connection.textContent, /^Reconnecting in \d s$/);
  assert.equal(elements.connection.title, "Redis does not answer.");
  const log = domain.log("domain.admin");
  answers["/api/v1/admin/snapshot"] = [200, { cursor: `${log.epoch}:${log.events.length}`, state: { rows: {} } }];
  await until(() => live.current, "it came back by itself");
  assert.equal(seen.length, 1);
  live.close();
});

test("what cannot pass by itself ends, and says what to do", async () => {
  const { live } = begin({}, [403, { detail: "Operation not permitted." }]);
  await until(() => elements.connection.dataset.state === "ended", "ended");
  assert.match(elements["connection-ended"].words, /Operation not permitted\..*Connect again/);
  live.close();
  const second = begin({}, [401, {}]);
  await until(() => /Log in again/.test(elements["connection-ended"].words), "logged out");
  second.live.close();
});

test("nothing is told any more after close", async () => {
  const { live, seen } = begin();
  await until(() => live.current, "live");
  set("a", 1);
  await until(() => live.state.rows.a === 1, "applied");
  live.close();
  set("a", 2);
  nextFrame();
  assert.equal(seen.filter(({ fresh }) => !fresh).length <= 1, true);
  assert.equal(live.state.rows.a, 1);
});
