/** The client between two small domains that hold the same logs. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "../herald.js";
import { Session } from "../session.js";
import { Domain } from "./domain.js";

const RP = "r".repeat(26);
const QUICK = { backoffMinMs: 5, backoffMaxMs: 50, restMs: 20, spreadMs: 5, holdMs: 60, probeMs: 20, probeMaxMs: 40 };

async function until(condition, what) {
  for (let waited = 0; !condition(); waited += 5) {
    assert.ok(waited < 60_000, `${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function replicas(context, settings = {}) {
  const [a, b] = [await new Domain().start(), await new Domain().start()];
  b.logs = a.logs;
  const moves = [];
  const client = new Client({
    url: [a.url, b.url],
    token: "t",
    onMove: (move) => moves.push(move),
    ...QUICK,
    ...settings,
  });
  context.after(async () => {
    client.close();
    for (const domain of [a, b]) if (domain.server?.listening) await domain.stop();
  });
  return { a, b, client, moves };
}

test("everything goes on at the second domain when the first is away, and back when it answers again", async (context) => {
  const { a, b, client, moves } = await replicas(context);
  const received = [];
  const subscription = client.subscribe(RP, { from: "earliest", onEvent: (event) => received.push(event.data) });
  await client.publish(RP, 1);
  await a.stop();
  await client.publish(RP, 2);
  await until(() => received.length === 2, "the event of the second domain");
  assert.equal(moves.length, 1);
  assert.match(moves[0].text, /^127\.0\.0\.1:\d+ does not answer; going on at 127\.0\.0\.1:\d+$/);
  await a.start();
  await until(() => moves.length === 2 && b.connections.size === 0, "the return");
  assert.equal(moves[1].back, true);
  await client.publish(RP, 3);
  await until(() => received.length === 3, "the event of the first domain");
  assert.deepEqual(received, [1, 2, 3]);
  assert.equal(subscription.state, "live");
});

test("each domain is shown the token that is for it", async (context) => {
  const { a, b, client } = await replicas(context, { token: undefined, getToken: async (url) => `for ${url}` });
  a.refusing = true;
  await client.publish(RP, 1);
  assert.deepEqual(a.tokens, []);
  assert.deepEqual(b.tokens, [`for ${b.url}`]);
});

test("a token is not shown to domains that the program did not name", async (context) => {
  const { a, b } = await replicas(context);
  const alone = new Client({ url: a.url, token: "secret", ...QUICK });
  context.after(() => alone.close());
  await alone.publish(RP, 1);
  a.say({ op: "redirect", rp: RP, to: [b.url] });
  await alone.publish(RP, "behind the redirect"); // whose answer comes after it
  await a.stop();
  await alone.publish(RP, 2);
  assert.deepEqual([a.tokens, b.tokens], [["secret"], [null]]);
});

test("advice to move is followed, by a connection that is open before the present one is left", async (context) => {
  const { a, b, client, moves } = await replicas(context, { token: undefined });
  const received = [];
  const subscription = client.subscribe(RP, { from: "earliest", onEvent: (event) => received.push(event.data) });
  await client.publish(RP, 1);
  b.refusing = true; // handshakes: the client stays
  a.say({ op: "redirect", rp: RP, to: [b.url], hops: 1, valid_s: 60 });
  await client.publish(RP, 2);
  assert.equal(a.tokens.length, 1);
  const stranger = new Domain();
  await stranger.start();
  stranger.logs = a.logs;
  context.after(() => stranger.stop());
  a.say({ op: "redirect", rp: RP, to: [stranger.url], hops: 1, valid_s: 0 });
  a.say({ op: "redirect", rp: RP, to: [stranger.url], hops: 3, valid_s: 60 });
  await until(() => {
    a.say({ op: "redirect", rp: RP, to: [stranger.url], hops: 1, valid_s: 60 }); // it may still be trying the other
    return stranger.connections.size === 1 && a.connections.size === 0;
  }, "the move");
  await client.publish(RP, 3);
  await until(() => received.length === 3, "the event of the next domain");
  assert.deepEqual(received, [1, 2, 3]);
  assert.equal(subscription.state, "live");
  assert.deepEqual(
    moves.map(({ reason, back }) => [reason, back]),
    [["asks to go on elsewhere", false]],
  );
  assert.deepEqual([a.hops, stranger.hops], [["0"], ["1"]]);
});

test("domains that point to each other end after two hops, and the client is served", async (context) => {
  const domains = [await new Domain().start(), await new Domain().start(), await new Domain().start()];
  for (const domain of domains) domain.logs = domains[0].logs;
  const client = new Client({ url: domains[0].url, ...QUICK });
  const lying = setInterval(() => {
    for (const domain of domains) {
      const to = domains.filter((other) => other !== domain).map(({ url }) => url);
      domain.say({ op: "redirect", rp: RP, to, hops: 0, valid_s: 60 });
    }
  }, 5);
  context.after(async () => {
    clearInterval(lying);
    client.close();
    for (const domain of domains) await domain.stop();
  });
  const received = [];
  client.subscribe(RP, { from: "earliest", onEvent: (event) => received.push(event.data) });
  for (let number = 0; number < 200; number++) await client.publish(RP, number);
  await until(() => domains.flatMap(({ hops }) => hops).includes("2"), "the second hop");
  for (let number = 200; number < 300; number++) await client.publish(RP, number);
  await until(() => received.length === 300, "all events");
  assert.deepEqual(received, [...Array(300).keys()]);
  assert.deepEqual(domains.flatMap(({ hops }) => hops).sort(), ["0", "1", "2"]);
});

test("a clearly faster domain is moved to, and a client that is to stay does not measure", async (context) => {
  const [a, b] = [await new Domain().start(), await new Domain().start()];
  b.logs = a.logs;
  a.alternatives = [{ url: b.url, weight: 1000 }];
  a.answersAfterMs = 250;
  const clients = [true, false].map(
    (bestServer) => new Client({ url: a.url, ...QUICK, bestServer, firstMeasureMs: 20, confirmMs: 20, measureMs: 100 }),
  );
  context.after(async () => {
    for (const client of clients) client.close();
    for (const domain of [a, b]) await domain.stop();
  });
  const received = [];
  for (const client of clients) {
    client.subscribe(RP, { from: "earliest", onEvent: (event) => received.push(event.data) });
  }
  await until(() => b.connections.size === 1, "the move");
  await clients[0].publish(RP, 1);
  await until(() => received.length === 2, "the event, at both");
  assert.deepEqual([a.connections.size, a.hops], [1, ["0", null]]);
});

test("what one domain does not serve is read and published at another, in order, and the rest stays", async (context) => {
  const { a, b, client, moves } = await replicas(context);
  b.logs = new Map();
  /** @type {unknown[][]} */
  const [there, here] = [[], []];
  client.subscribe("here", { onEvent: (event) => here.push(event.data) });
  await client.publish("here", 0);
  a.without.add("there");
  client.subscribe("there", { from: "earliest", onEvent: (event) => there.push(event.data) });
  await Promise.all([1, 2, 3, 4].map((number) => client.publish("there", number)));
  await until(() => there.length === 4, "what is elsewhere");
  assert.deepEqual(there, [1, 2, 3, 4]);
  await client.publish("here", 5);
  await until(() => here.length === 2, "what is here");
  assert.match(moves[0].text, /refuses \(There is none\); going on at/);
  b.without.add("nowhere");
  a.without.add("nowhere");
  await assert.rejects(
    client.publish("nowhere", 1),
    /127\.0\.0\.1:\d+: There is none\. 127\.0\.0\.1:\d+: There is none\./,
  );
});

test("a shared durable subscription is read and acknowledged wherever it is delivered, to and fro", async (context) => {
  const { a, b } = await replicas(context);
  const client = new Client({ url: a.url, token: "t", ...QUICK });
  context.after(() => client.close());
  const received = [];
  const shared = client.attach("s", { onEvent: (event) => received.push(event.data) });
  b.acknowledged = a.acknowledged; // as holders tell each other
  for (const data of [1, 2, 3, 4]) {
    const [at, elsewhere] = data % 2 ? [a, b] : [b, a];
    at.deliveredAt.delete("s");
    elsewhere.deliversNoMore("s", at.url);
    at.append("s", { source: "/s", id: `${data}`, data });
    await until(() => received.length === data, `event ${data}`);
    await shared.ack();
    assert.deepEqual([at.acknowledged.at(-1), at.attached.size], [shared.cursor, 1]);
  }
  assert.deepEqual(received, [1, 2, 3, 4]);
  assert.equal(shared.state, "live");
});

test("a client that may go to no other domain ends with what its own answers", async (context) => {
  const { a, b } = await replicas(context);
  const client = new Client({ url: a.url, token: "t", learnable: () => [], ...QUICK });
  context.after(() => client.close());
  a.deliversNoMore("s", b.url);
  const ended = new Promise((resolve) => {
    client.attach("s", { onState: (state, { error }) => state === "ended" && resolve(error) });
  });
  assert.equal((await ended).code, "moved");
  assert.deepEqual(b.tokens, []);
});

test("at another replica a subscription goes on from its vector, without a gap and without what it has", () => {
  const session = new Session({ random: () => 0.5, refreshable: false, urls: ["ws://a/ws", "ws://b/ws"], spreadMs: 0 });
  const vector = (a, b) => `~${"a".repeat(16)}=${a}.${"b".repeat(16)}=${b}`;
  let now = 0;
  const give = (input) => session.handle(input, now);
  const frame = (members) => give({ kind: "frame", text: JSON.stringify(members) });
  const event = (epoch, offset, at, id) =>
    frame({ op: "event", rp: RP, epoch, offset, cursor: `${epoch}:${offset}${at}`, event: { id, source: "/s" } });
  const kinds = (outputs) => outputs.filter(({ kind }) => kind === "event" || kind === "gap").map(({ kind }) => kind);
  give({ kind: "subscribe", key: 1, rp: RP, from: "earliest" });
  const ask = (outputs) => JSON.parse(outputs.find(({ kind }) => kind === "send").text);
  const first = ask(give({ kind: "opened" }));
  frame({ op: "ok", id: first.id, rp: RP, epoch: "x", offset: 0, recovered: true, cursor: `x:0${vector(0, 0)}` });
  assert.deepEqual(kinds(event("x", 1, vector(1, 0), "one")), ["event"]);
  give({ kind: "closed", code: 1006, reason: "" });
  now = 10;
  assert.equal(give({ kind: "timer", name: "reconnect" }).find(({ kind }) => kind === "connect").url, "ws://b/ws");
  const again = ask(give({ kind: "opened" }));
  assert.equal(again.from, `x:1${vector(1, 0)}`);
  assert.deepEqual(
    kinds(
      frame({ op: "ok", id: again.id, rp: RP, epoch: "y", offset: 0, recovered: true, cursor: `y:0${vector(1, 0)}` }),
    ),
    [],
  );
  assert.deepEqual(kinds(event("y", 1, vector(1, 1), "two")), ["event"]);
  assert.deepEqual(
    kinds(frame({ op: "covered", rp: RP, epoch: "y", from: 2, to: 2, cursor: `y:2${vector(1, 1)}` })),
    [],
  );
  assert.deepEqual(kinds(event("y", 3, vector(1, 2), "one")), [], "a publisher's retry in the other domain's feed");
  assert.deepEqual(kinds(event("y", 4, vector(2, 2), "three")), ["event"]);
  assert.deepEqual(kinds(event("y", 6, vector(3, 2), "four")), ["gap", "event"]);
});
