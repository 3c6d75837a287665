/** The page's connection: opened without a token, and at the page's own domain whatever replicas that names. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Domain } from "../../../client/js/test/domain.js";
import { leave, makePage } from "./page.js";

const WITHIN_MS = 60_000;

async function until(condition, about) {
  const deadline = performance.now() + WITHIN_MS;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${WITHIN_MS} ms: ${about}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("a page waits for its own domain, and goes on at no replica that was named", async (context) => {
  const [own, other] = [await new Domain().start(), await new Domain().start()];
  context.after(async () => {
    leave();
    await Promise.all([own.stop(), other.stop()]);
  });
  makePage(own.url);
  globalThis.fetch = async () => new Response(null, { status: 204 });
  const { domainConnection } = await import("../domain_connection.js");
  let state = "";
  domainConnection().subscribe("rp", { onState: (now) => (state = now) });
  await until(() => state === "live", "live");
  own.say({ op: "redirect", rp: "rp", to: [other.url] });
  own.closeAll(1012, "restarting");
  await until(() => own.tokens.length === 2 && state === "live", "live again");
  assert.deepEqual(
    [own.tokens, other.tokens],
    [[null, null], []],
    "the cookie authenticates, and no token is in a URL",
  );
});
