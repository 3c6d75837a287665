import assert from "node:assert/strict";
import test from "node:test";

import { basisOf, paceOf } from "../overlay/health.js";
import { OWN_RADIUS, dotRadius, placeInside, placeZones } from "../overlay/layout.js";
import { levelOf, reasonOf } from "../overlay/words.js";

const WIDTH = 640;
const HEIGHT = 480;

/** @param {number} count */
function zones(count) {
  return Array.from({ length: count }, (_, index) => ({ zone: `z${index}`, domains: 1 + index ** 3 }));
}

for (const count of [2, 5, 12, 30]) {
  test(`${count} zones lie apart from each other and from this domain, inside the map`, () => {
    const discs = [...placeZones(zones(count), WIDTH, HEIGHT).values()];
    assert.equal(discs.length, count);
    for (const [index, one] of discs.entries()) {
      assert.ok(one.x - one.r >= 0 && one.x + one.r <= WIDTH && one.y - one.r >= 0 && one.y + one.r <= HEIGHT);
      assert.ok(Math.hypot(one.x - WIDTH / 2, one.y - HEIGHT / 2) > one.r + OWN_RADIUS - 1, `zone ${index} covers us`);
      for (const other of discs.slice(index + 1)) {
        assert.ok(Math.hypot(one.x - other.x, one.y - other.y) > (one.r + other.r) * 0.95);
      }
    }
  });
}

test("zones stay where they are from load to load, and a larger zone has a larger disc", () => {
  const [one, again] = [placeZones(zones(8), WIDTH, HEIGHT), placeZones(zones(8).reverse(), WIDTH, HEIGHT)];
  assert.deepEqual([...one], [...again]);
  assert.ok((one.get("z7")?.r ?? 0) > (one.get("z2")?.r ?? 0));
});

test("the domains of a single zone are around this domain, not under it", () => {
  const disc = placeZones(zones(1), WIDTH, HEIGHT).get("z0");
  assert.ok(disc);
  for (const count of [1, 2, 300]) {
    for (let index = 0; index < count; index++) {
      const at = placeInside(disc, index, count);
      const distance = Math.hypot(at.x - WIDTH / 2, at.y - HEIGHT / 2);
      assert.ok(distance > OWN_RADIUS && distance < disc.r);
    }
  }
});

test("dots of a full zone stay within bounds that can be seen and told apart", () => {
  assert.equal(dotRadius({ r: 40 }, 10_000), 1.5);
  assert.equal(dotRadius({ r: 200 }, 1), 9);
});

test("a link that ended has no level, and every reason has words", () => {
  const link = {
    ...{ peer: "b", up: true, chosen: true, anchor: false, reason: "chosen", since: "", zone: "" },
    ...{ rtt_ms: null, suspected: false, scores: [] },
  };
  assert.deepEqual(
    [
      levelOf(link),
      levelOf({ ...link, chosen: false }),
      levelOf({ ...link, anchor: true }),
      levelOf({ ...link, up: false }),
    ],
    ["chosen", "accepted", "anchor", "none"],
  );
  assert.equal(reasonOf({ up: false, reason: "silent" }), "No sign of life");
  assert.equal(reasonOf({ up: true, reason: "unheard-of" }), "unheard-of");
});

test("a link is near or slow by its round-trip time, and neither where none was measured", () => {
  assert.deepEqual([null, 5, 30, 31, 299, 300, 4000].map((rtt) => paceOf({ rtt_ms: rtt })), ["", "near", "near", "", "", "slow", "slow"]); // prettier-ignore
});

test("a figure says on how many domains it rests, how old its oldest row is, and whether it is disputed", () => {
  const figure = { value: 7, coverage: 0.5, oldest_s: 90, disputed: false };
  assert.match(basisOf(figure, 40), /^50\s% of 40 live domains, oldest 1\smin 30\ss$/);
  assert.match(basisOf({ ...figure, coverage: 0 }, 1), /^0\s% of 1 live domain$/);
  assert.match(basisOf({ ...figure, disputed: true }, 40), /; reporters contradict a sample$/);
});
