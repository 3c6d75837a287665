/**
 * Replica locations: which replicas do not serve an RP or a durable subscription, and where it was stated to be. No
 * input, output or clock; the same decisions as client/herald/replica_locations.py.
 */

import { named } from "./rollover.js";

const REDIRECTS_MAX = 1_000; // redirects of a target back to a replica that refused it: beyond them it is served nowhere
const TRAILS_MAX = 10_000; // targets that some replica refused; with more, the oldest are discarded and found out again
const NONE = new Map();

export class ReplicaLocations {
  #urls;
  #learnable;
  #trails = new Map(); // target -> {refused: URL -> error, learned: [URL], redirects}

  /**
   * @param {string[]} urls the domains that the program named, the preferred one first
   * @param {(named: unknown) => string[]} learnable which of the URLs that a domain named are to be used
   */
  constructor(urls, learnable) {
    this.#urls = urls;
    this.#learnable = learnable;
  }

  /** Return all replicas that a target may be at, in the order of preference. */
  candidates(target) {
    return [...new Set([...this.#urls, ...(this.#trails.get(target)?.learned ?? [])])];
  }

  /** Return the replicas that refuse the target, and their answers. */
  refused(target) {
    return this.#trails.get(target)?.refused ?? NONE;
  }

  /**
   * Record a replica's refusal of a target. Return the error to end with, if no replica is left that may serve it (the
   * next request begins anew); else null.
   */
  refuses(target, url, problem) {
    const trail = this.#trails.get(target) ?? { refused: NONE, learned: [], redirects: 0 };
    this.#trails.set(target, trail);
    if (this.#trails.size > TRAILS_MAX) this.#trails.delete(this.#trails.keys().next().value);
    trail.refused = new Map([...trail.refused, [url, problem]]); // a new map: connections keep theirs
    if (problem.code === "moved") {
      const namedNow = this.#learnable(problem.document.to);
      trail.learned.push(...namedNow.filter((one) => !trail.learned.includes(one)));
      this.#backTo(trail, namedNow);
    }
    const all = this.candidates(target);
    if (all.some((one) => !trail.refused.has(one))) return null;
    this.#trails.delete(target);
    return named(new Map(all.map((one) => [one, trail.refused.get(one)])));
  }

  /** Discard earlier refusals of these replicas: a later statement prevails. */
  #backTo(trail, urls) {
    const again = urls.filter((one) => trail.refused.get(one)?.code === "moved");
    if (!again.length || trail.redirects >= REDIRECTS_MAX) return;
    trail.redirects++;
    trail.refused = new Map([...trail.refused].filter(([one]) => !again.includes(one)));
  }
}
