/**
 * Positions of domains on the map: this domain in the middle, its gateways close around it, peers by a force layout.
 * Pure, and the same for the same names and size: chance is seeded, so nothing jumps from load to load.
 */

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";

const TURNS = 240;
const SEED = 20_260_101;
export const OWN_RADIUS = 34;
export const PEER_RADIUS = 19;
export const GATEWAY_RADIUS = 11;
const LABEL = 62; // room that a peer's words need below and beside it
const STRETCH = 1.5; // words are wider than high: forces work on a map that is so much narrower

/**
 * @param {string[]} names of the peers
 * @param {number} wideWidth
 * @param {number} height
 * @returns {Map<string, {x: number, y: number}>} by name
 */
export function place(names, wideWidth, height) {
  const width = wideWidth / STRETCH;
  const centre = { x: width / 2, y: height / 2 };
  const own = { id: "", fx: centre.x, fy: centre.y };
  const reach = Math.min(width, height) / 2 - LABEL;
  const far = Math.max(reach, OWN_RADIUS + GATEWAY_RADIUS * 4 + PEER_RADIUS);
  const sorted = [...names].sort();
  const wide = width / Math.max(height, 1);
  const nodes = sorted.map((id, index) => {
    const angle = -Math.PI / 2 + (2 * Math.PI * (index + 0.5)) / sorted.length;
    return { id, x: centre.x + far * wide * Math.cos(angle), y: centre.y + far * Math.sin(angle) };
  });
  const side = Math.min((LABEL + 6) / STRETCH, width / 2);
  const inside = () => {
    for (const node of nodes) {
      node.x = within(node.x, side, width - side);
      node.y = within(node.y, LABEL, height - LABEL);
    }
  };
  const room = within(0.5 * Math.sqrt((width * height) / (nodes.length + 2)), PEER_RADIUS + 14, LABEL);
  forceSimulation([own, ...nodes])
    .randomSource(seeded(SEED))
    .force(
      "links",
      forceLink(nodes.map(({ id }) => ({ source: "", target: id })))
        .id(({ id }) => id)
        .distance(far * 1.15)
        .strength(0.25 / (1 + nodes.length / 8)),
    )
    .force("apart", forceManyBody().strength(-420))
    .force("x", forceX(centre.x).strength(0.02))
    .force("y", forceY(centre.y).strength(0.02 * Math.max(1, wide * wide)))
    .force("collide", forceCollide(({ id }) => (id === "" ? OWN_RADIUS + 2 * GATEWAY_RADIUS : room)).iterations(4))
    .force("inside", inside)
    .stop()
    .tick(TURNS);
  inside();
  return new Map(nodes.map(({ id, x, y }) => [id, { x: x * STRETCH, y }]));
}

/** Gateways on a ring around the own domain, from the top. */
export function ring(names, width, height) {
  const radius = OWN_RADIUS + GATEWAY_RADIUS + 5;
  return new Map(
    [...names].sort().map((name, index, all) => {
      const angle = -Math.PI / 2 + (2 * Math.PI * index) / Math.max(all.length, 1);
      return [name, { x: width / 2 + radius * Math.cos(angle), y: height / 2 + radius * Math.sin(angle) }];
    }),
  );
}

/** Numbers from 0 to 1 that look like chance and are the same each time (mulberry32). */
function seeded(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function within(value, least, most) {
  return Math.min(Math.max(value, least), Math.max(least, most));
}
