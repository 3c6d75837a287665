/**
 * The choice of the best server for one connection, among the alternatives that its domain names. No input, output, clock
 * or random source of its own; the same decisions as client/herald/best_server.py. Times and delays are milliseconds.
 *
 * Life: alternatives are named -> their delays and the present server's are measured -> another is clearly better, twice
 * -> `go` -> `arrived` or `failed`. A redirect that the domain advises is followed after one measurement.
 *
 * Laws:
 *  1. A server is left by choice only for one that is faster by MARGIN_MS. Of servers within NEAR_MS of the fastest the
 *     one that the domain names first is chosen.
 *  2. After a move the next by choice waits HOLD_MS, twice as long each time, until one stay has lasted STAYED_MS.
 *  3. At most HOPS_MAX redirects are followed within MEMORY_MS, and none within that time to a server that sent this
 *     client away: domains that point to each other keep no client moving.
 *  4. A redirect is followed before it expires, or not at all; if none of its servers answers, the client stays.
 *  5. Only servers that are named for every rendezvous point of the connection are alternatives.
 */

const MEASURED_MAX = 16; // servers measured at once, besides the present one; as many as a domain names
const RPS_MAX = 1_000; // rendezvous points for which alternatives are remembered; beyond it none are used
const MARGIN_MS = 10;
const NEAR_MS = 5;
const ADVISED_NEAR_MS = 15; // of a redirect's servers, those this close to the fastest count as equal: the load decides
const HOLD_MS = 60_000;
const HOLD_MAX_MS = 3_600_000;
const STAYED_MS = 3_600_000;
const HOPS_MAX = 2;
const MEMORY_MS = 600_000;
const RETURN_MS = 3_600_000; // until a server that sent this client away is chosen again by its delay
const AVOIDED_MS = 300_000; // a server to which a move failed is not chosen for this time
export const BEST_SERVER_DEFAULTS = Object.freeze({
  firstMeasureMs: 30_000, // until the first measurement after alternatives were named; half of it to all of it
  confirmMs: 10_000, // until the measurement that confirms another
  measureMs: 600_000, // between measurements; half of it to all of it
});
export const SLOWER = "is slower";
export const ASKS = "asks to go on elsewhere";

export class BestServer {
  #random;
  #options;
  #named = new Map(); // RP -> URLs, in the domain's order
  #advised = []; // the servers of a redirect that is not followed yet
  #expiresAt = 0;
  #favourite = null; // was clearly better in the last measurement
  #followedAt = [];
  #leftAt = new Map(); // servers that sent this client away
  #avoidedUntil = new Map();
  #arrivedAt = null;
  #holdMs = 0;
  /** @type {number | null} when `measures` are wanted next; null: not before something else happens. */
  measureAt = null;
  /** @type {{url: string, reason: string} | null} where to go now: connect there first, leave then; null: stay. */
  go = null;

  /**
   * @param {string} current the URL of the present server
   * @param {() => number} random a number in [0, 1)
   * @param {Partial<typeof BEST_SERVER_DEFAULTS>} [tuning]
   */
  constructor(current, random, tuning = {}) {
    this.current = current;
    this.#random = random;
    this.#options = { ...BEST_SERVER_DEFAULTS, ...tuning };
  }

  /** Record the alternatives for one RP of the connection, in the domain's order; they replace earlier ones. */
  named(rp, urls, now) {
    if (this.#named.has(rp) || this.#named.size < RPS_MAX) this.#named.set(rp, urls.slice(0, MEASURED_MAX));
    else this.#named.set(this.#named.keys().next().value, []);
    if (this.measureAt === null && this.alternatives(now).length) {
      this.measureAt = now + this.#jittered(this.#options.firstMeasureMs);
    }
  }

  /** Discard the alternatives for an RP that the connection no longer uses. */
  forget(rp) {
    this.#named.delete(rp);
  }

  /** Record the advice to move to one of these servers, with the count that the domain believes it makes. */
  redirected(urls, hops, validMs, now) {
    const allowed = this.#allowed(urls, now);
    if (!(validMs > 0) || hops > HOPS_MAX || this.hops(now) >= HOPS_MAX || !allowed.length || this.go) return;
    this.#advised = allowed.slice(0, MEASURED_MAX);
    this.#expiresAt = now + validMs;
    this.measureAt = now;
  }

  /** Return the number of redirects followed lately, as it is stated to the next server. */
  hops(now) {
    this.#followedAt = this.#followedAt.filter((at) => now - at < MEMORY_MS);
    return this.#followedAt.length;
  }

  /** Return the servers that are named for every RP and may be chosen, in the order for the first RP. */
  alternatives(now) {
    const [first = [], ...others] = this.#named.values();
    return this.#allowed(
      first.filter((url) => others.every((urls) => urls.includes(url))),
      now,
    );
  }

  /** Return the servers to measure, the present one first; nothing if there is nothing to choose. */
  measures(now) {
    if (this.#advised.length && now >= this.#expiresAt) this.#advised = [];
    const servers = this.#advised.length ? this.#advised : this.alternatives(now);
    this.measureAt = null;
    return servers.length ? [this.current, ...servers] : [];
  }

  /** Record the round-trip times (URL -> ms, null for a server that did not answer); `go` may be set then. */
  measured(delays, now) {
    const reached = new Map([...delays].filter(([url, delay]) => delay !== null && url !== this.current));
    if (this.#advised.length && !this.#advised.some((url) => delays.has(url))) {
      this.measureAt = now; // the redirect arrived meanwhile
      return;
    }
    const advised = this.#advised.filter((url) => reached.has(url));
    this.#advised = [];
    if (advised.length && now < this.#expiresAt) {
      this.#leave(firstNear(advised, reached, ADVISED_NEAR_MS), ASKS);
      return;
    }
    const chosen = this.#clearlyBetter(reached, delays.get(this.current) ?? null, now);
    if (chosen !== null && chosen === this.#favourite) {
      this.#leave(chosen, SLOWER);
      return;
    }
    this.#favourite = chosen;
    const pause = chosen === null ? this.#jittered(this.#options.measureMs) : this.#options.confirmMs;
    this.measureAt = this.alternatives(now).length ? now + pause : null;
  }

  /** Record that the connection is at this server, by a move of `go` or any other way. */
  arrived(url, now) {
    const move = this.go;
    this.go = null;
    if (move && move.url === url) {
      if (move.reason === ASKS) {
        this.#followedAt.push(now);
        for (const [one, at] of this.#leftAt) if (now - at >= RETURN_MS) this.#leftAt.delete(one);
        this.#leftAt.set(this.current, now);
      }
      const lasted = this.#arrivedAt === null || now - this.#arrivedAt >= STAYED_MS;
      this.#holdMs = lasted ? HOLD_MS : Math.min(HOLD_MAX_MS, Math.max(HOLD_MS, 2 * this.#holdMs));
      this.#arrivedAt = now;
    }
    if (url !== this.current) {
      this.#named.clear(); // the next server names its own
      this.#advised = [];
      this.#favourite = this.measureAt = null;
    }
    this.current = url;
  }

  /** Record that a move could not be made: the connection stays. */
  failed(url, now) {
    this.go = null;
    for (const [one, until] of this.#avoidedUntil) if (until <= now) this.#avoidedUntil.delete(one);
    this.#avoidedUntil.set(url, now + AVOIDED_MS);
    this.measureAt = this.#named.size ? now + this.#jittered(this.#options.measureMs) : null;
  }

  #allowed(urls, now) {
    const mayGo = (url) => {
      const sentAway = this.#sentAway(url, now, MEMORY_MS);
      return url !== this.current && !sentAway && (this.#avoidedUntil.get(url) ?? now) <= now;
    };
    return [...new Set(urls)].filter(mayGo);
  }

  #clearlyBetter(reached, own, now) {
    const order = this.alternatives(now).filter((url) => reached.has(url) && !this.#sentAway(url, now, RETURN_MS));
    const held = this.#arrivedAt !== null && now - this.#arrivedAt < this.#holdMs;
    if (!order.length || own === null || held) return null;
    const chosen = firstNear(order, reached, NEAR_MS);
    return own - reached.get(chosen) >= MARGIN_MS ? chosen : null;
  }

  #sentAway(url, now, within) {
    const leftAt = this.#leftAt.get(url);
    return leftAt !== undefined && now - leftAt < within;
  }

  #leave(url, reason) {
    this.go = { url, reason };
    this.#favourite = null;
  }

  #jittered(ms) {
    return ms * (0.5 + 0.5 * this.#random());
  }
}

/** Return the first server whose delay is within `near` of the least. */
function firstNear(order, delays, near) {
  const least = Math.min(...order.map((url) => delays.get(url)));
  return order.find((url) => delays.get(url) <= least + near);
}
