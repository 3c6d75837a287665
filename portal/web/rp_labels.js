/**
 * Labels of rendezvous points, requested by id, many at once. The id is shown until the label is loaded, and to users who
 * may not see it.
 */

import { getJson } from "./requests.js";

const KEPT_MAX = 2_000;

/** The RP that an administrative one reports on; any other itself. */
const aboutOf = (rp) => rp.replace(/\.admin$/, "");

export class RpLabels {
  #url;
  #onNames;
  #names = new Map();
  #asked = new Set();

  /** @param {string} url answers {id: name} to ?ids= @param {() => void} onNames called when names have arrived */
  constructor(url, onNames) {
    this.#url = url;
    this.#onNames = onNames;
  }

  /** @param {string} rp */
  of(rp) {
    const name = this.#names.get(aboutOf(rp));
    if (!name) return rp;
    return aboutOf(rp) === rp ? name : `${name} (administration)`;
  }

  /** Whether some of these were not requested yet. @param {string[]} rps */
  lacks(rps) {
    return this.#unknown(rps).length > 0;
  }

  /** Have these looked up; an administrative RP is called as the one that it is about. @param {string[]} rps */
  async ask(rps) {
    const unknown = this.#unknown(rps);
    if (unknown.length === 0) return;
    for (const rp of unknown) this.#asked.add(rp);
    for (const oldest of this.#asked) {
      if (this.#asked.size <= KEPT_MAX) break;
      this.#asked.delete(oldest);
      this.#names.delete(oldest);
    }
    try {
      const names = await getJson(`${this.#url}?ids=${unknown.join(",")}`);
      for (const [rp, name] of Object.entries(names)) this.#names.set(rp, name);
      this.#onNames();
    } catch {
      // The id identifies it.
    }
  }

  #unknown(rps) {
    return [...new Set(rps.filter(Boolean).map(aboutOf))].filter(
      (rp) => !this.#asked.has(rp) && !rp.includes(".") && rp !== "domain",
    );
  }
}
