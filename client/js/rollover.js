/**
 * The choice among several replicas for a connection, and its return to the preferred one. No input, output, clock or
 * random source of its own; the same decisions as client/herald/rollover.py. Times are milliseconds of any steady
 * clock.
 *
 * Laws:
 *  1. A failed replica rests, longer each time. Of those that are not resting the first in the given order is next, one
 *      that was not tried since the last connection before one that was.
 *  2. No replica is waited for while another does not rest.
 *  3. A replica that refuses is not asked again for REFUSED_MS (MOVED_MS if it named others); when all refuse, the
 *      connection ends (`verdict`).
 *  4. The client returns to the preferred replica only after it answered PROBES_GOOD times over a hold that doubles
 *      with each return that did not last.
 *  5. With one replica there is no choice: only the backoff remains.
 */

import { Closed, HeraldError, Problem } from "./errors.js";

export const URLS_MAX = 16;
export const ROLLOVER_DEFAULTS = Object.freeze({
  backoffMinMs: 500, // the first delay is between 0 and this, then it doubles: full jitter
  backoffMaxMs: 30_000,
  stableMs: 5_000, // after a connection of this length the backoff starts anew
  restMs: 1_000, // least rest of a failed replica, if there are others
  spreadMs: 200, // clients of a lost replica arrive at the next one spread over this
  probeMs: 1_000, // between probes, at first
  probeMaxMs: 30_000,
  holdMs: 3_000, // from leaving the preferred replica to going back, at least
});
const REFUSED_MS = 300_000;
const MOVED_MS = 5_000; // the delivering holder of a shared subscription may soon change back
const PROBES_GOOD = 2;
const HOLD_MAX_MS = 600_000;
const STAYED_MS = 60_000;
const BACK = "answers again";

/**
 * Full jitter: a delay between 0 and the doubled and capped bound.
 * @param {number} attempt attempts that failed before this one
 * @param {number} random in [0, 1)
 * @param {{backoffMinMs: number, backoffMaxMs: number}} [bounds]
 */
export function backoffMs(attempt, random, { backoffMinMs, backoffMaxMs } = ROLLOVER_DEFAULTS) {
  return Math.round(random * Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(attempt, 30)));
}

/** Return one error for the refusals of several replicas (URL -> error), with their names; the first prevails. */
export function named(refusals) {
  const [first] = refusals.values();
  if (refusals.size === 1) return first;
  const said = [...refusals].map(([url, error]) => `${host(url)}: ${error.message.replace(/\.+$/, "")}.`).join(" ");
  if (first instanceof Problem) return new Problem({ ...first.document, detail: said });
  return first instanceof Closed ? new Closed(first.code, said) : new HeraldError(said);
}

/** Return a URL's host, as people call it. */
export function host(url) {
  return new URL(url).host;
}

/** Return whether a replica states that others serve the target. */
function isMoved(error) {
  return error instanceof Problem && error.code === "moved";
}

function refusing(error) {
  return isMoved(error) ? "does not serve it now" : `refuses (${error.message.replace(/\.+$/, "")})`;
}

export class Rollover {
  #replicas = new Map(); // URL -> {url, attempts, dueAt, tried, refusal}
  #random;
  #options;
  #openedAt = null;
  #leftAt = 0;
  #holdMs;
  #returnedAt = null;
  #good = 0;
  #probes = 0;
  #openAt = null; // the URL of the last connection that was open
  reason = "does not answer";
  /** Return when to ask the preferred replica whether it is ready; null if it is the one in use, or none is. */
  probeAt = null;

  /**
   * `refused`: refusals that replicas of `urls` have answered already (URL -> error), as of `now`, so that the others
   * are asked first.
   */
  constructor(urls, random, tuning = {}, refused = new Map(), now = 0) {
    this.#random = random;
    this.#options = { ...ROLLOVER_DEFAULTS, ...tuning };
    this.#holdMs = this.#options.holdMs;
    this.#add(urls);
    for (const [url, error] of refused) if (this.#replicas.has(url)) this.#refuse(this.#replicas.get(url), error, now);
    if (refused.size) {
      const soon = now + random() * this.#options.spreadMs; // by now many may be sent from one replica to another
      for (const replica of this.#replicas.values()) replica.dueAt = Math.max(replica.dueAt, soon);
    }
    const [{ refusal }] = this.#replicas.values();
    if (refusal) this.reason = refusing(refusal);
    this.current = this.preferred;
  }

  get known() {
    return [...this.#replicas.keys()];
  }

  get many() {
    return this.#replicas.size > 1;
  }

  /** Return the first that does not refuse; the first of all if every one does. */
  get preferred() {
    const all = [...this.#replicas.values()];
    return (all.find(({ refusal }) => !refusal) ?? all[0]).url;
  }

  /** Add replicas after the known ones, up to the bound. */
  learn(urls) {
    this.#add(urls);
  }

  /** Return where to connect, and in how many milliseconds. */
  next(now) {
    const all = [...this.#replicas.values()];
    const rest = all.filter(({ refusal, dueAt }) => !refusal || dueAt <= now);
    const ready = rest.filter(({ dueAt }) => dueAt <= now);
    const soonest = (list) => list.reduce((best, one) => (one.dueAt < best.dueAt ? one : best));
    const chosen = ready.find(({ tried }) => !tried) ?? ready[0] ?? soonest(rest.length ? rest : all);
    return { url: chosen.url, delayMs: Math.max(0, chosen.dueAt - now) };
  }

  /** Return the error to end with if every replica refuses; else null. */
  verdict() {
    const refused = [...this.#replicas.values()].filter(({ refusal }) => refusal);
    if (refused.length < this.#replicas.size) return null;
    return named(new Map(refused.map(({ url, refusal }) => [url, refusal])));
  }

  dialled(url) {
    this.current = url;
  }

  /** Record that the current replica did not answer, was lost, or asked for a pause of `afterMs`. */
  failed(now, reason = "does not answer", afterMs = 0) {
    const replica = this.#left(now, reason);
    const pause = afterMs + backoffMs(replica.attempts++, this.#random(), this.#options);
    replica.dueAt = now + (this.many ? Math.max(pause, this.#options.restMs) : pause);
    replica.tried = true;
  }

  /** Record that the current replica refuses. */
  refuses(error, now) {
    this.#refuse(this.#left(now, refusing(error)), error, now);
  }

  /** Have the current replica tried again at once, with another token. */
  again(now) {
    Object.assign(this.#replicas.get(this.current), { dueAt: now, refusal: null });
  }

  /**
   * Record that a connection to the current replica is open. Returns {from, to, reason, back} if it is another than
   * before.
   */
  opened(now) {
    this.#openedAt = now;
    Object.assign(this.#replicas.get(this.current), { dueAt: now, refusal: null });
    for (const replica of this.#replicas.values()) replica.tried = replica.dueAt > now;
    this.#good = this.#probes = 0;
    this.probeAt = this.current === this.preferred ? null : now + this.#probePause() + this.#options.probeMs;
    const from = this.#openAt ?? this.known[0];
    this.#openAt = this.current;
    return from === this.current ? null : { from, to: this.current, reason: this.reason, back: this.reason === BACK };
  }

  /** Record the answer of the preferred replica. True: go back to it now, and report that by `returning`. */
  probed(good, now) {
    this.#good = good ? this.#good + 1 : 0;
    if (good) this.#probes = 0;
    this.probeAt = now + this.#probePause() + this.#options.probeMs / 2;
    return this.#good >= PROBES_GOOD && now - this.#leftAt >= this.#holdMs;
  }

  /** Record that the connection is being closed in order to go back. */
  returning(now) {
    this.probeAt = this.#openedAt = null;
    this.#returnedAt = now;
    this.reason = BACK;
    Object.assign(this.#replicas.get(this.preferred), { dueAt: now, tried: false, attempts: 0 });
  }

  /** Record that a connection to `url` is open and replaces the present one, which works: it is preferred from now on. */
  chosen(url, now, reason) {
    if (!this.#replicas.has(url) && this.#replicas.size >= URLS_MAX) {
      this.#replicas.delete(this.known.findLast((one) => one !== this.current));
    }
    const replica = this.#replicas.get(url) ?? { url, attempts: 0 };
    this.#replicas.delete(url);
    this.#replicas = new Map([[url, { ...replica, dueAt: now, tried: false, refusal: null }], ...this.#replicas]);
    this.probeAt = this.#openedAt = this.#returnedAt = null;
    this.#holdMs = this.#options.holdMs;
    this.reason = reason;
  }

  #refuse(replica, error, now) {
    Object.assign(replica, { refusal: error, tried: true, dueAt: now + (isMoved(error) ? MOVED_MS : REFUSED_MS) });
  }

  #add(urls) {
    for (const url of urls) {
      if (this.#replicas.size >= URLS_MAX || this.#replicas.has(url)) continue;
      this.#replicas.set(url, { url, attempts: 0, dueAt: 0, tried: false, refusal: null });
    }
  }

  #probePause() {
    const { probeMs: backoffMinMs, probeMaxMs: backoffMaxMs } = this.#options;
    return backoffMs(this.#probes++, this.#random(), { backoffMinMs, backoffMaxMs });
  }

  #left(now, reason) {
    const replica = this.#replicas.get(this.current);
    this.reason = reason;
    this.probeAt = null;
    if (this.#openedAt !== null && now - this.#openedAt >= this.#options.stableMs) replica.attempts = 0;
    this.#openedAt = null;
    if (!this.many) return replica;
    if (this.current === this.known[0]) this.#hold(now);
    const soon = now + this.#random() * this.#options.spreadMs; // the same for all, so that their order counts
    for (const one of this.#replicas.values()) if (!one.refusal && one.dueAt <= now) one.dueAt = soon;
    return replica;
  }

  /** Record that the preferred replica is left: no return for a while, longer if the last return did not last. */
  #hold(now) {
    this.#leftAt = now;
    if (this.#returnedAt === null) return;
    const brief = now - this.#returnedAt < STAYED_MS;
    this.#holdMs = brief ? Math.min(HOLD_MAX_MS, this.#holdMs * 2) : this.#options.holdMs;
    this.#returnedAt = null;
  }
}
