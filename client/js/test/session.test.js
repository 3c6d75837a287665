/** The promises of session.js, by plain calls: no socket, no clock. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULTS, Session, backoffMs } from "../session.js";

const RP = "a".repeat(26);

/** A session with its outputs sorted by kind, a clock that is set by hand, and random numbers that are all `random`. */
class Bench {
  constructor(settings = {}) {
    this.session = new Session({ random: () => 0.5, refreshable: false, ...settings });
    this.now = 0;
    this.outputs = [];
    this.timers = new Map();
  }
  give(kind, members = {}) {
    const outputs = this.session.handle({ kind, ...members }, this.now);
    for (const output of outputs) if (output.kind === "timer") this.timers.set(output.name, output.ms);
    this.outputs.push(...outputs);
    return outputs;
  }
  frame(frame) {
    return this.give("frame", { text: JSON.stringify(frame) });
  }
  take(kind) {
    const taken = this.outputs.filter((output) => output.kind === kind);
    this.outputs = this.outputs.filter((output) => output.kind !== kind);
    return taken;
  }
  sent() {
    return this.take("send").map((output) => JSON.parse(output.text));
  }
  states(key = 1) {
    return this.take("state")
      .filter((output) => output.key === key)
      .map((output) => output.state);
  }
  offsets() {
    return this.take("event").map((output) => output.delivery.offset);
  }
  gaps() {
    return this.take("gap").map((output) => output.gap);
  }
  /** Subscribed and live, before offset 1 of epoch e. */
  static live(settings, from = "earliest") {
    const bench = new Bench(settings);
    bench.give("subscribe", { key: 1, rp: RP, from });
    bench.give("opened");
    const [{ id }] = bench.sent();
    bench.frame({ op: "ok", id, rp: RP, epoch: "e", offset: 0, recovered: true });
    bench.outputs = [];
    return bench;
  }
  event(offset, epoch = "e", rp = RP) {
    return this.frame({ op: "event", rp, epoch, offset, cursor: `${epoch}:${offset}`, event: { data: offset } });
  }
  lose(code = 1006, reason = "") {
    this.give("closed", { code, reason });
    return this;
  }
  reopen() {
    this.give("timer", { name: "reconnect" });
    this.give("opened");
    return this;
  }
}

test("nothing is opened before it is needed, and one connection carries everything", () => {
  const bench = new Bench();
  assert.equal(bench.take("connect").length, 0);
  bench.give("subscribe", { key: 1, rp: RP, from: "now" });
  bench.give("subscribe", { key: 2, rp: "/localhost/b/", from: "earliest" });
  bench.give("request", { key: 3, frame: { op: "publish", rp: RP, event: { id: "x" } } });
  assert.equal(bench.take("connect").length, 1);
  bench.give("opened");
  assert.deepEqual(bench.sent(), [
    { op: "subscribe", id: 1, rp: RP, from: "now" },
    { op: "subscribe", id: 2, rp: "/localhost/b/", from: "earliest" },
    { op: "publish", id: 3, rp: RP, event: { id: "x" } },
  ]);
});

test("events reach the subscription of their rendezvous point, with their cursor", () => {
  const bench = Bench.live();
  bench.give("subscribe", { key: 2, rp: "/localhost/b/", from: "now" });
  const [{ id }] = bench.sent();
  bench.frame({ op: "ok", id, rp: "b".repeat(26), epoch: "f", offset: 7, recovered: true });
  bench.event(1);
  bench.event(8, "f", "b".repeat(26));
  const events = bench.take("event");
  assert.deepEqual(
    events.map(({ key, delivery }) => [key, delivery.cursor]),
    [
      [1, "e:1"],
      [2, "f:8"],
    ],
  );
});

test("after a reconnection a subscription resumes after its last event", () => {
  const bench = Bench.live();
  bench.event(1);
  bench.event(2);
  bench.lose();
  assert.deepEqual(bench.states(), ["reconnecting"]);
  bench.reopen();
  const [frame] = bench.sent();
  assert.equal(frame.from, "e:2");
  bench.frame({ op: "ok", id: frame.id, rp: RP, epoch: "e", offset: 2, recovered: true });
  assert.deepEqual(bench.states(), ["live"]);
});

test("a subscription from now that saw no event still misses nothing while it is away", () => {
  const bench = new Bench();
  bench.give("subscribe", { key: 1, rp: RP, from: "now" });
  bench.give("opened");
  bench.frame({ op: "ok", id: bench.sent()[0].id, rp: RP, epoch: "e", offset: 41, recovered: true });
  bench.lose().reopen();
  assert.equal(bench.sent()[0].from, "e:41");
});

test("an event that was delivered is not delivered again", () => {
  const bench = Bench.live();
  for (const offset of [1, 2, 2, 1, 3]) bench.event(offset);
  assert.deepEqual(bench.offsets(), [1, 2, 3]);
});

test("a gap that the domain tells is passed on, and reading continues after it", () => {
  const bench = Bench.live();
  bench.event(1);
  bench.frame({ op: "gap", rp: RP, epoch: "e", from: 2, to: 9 });
  bench.event(10);
  assert.deepEqual(bench.gaps(), [
    { rp: RP, epoch: "e", from: 2, to: 9, previousEpoch: null, cursor: "e:9", feeds: {} },
  ]);
  assert.deepEqual(bench.offsets(), [1, 10]);
});

test("a hole that nobody told is a gap as well", () => {
  const bench = Bench.live();
  bench.event(1);
  bench.event(4);
  const kinds = bench.outputs.map((output) => output.kind);
  assert.deepEqual(kinds, ["event", "gap", "event"]);
  assert.deepEqual(bench.gaps(), [
    { rp: RP, epoch: "e", from: 2, to: 3, previousEpoch: null, cursor: "e:3", feeds: {} },
  ]);
});

test("a new epoch is told even when none of its events is missing", () => {
  const bench = Bench.live();
  bench.event(1);
  bench.lose().reopen();
  bench.frame({ op: "ok", id: bench.sent().at(-1).id, rp: RP, epoch: "g", offset: 0, recovered: false });
  bench.frame({ op: "gap", rp: RP, epoch: "g", from: 1, to: 0 });
  bench.event(1, "g");
  assert.deepEqual(bench.gaps(), [
    { rp: RP, epoch: "g", from: 1, to: 0, previousEpoch: "e", cursor: "g:0", feeds: {} },
  ]);
  assert.deepEqual(bench.offsets(), [1, 1]);
});

test("an unconfirmed publish is sent again with the same event, in order, until it is answered", () => {
  const bench = Bench.live();
  bench.give("request", { key: 2, frame: { op: "publish", rp: RP, event: { id: "one" } } });
  bench.give("request", { key: 3, frame: { op: "publish", rp: RP, event: { id: "two" } } });
  const [first] = bench.sent();
  bench.frame({ op: "ok", id: first.id, epoch: "e", offset: 1 });
  assert.deepEqual(
    bench.take("settled").map(({ key, answer }) => [key, answer.offset]),
    [[2, 1]],
  );
  bench.lose().reopen();
  const again = bench.sent().filter((frame) => frame.op === "publish");
  assert.deepEqual(
    again.map((frame) => frame.event.id),
    ["two"],
  );
  bench.frame({ op: "ok", id: again[0].id, epoch: "e", offset: 2 });
  assert.equal(bench.take("settled")[0].key, 3);
});

test("a refused publish fails with the domain's problem; a passing trouble is tried again", () => {
  const bench = Bench.live();
  bench.give("request", { key: 2, frame: { op: "publish", rp: RP, event: { id: "x" } } });
  const [{ id }] = bench.sent();
  bench.frame({ op: "error", id, type: "urn:herald:problem:unavailable", title: "t", detail: "d" });
  assert.equal(bench.take("failed").length, 0);
  bench.now += bench.timers.get("retry");
  bench.give("timer", { name: "retry" });
  const [again] = bench.sent();
  assert.equal(again.event.id, "x");
  bench.frame({ op: "error", id: again.id, type: "urn:herald:problem:forbidden", title: "No", detail: "Not you." });
  const [{ error }] = bench.take("failed");
  assert.equal(error.code, "forbidden");
  assert.equal(error.message, "Not you.");
});

test("a trouble that names its duration is not tried again before", () => {
  const bench = Bench.live();
  bench.give("request", { key: 2, frame: { op: "publish", rp: RP, event: { id: "x" } } });
  const [{ id }] = bench.sent();
  bench.frame({ op: "error", id, type: "urn:herald:problem:rate-limited", retry_after_s: 7 });
  assert.equal(bench.timers.get("retry"), 7250);
  bench.now += 6000;
  bench.give("timer", { name: "retry" });
  assert.deepEqual(bench.sent(), []);
});

test("a refused subscription ends alone; the others live on", () => {
  const bench = Bench.live();
  bench.give("subscribe", { key: 2, rp: "/localhost/none/", from: "now" });
  const [{ id }] = bench.sent();
  bench.frame({ op: "error", id, type: "urn:herald:problem:not-found", detail: "No such rendezvous point." });
  const end = bench.take("state").at(-1);
  assert.deepEqual([end.key, end.state, end.detail.error.code], [2, "ended", "not-found"]);
  bench.event(1);
  assert.deepEqual(bench.offsets(), [1]);
});

test("when a rendezvous point goes while it is read, its subscription ends and the others live on", () => {
  const bench = Bench.live();
  bench.give("subscribe", { key: 2, rp: "/localhost/b/", from: "now" });
  const [{ id }] = bench.sent();
  bench.frame({ op: "ok", id, rp: "b".repeat(26), epoch: "f", offset: 0, recovered: true });
  bench.frame({ op: "error", id, type: "urn:herald:problem:gone", detail: "Deleted." });
  const end = bench.take("state").at(-1);
  assert.deepEqual([end.key, end.state, end.detail.error.code], [2, "ended", "gone"]);
  bench.event(1, "f", "b".repeat(26));
  bench.event(1);
  assert.deepEqual(bench.offsets(), [1]);
});

test("terminal close codes end everything with the reason; reconnect codes do not", () => {
  for (const code of [4100, 4101, 4102, 4103, 4104, 1002, 1003, 1007, 1008, 1009]) {
    const bench = Bench.live();
    bench.give("request", { key: 2, frame: { op: "publish", rp: RP, event: {} } });
    bench.lose(code, "because");
    const [end] = bench.take("state").filter((output) => output.key === 1);
    assert.equal(end.state, "ended");
    assert.equal(end.detail.error.code, code);
    assert.equal(bench.take("failed")[0].error.reason, "because");
    bench.give("timer", { name: "reconnect" });
    assert.equal(bench.take("connect").length, 0);
  }
  for (const code of [4000, 4001, 4042, 1000, 1001, 1005, 1006, 1011, 1012, 1013]) {
    assert.deepEqual(Bench.live().lose(code).states(), ["reconnecting"], `code ${code}`);
  }
});

test("what the domain says before it closes counts more than the code", () => {
  const bench = Bench.live();
  bench.frame({ op: "closing", reason: "moved away", retry: false });
  bench.lose(1006);
  const [end] = bench.take("state").filter((output) => output.key === 1);
  assert.equal(end.state, "ended");
  assert.equal(end.detail.error.reason, "moved away");
});

test("an expired token is refreshed once; if the fresh one is refused too, that is the end", () => {
  const bench = Bench.live({ refreshable: true });
  bench.lose(4100, "token expired");
  assert.deepEqual(bench.states(), ["reconnecting"]);
  bench.reopen();
  bench.lose(4100, "token expired");
  assert.equal(bench.states().at(-1), "ended");
});

test("an expired token is refreshed again after the fresh one was accepted", () => {
  const bench = Bench.live({ refreshable: true });
  for (let hour = 0; hour < 3; hour++) {
    bench.lose(4100).reopen();
    bench.frame({ op: "ok", id: bench.sent().at(-1).id, rp: RP, epoch: "e", offset: 0, recovered: true });
    assert.equal(bench.states().at(-1), "live");
  }
});

test("the backoff doubles to its cap, with full jitter, and begins anew after a stable connection", () => {
  assert.equal(backoffMs(0, 0), 0);
  assert.equal(backoffMs(0, 0.5), 250);
  assert.equal(backoffMs(3, 0.5), 2000);
  assert.equal(backoffMs(1000, 0.999999), DEFAULTS.backoffMaxMs);
  const bench = Bench.live();
  const delays = [];
  for (let attempt = 0; attempt < 8; attempt++) {
    bench.lose();
    delays.push(bench.timers.get("reconnect"));
    bench.give("timer", { name: "reconnect" });
  }
  assert.deepEqual(delays, [250, 500, 1000, 2000, 4000, 8000, 15000, 15000]);
  bench.give("opened");
  bench.now += DEFAULTS.stableMs;
  bench.lose();
  assert.equal(bench.timers.get("reconnect"), 250);
});

test("when the network comes back the delay is not waited out", () => {
  const bench = Bench.live();
  bench.lose();
  bench.give("online");
  assert.equal(bench.take("connect").length, 1);
  bench.give("timer", { name: "reconnect" });
  assert.equal(bench.take("connect").length, 0);
});

test("silence is answered with a ping, and a dead connection is replaced", () => {
  const bench = Bench.live();
  bench.now = DEFAULTS.silenceMs;
  bench.give("timer", { name: "silence" });
  assert.equal(bench.sent()[0].op, "ping");
  bench.now += DEFAULTS.pongMs;
  bench.give("timer", { name: "silence" });
  assert.equal(bench.take("disconnect").length, 1);
  assert.deepEqual(bench.states(), ["reconnecting"]);
});

test("a talking domain is not asked, and an answer to the ping counts", () => {
  const bench = Bench.live();
  bench.now = DEFAULTS.silenceMs - 1000;
  bench.event(1);
  bench.now = DEFAULTS.silenceMs;
  bench.give("timer", { name: "silence" });
  assert.deepEqual(bench.sent(), []);
  bench.now = 2 * DEFAULTS.silenceMs;
  bench.give("timer", { name: "silence" });
  bench.frame({ op: "ok", id: bench.sent()[0].id });
  bench.now += DEFAULTS.pongMs;
  bench.give("timer", { name: "silence" });
  assert.equal(bench.take("disconnect").length, 0);
});

test("a handshake that hangs is given up and tried again", () => {
  const bench = new Bench();
  bench.give("subscribe", { key: 1, rp: RP, from: "now" });
  bench.give("timer", { name: "connect" });
  assert.equal(bench.take("disconnect").length, 1);
  assert.equal(bench.states().at(-1), "reconnecting");
});

test("a token source that fails for now is asked again; a refusal is the end", () => {
  const bench = new Bench();
  bench.give("subscribe", { key: 1, rp: RP, from: "now" });
  bench.give("refused", { error: new Error("offline"), terminal: false });
  assert.equal(bench.states().at(-1), "reconnecting");
  bench.give("timer", { name: "reconnect" });
  bench.give("refused", { error: new Error("logged out"), terminal: true });
  assert.equal(bench.states().at(-1), "ended");
});

test("a paused subscription holds its place and nothing else", () => {
  const bench = Bench.live();
  bench.event(1);
  bench.give("pause", { key: 1 });
  assert.deepEqual(bench.sent(), [{ op: "unsubscribe", id: 2, rp: RP }]);
  bench.event(2);
  bench.give("resume", { key: 1 });
  bench.event(3); // still of the old subscription
  const [frame] = bench.sent();
  assert.equal(frame.from, "e:1");
  bench.frame({ op: "ok", id: frame.id, rp: RP, epoch: "e", offset: 1, recovered: true });
  bench.event(2);
  bench.event(3);
  assert.deepEqual(bench.offsets(), [1, 2, 3]);
});

test("a durable subscription is attached again by its id, and its acknowledgement is repeated until answered", () => {
  const bench = new Bench();
  bench.give("subscribe", { key: 1, subscription: "s1" });
  bench.give("opened");
  const [attach] = bench.sent();
  assert.deepEqual(attach, { op: "subscribe", id: 1, subscription: "s1" });
  bench.frame({ op: "ok", id: 1, rp: RP, epoch: "e", offset: 4, recovered: true });
  bench.event(5);
  bench.give("request", { key: 2, frame: { op: "ack", subscription: "s1", cursor: "e:5" } });
  bench.sent();
  bench.lose().reopen();
  const [again, ack] = bench.sent();
  assert.deepEqual([again.subscription, again.from, ack.op, ack.cursor], ["s1", undefined, "ack", "e:5"]);
});

/** A durable subscription that the gateway put back to what was acknowledged, behind what was delivered. */
function attachedAgain(ok) {
  const bench = new Bench();
  bench.give("subscribe", { key: 1, subscription: "s1" });
  bench.give("opened");
  bench.frame({ op: "ok", id: bench.sent()[0].id, rp: RP, epoch: "e", offset: 4, recovered: true });
  for (const offset of [5, 6, 7]) bench.event(offset);
  bench.lose().reopen();
  bench.frame({ op: "ok", id: bench.sent()[0].id, rp: RP, epoch: "e", offset: 4, ...ok });
  bench.outputs = [];
  return bench;
}

test("a durable subscription does not deliver again what was not acknowledged", () => {
  const bench = attachedAgain({ recovered: true });
  for (const offset of [5, 6, 7, 8]) bench.event(offset);
  assert.deepEqual([bench.offsets(), bench.gaps()], [[8], []]);
});

test("of a gap after what was acknowledged only what was not delivered is missing", () => {
  const bench = attachedAgain({ recovered: false });
  bench.frame({ op: "gap", rp: RP, epoch: "e", from: 5, to: 6 });
  assert.deepEqual(bench.gaps(), []);
  bench.event(8);
  assert.deepEqual(bench.offsets(), [8]);
  const other = attachedAgain({ recovered: false });
  other.frame({ op: "gap", rp: RP, epoch: "e", from: 5, to: 9 });
  assert.deepEqual(
    other.gaps().map(({ from, to }) => [from, to]),
    [[8, 9]],
  );
});

test("a gap that was announced and does not come is told before the next event", () => {
  const bench = new Bench();
  bench.give("subscribe", { key: 1, rp: RP, from: "e:7" });
  bench.give("opened");
  bench.frame({ op: "ok", id: bench.sent()[0].id, rp: RP, epoch: "g", offset: 3, recovered: false });
  assert.equal(bench.take("state").at(-1).detail.cursor, null, "the gap tells the place");
  bench.event(2, "g");
  assert.deepEqual([bench.gaps().map(({ from, to }) => [from, to]), bench.offsets()], [[[1, 1]], [2]]);
});

test("what a gap names by feed is told; what is not of that form is not", () => {
  const bench = Bench.live();
  const feeds = { ["a".repeat(16)]: [2, 4], ["b".repeat(16)]: "all", ["c".repeat(16)]: [1] };
  bench.frame({ op: "gap", rp: RP, epoch: "e", from: 1, to: 0, feeds, cursor: "e:0~x" });
  assert.deepEqual(
    bench.gaps().map((gap) => gap.feeds),
    [{ ["a".repeat(16)]: [2, 4] }],
  );
});

test("a second subscription at the same rendezvous point is refused by the domain and does not disturb the first", () => {
  const bench = Bench.live();
  bench.give("subscribe", { key: 2, rp: "/localhost/same/", from: "now" });
  bench.frame({ op: "error", id: bench.sent()[0].id, type: "urn:herald:problem:conflict", detail: "Already.", rp: RP });
  const end = bench.take("state").at(-1);
  assert.deepEqual([end.key, end.state, end.detail.error.code], [2, "ended", "conflict"]);
  bench.event(1);
  assert.deepEqual(bench.offsets(), [1]);
});

test("unanswered requests are bounded, and can be abandoned", () => {
  const bench = Bench.live({ requestsMax: 2 });
  for (const key of [2, 3, 4]) bench.give("request", { key, frame: { op: "publish", rp: RP, event: {} } });
  assert.deepEqual(
    bench.take("failed").map(({ key }) => key),
    [4],
  );
  const [first] = bench.sent();
  bench.give("abandon", { key: 2 });
  bench.frame({ op: "ok", id: first.id, epoch: "e", offset: 1 });
  assert.deepEqual(bench.take("settled"), []);
});

test("late, repeated and unknown inputs are harmless", () => {
  const bench = Bench.live();
  for (const name of ["reconnect", "connect", "retry", "silence", "unknown"]) bench.give("timer", { name });
  bench.frame({ op: "ok", id: 999 });
  bench.frame({ op: "error", id: 999, type: "urn:herald:problem:not-found" });
  bench.frame({ op: "event", rp: "z".repeat(26), epoch: "e", offset: 1, event: {} });
  bench.frame({ op: "from-the-future" });
  bench.give("unsubscribe", { key: 77 });
  bench.give("opened");
  assert.deepEqual(
    bench.outputs.filter(({ kind }) => kind !== "timer"),
    [],
  );
  bench.lose();
  bench.outputs = [];
  bench.lose();
  bench.event(1);
  assert.deepEqual(bench.outputs, []);
});

test("a frame that is not JSON costs the connection, not the place", () => {
  const bench = Bench.live();
  bench.event(1);
  bench.give("frame", { text: "{nonsense" });
  assert.equal(bench.take("disconnect").length, 1);
  bench.reopen();
  assert.equal(bench.sent()[0].from, "e:1");
});

test("closing the client ends subscriptions without an error and rejects what is unanswered", () => {
  const bench = Bench.live();
  bench.give("request", { key: 2, frame: { op: "publish", rp: RP, event: {} } });
  bench.give("close");
  const [end] = bench.take("state").filter((output) => output.key === 1);
  assert.deepEqual([end.state, end.detail.error], ["ended", undefined]);
  assert.equal(bench.take("failed").length, 1);
  assert.equal(bench.take("disconnect").length, 1);
  bench.give("request", { key: 3, frame: { op: "publish", rp: RP, event: {} } });
  assert.equal(bench.take("failed")[0].key, 3);
});
