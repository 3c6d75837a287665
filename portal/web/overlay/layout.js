/**
 * Positions on the overlay's map: this domain in the middle, zones as discs around it, domains in the disc of their zone.
 * Pure, and the same for the same zones and size, so nothing jumps from load to load.
 */

import { forceCollide, forceSimulation, forceX, forceY } from "d3-force";

const TURNS = 160;
const APART = 14; // px between two discs
const LABEL = 34; // room for a zone's words above and below its disc
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
export const OWN_RADIUS = 26;
export const ZONE_RADIUS_MIN = 22;
/** Radius of the largest zone's disc, of the map's shorter side, while there are few. */
const SHARE = 0.2;
const FEW = 6;

/** @typedef {{x: number, y: number, r: number, hole?: number}} Disc `hole`: radius around its middle where no domain is drawn */

/**
 * Discs of zones, larger with more domains: the area grows with the square root of their number. A single zone is around this domain.
 * @param {{zone: string, domains: number}[]} zones
 * @param {number} width
 * @param {number} height
 * @returns {Map<string, Disc>} by zone
 */
export function placeZones(zones, width, height) {
  const centre = { x: width / 2, y: height / 2 };
  const sorted = [...zones].sort((a, b) => a.zone.localeCompare(b.zone));
  const side = Math.min(width, height);
  if (sorted.length === 1) {
    return new Map([[sorted[0].zone, { ...centre, r: side / 2 - LABEL, hole: OWN_RADIUS + APART }]]);
  }
  const largest = Math.max(1, ...sorted.map(({ domains }) => domains));
  const most = side * SHARE * Math.sqrt(FEW / Math.max(FEW, sorted.length));
  const nodes = sorted.map(({ zone, domains }, index) => {
    const angle = -Math.PI / 2 + (2 * Math.PI * (index + 0.5)) / sorted.length;
    const r = Math.max(ZONE_RADIUS_MIN, most * (domains / largest) ** 0.25);
    return {
      zone,
      r,
      x: centre.x + (width / 2 - r - APART) * Math.cos(angle),
      y: centre.y + (height / 2 - r - LABEL) * Math.sin(angle),
    };
  });
  const own = { zone: null, r: OWN_RADIUS + APART, fx: centre.x, fy: centre.y, x: centre.x, y: centre.y };
  const inside = () => {
    for (const node of nodes) {
      node.x = within(node.x, node.r + 4, width - node.r - 4);
      node.y = within(node.y, node.r + LABEL, height - node.r - LABEL);
    }
  };
  forceSimulation([own, ...nodes])
    .randomSource(() => 0.5)
    .force("x", forceX(centre.x).strength(0.01))
    .force("y", forceY(centre.y).strength(0.01))
    .force("collide", forceCollide(({ r }) => r + APART + LABEL / 3).iterations(4))
    .force("inside", inside)
    .stop()
    .tick(TURNS);
  inside();
  return new Map(nodes.map(({ zone, x, y, r }) => [zone, { x, y, r }]));
}

/**
 * The place of the `index`th of `count` domains in a disc: a spiral of even density (H. Vogel, 1979).
 * @param {Disc} disc
 */
export function placeInside({ x, y, r, hole = 0 }, index, count) {
  const far = count === 1 ? (hole ? 0.5 : 0) : Math.sqrt((index + 0.5) / count);
  const distance = hole + (r * 0.86 - hole) * far;
  const angle = index * GOLDEN_ANGLE;
  return { x: x + distance * Math.cos(angle), y: y + distance * Math.sin(angle) };
}

/** Radius of a dot, so that `count` of them fit into a disc with room between them. @param {{r: number}} disc */
export function dotRadius({ r }, count) {
  return within((0.52 * r) / Math.sqrt(Math.max(1, count)), 1.5, 9);
}

function within(value, least, most) {
  return Math.min(Math.max(value, least), Math.max(least, most));
}
