/**
 * What is known of where each rendezvous point or durable subscription is served: by which replicas it is not. No input,
 * output or clock; the same decisions as client/herald/whereabouts.py.
 */

import { named } from "./rollover.js";

const TURNS_MAX = 1_000; // answers that sent a target back to where it came from: replicas that never agree are no place
const TRAILS_MAX = 10_000; // targets that some replica refused; with more, the oldest are forgotten and found out again
const NONE = new Map();

export class Whereabouts {
  #urls;
  #learnable;
  #trails = new Map(); // target -> {refused: URL -> error, learned: [URL], turns}

  /**
   * @param {string[]} urls the domains that the program named, the preferred one first
   * @param {(named: unknown) => string[]} learnable which of the URLs that a domain named are to be used
   */
  constructor(urls, learnable) {
    this.#urls = urls;
    this.#learnable = learnable;
  }

  /** All replicas that a target may be at, in the order of preference. */
  candidates(target) {
    return [...new Set([...this.#urls, ...(this.#trails.get(target)?.learned ?? [])])];
  }

  /** The replicas that refuse it, and their answers. */
  refused(target) {
    return this.#trails.get(target)?.refused ?? NONE;
  }

  /** A replica refuses a target. What to end with, if none is left that may serve it; the next wish begins anew. Else null. */
  refuses(target, url, problem) {
    const trail = this.#trails.get(target) ?? { refused: NONE, learned: [], turns: 0 };
    this.#trails.set(target, trail);
    if (this.#trails.size > TRAILS_MAX) this.#trails.delete(this.#trails.keys().next().value);
    trail.refused = new Map([...trail.refused, [url, problem]]); // a new one: connections keep theirs
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

  /** What these replicas said before, that it was elsewhere, is older than what was said now. */
  #backTo(trail, urls) {
    const again = urls.filter((one) => trail.refused.get(one)?.code === "moved");
    if (!again.length || trail.turns >= TURNS_MAX) return;
    trail.turns++;
    trail.refused = new Map([...trail.refused].filter(([one]) => !again.includes(one)));
  }
}
