/** The choice of the best server, proved with the vectors that client/herald's is proved with. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { BestServer } from "../best_server.js";

const vectors = new URL("../../../tests/client/best_server_vectors.json", import.meta.url);
const { scenarios } = JSON.parse(readFileSync(vectors, "utf8"));

const INPUTS = {
  named: (best, { rp, urls }, now) => best.named(rp, urls, now),
  forget: (best, { rp }) => best.forget(rp),
  redirected: (best, { urls, by_hops, valid_ms }, now) => best.redirected(urls, by_hops, valid_ms, now),
  measured: (best, { delays }, now) => best.measured(new Map(Object.entries(delays)), now),
  arrived: (best, { url }, now) => best.arrived(url, now),
  failed: (best, { url }, now) => best.failed(url, now),
};

assert.ok(scenarios.length > 0);
for (const { name, current, steps } of scenarios) {
  test(name, () => {
    const best = new BestServer(current, () => 0.5);
    for (const { at, in: given, out } of steps) {
      const more = given.do === "due" ? { measures: best.measures(at) } : INPUTS[given.do](best, given, at);
      const found = {
        measure_at: best.measureAt === null ? null : Math.round(best.measureAt),
        go: best.go && [best.go.url, best.go.reason],
        hops: best.hops(at),
        ...more,
      };
      assert.deepEqual(found, out, JSON.stringify(given));
    }
  });
}
