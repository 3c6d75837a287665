/** Durable subscriptions over REST: made once, whatever happens to the answers, and refused with what the domain says. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { Client, HeraldError, Problem } from "../herald.js";

const NAME = "/herald.example/orders/";

/** A domain that gives `answers` in their order, the last one ever again, and keeps what it was asked. */
async function domain(context, answers) {
  const asked = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { method, url, headers } = request;
    asked.push({ method, url, headers, body: Buffer.concat(parts).toString() });
    const answer = answers[Math.min(asked.length, answers.length) - 1];
    if (answer === "cut") {
      request.socket.destroy();
      return;
    }
    response.writeHead(answer.status, { "Content-Type": "application/json" });
    response.end(answer.status === 204 ? undefined : JSON.stringify(answer.body));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(null)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const client = new Client({ url: `http://127.0.0.1:${port}`, token: "t", WebSocket: /** @type {any} */ (class {}) });
  context.after(() => {
    client.close();
    server.closeAllConnections();
    server.close();
  });
  return { client, asked };
}

test("a durable subscription is made with what was asked for", async (context) => {
  const made = { id: "sub_x", rp: "r", lease: { asked_s: 60, granted_s: 60, expires_at: "2026-01-01T00:00:00Z" } };
  const { client, asked } = await domain(context, [{ status: 201, body: made }]);
  const stated = { leaseS: 60, from: "earliest", history: { maxEvents: 5 } };
  assert.deepEqual(await client.createSubscription(NAME, stated), made);
  const [{ method, url, headers, body }] = asked;
  assert.equal(`${method} ${url}`, "POST /api/v1/rps/%2Fherald.example%2Forders%2F/subscriptions");
  assert.equal(headers.authorization, "Bearer t");
  assert.deepEqual(JSON.parse(body), {
    from: "earliest",
    deliver: { mode: "pull" },
    lease_s: 60,
    history: { max_events: 5 },
  });
  await client.createSubscription("orders");
  await client.createSubscription("a".repeat(26));
  assert.deepEqual(
    asked.slice(1).map((one) => one.url),
    ["/api/v1/rps/orders%2F/subscriptions", `/api/v1/rps/${"a".repeat(26)}/subscriptions`],
  );
});

test("a request whose answer was lost or put off is repeated with the same key", async (context) => {
  const busy = { status: 503, body: { type: "urn:herald:problem:unavailable", retry_after_s: 0 } };
  const { client, asked } = await domain(context, ["cut", busy, { status: 201, body: { id: "sub_x" } }]);
  assert.equal((await client.createSubscription(NAME)).id, "sub_x");
  assert.equal(asked.length, 3);
  assert.equal(new Set(asked.map(({ headers }) => headers["idempotency-key"])).size, 1);
});

test("a refusal is the domain's problem, at once", async (context) => {
  const refusal = {
    type: "urn:herald:problem:forbidden",
    title: "Operation not permitted",
    status: 403,
    detail: "No.",
  };
  const { client, asked } = await domain(context, [{ status: 403, body: refusal }]);
  await assert.rejects(
    client.createSubscription(NAME),
    (error) => error instanceof Problem && error.code === "forbidden",
  );
  assert.equal(asked.length, 1);
});

test("a domain that never answers is an error after some attempts", async (context) => {
  const { client, asked } = await domain(context, ["cut"]);
  await assert.rejects(client.createSubscription(NAME), HeraldError);
  assert.equal(asked.length, 4);
});

test("waiting for the next attempt ends when it is aborted", async (context) => {
  const busy = { status: 503, body: { type: "urn:herald:problem:unavailable", retry_after_s: 9 } };
  const { client, asked } = await domain(context, [busy]);
  const abort = new AbortController();
  const creating = client.createSubscription(NAME, { signal: abort.signal });
  const end = performance.now() + 60_000;
  while (!asked.length && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
  abort.abort(new Error("stopped"));
  await assert.rejects(creating, /stopped/);
  assert.equal(asked.length, 1);
});

test("one that is gone is deleted", async (context) => {
  const gone = { status: 410, body: { type: "urn:herald:problem:gone" } };
  const { client, asked } = await domain(context, [{ status: 204, body: null }, gone, { status: 403, body: {} }]);
  await client.deleteSubscription("sub_x");
  await client.deleteSubscription("sub_x");
  await assert.rejects(client.deleteSubscription("sub_x"), Problem);
  assert.equal(`${asked[0].method} ${asked[0].url}`, "DELETE /api/v1/subscriptions/sub_x");
});
