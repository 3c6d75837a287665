/** The session machine, proved with the vectors that client/herald's is proved with. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { play } from "./machine.js";

const vectors = new URL("../../../tests/client/session_vectors.json", import.meta.url);
const { scenarios } = JSON.parse(readFileSync(vectors, "utf8"));

assert.ok(scenarios.length > 0);
for (const scenario of scenarios) {
  test(scenario.name, () => {
    for (const [number, outputs, expected] of play(scenario)) {
      assert.deepEqual(outputs, expected, `step ${number}: ${JSON.stringify(scenario.steps[number - 1].in)}`);
    }
  });
}
