/** Which replica is next and when to go back (rollover.js), what is a repetition (repeats.js): by plain calls. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Closed, Problem } from "../errors.js";
import { Repeats, WINDOW } from "../repeats.js";
import { ROLLOVER_DEFAULTS, Rollover, URLS_MAX, named } from "../rollover.js";

const [A, B, C] = ["wss://a.example/ws", "wss://b.example/ws", "wss://c.example/ws"];
const { holdMs, restMs, spreadMs } = ROLLOVER_DEFAULTS;
const FORBIDDEN = new Problem({ type: "urn:herald:problem:forbidden", detail: "Ask the creator." });

function rollover(...urls) {
  return new Rollover(urls.length ? urls : [A, B, C], () => 0.5);
}

function connect(made, now) {
  const { url, delayMs } = made.next(now);
  assert.equal(delayMs, 0);
  made.dialled(url);
  return url;
}

function openedAtB(made) {
  connect(made, 0);
  made.failed(0);
  assert.equal(connect(made, spreadMs), B);
  return made.opened(spreadMs);
}

test("the first replica is preferred, and the next one follows soon when it fails", () => {
  const made = rollover();
  assert.deepEqual(openedAtB(made), { from: A, to: B, reason: "does not answer", back: false });
});

test("with all away each is tried again and again, one that rests least before the other", () => {
  const made = rollover(A, B);
  const tried = { [A]: 0, [B]: 0 };
  for (let now = 0; now < 300_000;) {
    const { url, delayMs } = made.next(now);
    assert.ok(delayMs <= ROLLOVER_DEFAULTS.backoffMaxMs);
    now += delayMs;
    tried[url]++;
    made.dialled(url);
    made.failed(now);
    assert.ok(made.next(now).delayMs > 0 || made.next(now).url !== url);
  }
  assert.ok(tried[A] >= 10 && tried[B] >= 10, JSON.stringify(tried));
});

test("a replica that refuses is passed over, and when all do the error names them", () => {
  const made = rollover(A, B);
  connect(made, 0);
  made.refuses(FORBIDDEN, 0);
  assert.equal(made.verdict(), null);
  assert.equal(connect(made, spreadMs), B);
  made.opened(spreadMs);
  assert.equal(made.probeAt, null);
  made.refuses(new Closed(4101, ""), 1_000);
  assert.equal(made.verdict().code, "forbidden");
  assert.match(made.verdict().message, /^a\.example: Ask the creator\. b\.example: The token has been revoked\.$/);
  assert.equal(named(new Map([[A, FORBIDDEN]])), FORBIDDEN);
});

test("the preferred replica is gone back to after it answered twice and was away for a while", () => {
  const made = rollover();
  openedAtB(made);
  assert.equal(made.probed(true, holdMs - 100), false);
  assert.equal(made.probed(false, holdMs + 100), false);
  assert.equal(made.probed(true, holdMs + 200), false);
  assert.equal(made.probed(true, holdMs + 300), true);
  made.returning(holdMs + 300);
  assert.equal(connect(made, holdMs + 300), A);
  assert.deepEqual(made.opened(holdMs + 300), { from: B, to: A, reason: "answers again", back: true });
  assert.equal(made.probeAt, null);
});

test("a replica that comes and goes is gone back to ever more rarely", () => {
  const made = rollover(A, B);
  openedAtB(made);
  let left = 0;
  const holds = [];
  for (let round = 0; round < 6; round++) {
    let now = left;
    do now = Math.max(now, made.probeAt ?? assert.fail("no probe is due"));
    while (!made.probed(true, now));
    holds.push(now - left);
    made.returning(now);
    assert.equal(connect(made, now), A);
    made.opened(now);
    left = now + restMs;
    made.failed(left);
    assert.equal(connect(made, left + spreadMs), B);
    made.opened(left + spreadMs);
  }
  holds.forEach((hold, round) => assert.ok(hold >= holdMs * 2 ** round, `round ${round}: ${hold}`));
});

test("learned replicas come after those given, and are bounded", () => {
  const made = rollover(A);
  made.learn([B, A, ...Array.from({ length: 100 }, (_, number) => `wss://${number}.example/ws`)]);
  assert.deepEqual(made.known.slice(0, 2), [A, B]);
  assert.equal(made.known.length, URLS_MAX);
});

test("whatever happens, none is waited for while another does not rest, and none is probed but from another", () => {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let run = 0; run < 200; run++) {
    const made = new Rollover([A, B, C], random);
    const failedAt = new Map();
    let now = 1_000_000;
    let open = false;
    for (let step = 0; step < 60; step++) {
      now += random() * 5_000;
      if (made.probeAt !== null) assert.ok(open && made.current !== made.preferred);
      if (!open) {
        const { url, delayMs } = made.next(now);
        const resting = made.known.filter(
          (one) => now - (failedAt.get(one) ?? -Infinity) < ROLLOVER_DEFAULTS.backoffMaxMs,
        );
        if (delayMs > spreadMs) assert.equal(resting.length, 3);
        now += delayMs;
        made.dialled(url);
        open = random() < 0.4;
        if (open) made.opened(now);
      } else if (made.probeAt !== null && random() < 0.6) {
        now = Math.max(now, made.probeAt);
        if (!made.probed(random() < 0.7, now)) continue;
        made.returning(now);
        assert.deepEqual(made.next(now), { url: made.preferred, delayMs: 0 });
        open = false;
        continue;
      } else {
        open = false;
      }
      if (open) continue;
      made.failed(now);
      failedAt.set(made.current, now);
    }
  }
});

test("an event that comes again in another domain's feed is recognised, in the same feed it is given", () => {
  const repeats = new Repeats();
  const cursor = (f, g) => `e:1~${"f".repeat(16)}=${f}.${"g".repeat(16)}=${g}`;
  const event = (id, source = "/s") => ({ id, source });
  repeats.stand(cursor(4, 9));
  assert.equal(repeats.repeated(cursor(5, 9), event("x")), false);
  assert.equal(repeats.repeated(cursor(6, 9), event("x")), false);
  assert.equal(repeats.repeated(cursor(6, 10), event("x", "/other")), false);
  assert.equal(repeats.repeated(cursor(6, 11), event("x")), true);
  for (let number = 0; number < WINDOW; number++) repeats.repeated(cursor(7 + number, 11), event(`n${number}`));
  assert.equal(repeats.repeated(cursor(7 + WINDOW, 12), event("x")), false, "forgotten by now");
});
