/** The client's promises over a real WebSocket, against a small domain that can be stopped and started. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { toEvent } from "../events.js";
import { Client, ClientClosed, Closed, Gap } from "../herald.js";
import { Domain } from "./domain.js";

const RP = "a".repeat(26);

/** Wait for `condition`, for at most 5 s. */
async function until(condition, what) {
  const end = performance.now() + 60_000;
  while (!condition()) {
    if (performance.now() > end) assert.fail(`not within a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A running domain and a client of it with a short backoff; both are closed when the test ends. */
async function pair(context, settings = {}) {
  const domain = await new Domain().start();
  const client = new Client({ url: domain.url, token: "t", backoffMinMs: 10, backoffMaxMs: 50, ...settings });
  context.after(async () => {
    client.close();
    await domain.stop();
  });
  return { domain, client };
}

test("what is published arrives, with its data unchanged", async (context) => {
  const { client } = await pair(context);
  const received = [];
  const subscription = client.subscribe(RP, { from: "earliest", onEvent: (event) => received.push(event) });
  const answer = await client.publish(RP, { celsius: 21.5 });
  assert.deepEqual([answer.epoch, answer.offset], ["e", 1]);
  await client.publish(RP, "text");
  await until(() => received.length === 2, "both events");
  assert.deepEqual(
    received.map((event) => event.data),
    [{ celsius: 21.5 }, "text"],
  );
  assert.equal(received[0].specversion, "1.0");
  assert.equal(subscription.cursor, "e:2");
  assert.equal(subscription.state, "live");
});

test("a Date is sent as a time, and a domain that knows no times is named", async (context) => {
  const { domain, client } = await pair(context);
  const subscription = client.subscribe(RP, { from: new Date("2026-11-24T02:50:00.123Z") });
  await assert.rejects(subscription[Symbol.asyncIterator]().next(), {
    code: "invalid-cursor",
    message: /does not support a start by time/,
  });
  assert.deepEqual(domain.begun, ["time:2026-11-24T02:50:00.123Z"]);
});

test("a restart of the domain loses and repeats nothing", async (context) => {
  const { domain, client } = await pair(context);
  const received = [];
  const states = [];
  client.subscribe(RP, {
    from: "earliest",
    onEvent: (event) => received.push(event.data),
    onState: (state) => states.push(state),
  });
  await client.publish(RP, 1);
  await until(() => received.length === 1, "the first event");
  await domain.stop();
  domain.append(RP, toEvent(2, { source: "/other", type: "t" }));
  const waiting = client.publish(RP, 3);
  await domain.start();
  await waiting;
  await until(() => received.length === 3, "all events");
  assert.deepEqual(received, [1, 2, 3]);
  assert.deepEqual([states.at(0), states.at(-1)], ["live", "live"]);
  assert.ok(states.includes("reconnecting"));
});

test("a publish whose answer was lost is stored once", async (context) => {
  const { domain, client } = await pair(context);
  domain.answering = false;
  const answer = client.publish(RP, "once");
  await until(() => domain.log(RP).events.length === 1, "the event to be stored");
  domain.answering = true;
  await domain.stop();
  await domain.start();
  assert.equal((await answer).offset, 1);
  assert.equal(domain.log(RP).events.length, 1);
});

test("every connection asks for a fresh token", async (context) => {
  let count = 0;
  const { domain, client } = await pair(context, { token: undefined, getToken: async () => `t${++count}` });
  await client.publish(RP, 1);
  domain.closeAll(4100, "token-expired");
  await until(() => domain.tokens.length === 2, "the second connection");
  await client.publish(RP, 2);
  assert.deepEqual(domain.tokens, ["t1", "t2"]);
});

test("a terminal close ends iterators and publishes with its reason", async (context) => {
  const { domain, client } = await pair(context);
  const subscription = client.subscribe(RP);
  await client.publish(RP, 1);
  domain.answering = false;
  const unanswered = client.publish(RP, 2);
  const reading = (async () => {
    for await (const _ of subscription);
  })();
  await until(() => domain.log(RP).events.length === 2, "the publish");
  domain.closeAll(4101, "revoked");
  await assert.rejects(reading, (error) => error instanceof Closed && error.code === 4101);
  await assert.rejects(unanswered, Closed);
  assert.equal(subscription.state, "ended");
});

test("a token that is refused at the handshake is said, not tried for ever", async (context) => {
  const { domain, client } = await pair(context);
  domain.refusing = true;
  await assert.rejects(
    client.publish(RP, 1),
    (error) => error instanceof Closed && /signature is wrong/.test(error.message),
  );
});

test("an iterator gives events in order, and leaving it ends the subscription", async (context) => {
  const { domain, client } = await pair(context);
  for (const data of [1, 2, 3]) domain.append(RP, toEvent(data, { source: "/s", type: "t" }));
  const subscription = client.subscribe(RP, { from: "earliest" });
  const seen = [];
  for await (const item of subscription) {
    assert.ok(!(item instanceof Gap));
    seen.push(item.event.data);
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, [1, 2, 3]);
  assert.equal(subscription.state, "ended");
  await until(() => domain.log(RP).readers.size === 0, "the unsubscribe");
});

/** A domain with three events at RP, and an iterator that was left with the first one in hand. */
async function leftAfterOne(context, read) {
  const { domain, client } = await pair(context);
  for (const data of [1, 2, 3]) domain.append(RP, toEvent(data, { source: "/s", type: "t" }));
  const subscription = read(client);
  const items = subscription[Symbol.asyncIterator]();
  const { value } = await items.next();
  await client.publish("b".repeat(26), "all three have arrived"); // answers come in order
  return { domain, client, subscription, items, item: value };
}

test("the cursor of an iterator is that of the item given out, not of those that wait", async (context) => {
  const { subscription, items } = await leftAfterOne(context, (client) => client.subscribe(RP, { from: "earliest" }));
  assert.equal(subscription.cursor, "e:1");
  await items.next();
  assert.equal(subscription.cursor, "e:2");
  await items.return();
  assert.equal(subscription.cursor, "e:2");
});

test("a lost connection does not move the cursor of an iterator past what it was given", async (context) => {
  const { domain, subscription, items } = await leftAfterOne(context, (client) =>
    client.subscribe(RP, { from: "earliest" }),
  );
  await domain.stop();
  await domain.start();
  await until(() => domain.log(RP).readers.size === 1 && subscription.state === "live", "the second connection");
  assert.equal(subscription.cursor, "e:1");
  assert.equal((await items.next()).value.offset, 2);
});

test("a gap told by a callback does not move the cursor past events that wait", async (context) => {
  const gaps = [];
  const read = (client) => client.subscribe(RP, { from: "earliest", onGap: (gap) => gaps.push(gap) });
  const { domain, subscription } = await leftAfterOne(context, read);
  domain.say({ op: "gap", rp: RP, epoch: "e", from: 4, to: 9 });
  await until(() => gaps.length === 1, "the gap");
  assert.equal(subscription.cursor, "e:1");
});

test("acknowledging acknowledges what was given out, and no event that waits", async (context) => {
  const { domain, subscription, items, item } = await leftAfterOne(context, (client) => client.attach(RP));
  await item.ack();
  assert.deepEqual(domain.acknowledged, ["e:1"]);
  await items.next();
  await subscription.ack();
  assert.deepEqual(domain.acknowledged, ["e:1", "e:2"]);
  await item.ack();
  assert.deepEqual(domain.acknowledged, ["e:1", "e:2"], "an older item takes nothing back");
  assert.deepEqual(Object.keys(item), ["rp", "epoch", "offset", "cursor", "event"]);
});

test("items are acknowledged by callbacks too, and gaps as events are", async (context) => {
  const { domain, client } = await pair(context);
  for (const data of [1, 2]) domain.append(RP, toEvent(data, { source: "/s", type: "t" }));
  const gaps = [];
  client.attach(RP, { onEvent: (event, received) => received.ack(), onGap: (gap) => gaps.push(gap) });
  await until(() => domain.acknowledged.length === 2, "both acknowledgements");
  domain.say({ op: "gap", rp: RP, epoch: "e", from: 3, to: 9 });
  await until(() => gaps.length === 1, "the gap");
  await gaps[0].ack();
  assert.deepEqual(domain.acknowledged, ["e:1", "e:2", "e:9"]);
});

test("an item of a subscription that is not durable has nobody to be acknowledged to", async (context) => {
  const { domain, item } = await leftAfterOne(context, (client) => client.subscribe(RP, { from: "earliest" }));
  await item.ack();
  assert.deepEqual(domain.acknowledged, []);
});

test("a slow iterator holds a bounded number of events and misses none", async (context) => {
  const { domain, client } = await pair(context);
  const total = 5_000;
  for (let data = 1; data <= total; data++) domain.append(RP, toEvent(data, { source: "/s", type: "t" }));
  const subscription = client.subscribe(RP, { from: "earliest" });
  await until(() => subscription.state === "paused", "the flow to be stopped");
  const seen = [];
  for await (const item of subscription) {
    seen.push("event" in item && item.event.data);
    if (seen.length === total) break;
  }
  assert.deepEqual(
    seen,
    Array.from({ length: total }, (_, index) => index + 1),
  );
});

test("a failing callback does not stop the flow", async (context) => {
  const { client } = await pair(context);
  const received = [];
  const uncaught = [];
  const listener = (error) => uncaught.push(error.message);
  const former = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", listener);
  context.after(() => {
    process.removeListener("uncaughtException", listener);
    former.forEach((one) => process.on("uncaughtException", one));
  });
  client.subscribe(RP, {
    from: "earliest",
    onEvent: (event) => {
      received.push(event.data);
      throw new Error(`callback ${event.data}`);
    },
  });
  await client.publishAll(RP, [1, 2]);
  await until(() => received.length === 2, "both events");
  await until(() => uncaught.length === 2, "both reports");
  assert.deepEqual(uncaught, ["callback 1", "callback 2"]);
});

test("an aborted publish is rejected with the reason of the signal", async (context) => {
  const { domain, client } = await pair(context);
  domain.answering = false;
  const controller = new AbortController();
  const answer = client.publish(RP, 1, { signal: controller.signal });
  await until(() => domain.log(RP).events.length === 1, "the publish");
  controller.abort(new Error("too late"));
  await assert.rejects(answer, /too late/);
  await assert.rejects(client.publish(RP, 2, { signal: controller.signal }), /too late/);
});

test("a closed client rejects, ends its iterators quietly, and starts nothing again", async (context) => {
  const { domain, client } = await pair(context);
  const subscription = client.subscribe(RP);
  await client.publish(RP, 1);
  client.close();
  for await (const _ of subscription);
  await assert.rejects(client.publish(RP, 2), ClientClosed);
  await until(() => domain.connections.size === 0, "the close");
});

test("data becomes a CloudEvent; a CloudEvent stays as it is", () => {
  const defaults = { source: "/s", type: "t" };
  const stamp = { id: "1", time: "2026-01-01T00:00:00.000Z" };
  const base = { specversion: "1.0", id: "1", source: "/s", type: "t", time: stamp.time };
  assert.deepEqual(toEvent({ a: 1 }, defaults, stamp), {
    ...base,
    datacontenttype: "application/json",
    data: { a: 1 },
  });
  assert.deepEqual(toEvent("a", defaults, stamp), { ...base, datacontenttype: "text/plain", data: "a" });
  assert.deepEqual(toEvent(null, defaults, stamp), { ...base, datacontenttype: "application/json", data: null });
  assert.deepEqual(toEvent(undefined, defaults, stamp), base);
  const bytes = { ...base, datacontenttype: "application/octet-stream", data_base64: "AP8=" };
  assert.deepEqual(toEvent(new Uint8Array([0, 255]), defaults, stamp), bytes);
  const event = { specversion: "1.0", id: "mine", source: "/mine", type: "mine", data: 1, mine: "kept" };
  assert.deepEqual(toEvent(event, defaults), event);
});

test("a client without a usable address is refused at once", () => {
  assert.throws(() => new Client({ token: "t" }), /url is needed/);
  assert.throws(() => new Client({ url: "nonsense", token: "t" }), TypeError);
});
