/**
 * The session: what the client does on one logical connection, without any input or output of its own.
 *
 * `handle(input, now)` takes an input and the time in milliseconds, and returns the outputs, in order.
 * No clock, socket, timer or random source is touched here (randomness is passed in), so every path is tested by plain
 * calls. herald.js carries the outputs out.
 *
 * Life of a connection:   idle -> connecting -> open -> waiting -> connecting ...      any -> ended
 * Life of a subscription: connecting -> live -> reconnecting -> live ...  live <-> paused     any -> ended
 *
 * Laws:
 *  1. A subscription resumes after the last event it delivered; an event is never delivered twice.
 *  2. Lost events are reported: every hole in the offsets, and every change of epoch, is a gap before the next event.
 *  3. A request is sent again, unchanged and in order, after each reconnection until it is answered.
 *  4. Late, repeated and unknown timers and frames are harmless; a malformed frame costs the connection.
 *
 * client/herald/session.py makes the same decisions: tests/client/session_vectors.py tests both.
 *
 * With several replicas rollover.js decides which one is next. A target that one refuses and another may serve leaves
 * the session as `elsewhere`, for a session of its own (replica_locations.js), which continues at its position (`adopt`).
 * A better server (best_server.js) is connected to before the present one is left: `measure` -> measured -> `prepare` ->
 * prepared -> what was sent is answered -> `switch`, or unprepared: stay.
 */

import { ASKS, BEST_SERVER_DEFAULTS, BestServer } from "./best_server.js";
import { CLOSE_OF_ONE, CLOSE_TOKEN_EXPIRED, ClientClosed, Closed, Problem, isTerminal } from "./errors.js";
import { Repeats } from "./repeats.js";
import { ROLLOVER_DEFAULTS, Rollover, backoffMs } from "./rollover.js";
import { explained } from "./starts.js";

export { backoffMs } from "./rollover.js";

/** Bounds and times, in milliseconds unless named otherwise. All can be given to the constructor. */
export const DEFAULTS = Object.freeze({
  ...ROLLOVER_DEFAULTS,
  ...BEST_SERVER_DEFAULTS,
  connectMs: 15_000, // bound of token and handshake together
  silenceMs: 25_000, // after this much silence a ping is sent (the domain's own heartbeat is as long)
  pongMs: 10_000, // bound of the wait for any frame after the ping
  requestsMax: 1_000, // unanswered requests; more are refused at once, so that a long outage cannot fill the memory
});

const RETRY_AFTER_S_MAX = 300; // longest accepted Retry-After; guess
const RETURN_MS = 5_000; // how long going back waits for answers of sent requests
const TROUBLED_MS = 3_000; // a domain with no other answers than `unavailable` for this long is left, if there is another
const VALID_MAX_MS = 600_000; // longest validity of a redirect that is believed
const DROPS_MAX = 5; // consecutive connections that ended by malformed frames without a valid one
const RESTARTING = new Set([1001, 1012, 4000]);
/** Refusals that another replica may not share. */
const HERE_ONLY = new Set(["moved", "not-found", "gone", "forbidden", "unauthenticated", "token-revoked"]);

/** The target of a subscription or a request. */
export function targetOf({ rp, subscription = null }) {
  return subscription === null ? `rp ${rp}` : `subscription ${subscription}`;
}

/** A frame violates the protocol. */
class Malformed extends Error {}

/** Return the milliseconds that a closing domain asks to wait for; 0 for anything else. */
const retryAfterMs = (value) =>
  typeof value === "number" && value >= 0 ? Math.min(value, RETRY_AFTER_S_MAX * 1000) : 0;

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** A member that must be text; a lone surrogate is not, because it could not be sent back. */
function textOf(frame, name) {
  const value = frame[name];
  if (typeof value !== "string" || !value || /\p{Surrogate}/u.test(value)) throw new Malformed(name);
  return value;
}

function numberOf(frame, name) {
  if (!Number.isSafeInteger(frame[name])) throw new Malformed(name);
  return frame[name];
}

/** Return the cursor of a frame; without one, its epoch and offset are all there is. */
function cursorOf(frame, epoch, offset) {
  return (frame.cursor ?? null) === null ? `${epoch}:${offset}` : textOf(frame, "cursor");
}

/** Return a gap's members by feed, [first, last] of each; none for a malformed value, which only the reader sees. */
function feedsOf(said) {
  const isPlace = (lost) => Array.isArray(lost) && lost.length === 2 && lost.every(Number.isSafeInteger);
  return Object.fromEntries(Object.entries(isObject(said) ? said : {}).filter(([, lost]) => isPlace(lost)));
}

/** Return a gap's withdrawn events; null for none, and for a malformed value, which only the reader sees. */
function rewoundOf(said) {
  if (!isObject(said) || typeof said.epoch !== "string") return null;
  const { epoch, from, to } = said;
  return [from, to].every(Number.isSafeInteger) ? { epoch, from, to } : null;
}

/** Return the URLs of the alternatives that a frame names; none for a malformed value, which changes nothing else. */
function urlsOf({ alternatives }) {
  return Array.isArray(alternatives) ? alternatives.filter(isObject).map(({ url }) => url) : [];
}

/**
 * @typedef {object} Wiring
 * @property {() => number} random a number in [0, 1)
 * @property {boolean} refreshable whether a fresh token can be had, so that an expired one is no end
 * @property {string[]} [urls] the replicas, the preferred one first
 * @property {Map<string, Error>} [refused] what some of them answered already, so that the others are asked first
 * @property {number} [now] the time from which these answers count
 * @property {(named: unknown) => string[]} [learnable] which of the URLs that a domain named are to be used
 * @property {((named: unknown) => string[]) | null} [usable] which of them may be moved to, with the same rights; null:
 *   only failures make it move
 * @property {(target: string, url: string, error: Error) => Error | null} [refuses] a replica refuses a target:
 *   what to end with, or null: another may serve it
 *
 * @typedef {Partial<Record<keyof typeof DEFAULTS, number>>} Tuning
 */

export class Session {
  #options;
  #random;
  #refreshable;
  #phase = "idle";
  #subscriptions = new Map(); // key -> subscription
  #requests = new Map(); // key -> request; insertion order is sending order
  #wire = new Map(); // id of an unanswered frame -> {subscription} | {request} | {ping}
  #byRp = new Map(); // id of an RP -> its live subscription
  #id = 0;
  #attempt = 0;
  #heardAt = 0;
  /** @type {number | null} */
  #pingAt = null;
  /** @type {any} */
  #closing = null; // the domain's `closing` frame
  #drops = 0; // consecutive connections that ended by malformed frames
  #refreshed = false; // a token was refreshed because of 4100, and nothing was accepted since
  #ended = null;
  #rollover;
  #learnable;
  #refuses;
  /** @type {BestServer | null} */
  #best = null;
  #usable;
  #measuring = false;
  /** @type {number | null} what the timer is set to */
  #measureAt = null;
  /** @type {{url: string, reason: string} | null} connected, and to be gone on at once all is answered */
  #prepared = null;
  #held = false; // going back to the preferred replica: no request is sent any more
  /** @type {number | null} the domain has answered `unavailable` since then, and nothing else */
  #troubledAt = null;
  #now = 0;
  #out = [];

  /** @param {Wiring & Tuning} settings */
  constructor({
    random,
    refreshable,
    urls = ["ws://domain/ws"],
    refused = new Map(),
    now = 0,
    learnable = () => [],
    refuses = (_target, _url, error) => error,
    usable = null,
    ...tuning
  }) {
    this.#random = random;
    this.#rollover = new Rollover(urls, random, tuning, refused, now);
    this.#learnable = learnable;
    this.#refuses = refuses;
    this.#refreshable = refreshable;
    this.#options = { ...DEFAULTS, ...tuning };
    this.#usable = (named) => (usable?.(named) ?? []).filter((url) => !refused.has(url));
    if (usable) this.#best = new BestServer(this.#rollover.current, random, this.#options);
  }

  /** Process `input`; return the outputs, to be carried out in order. */
  handle(input, now) {
    this.#now = now;
    this.#out = [];
    this[`_${input.kind}`](input);
    this.#armMeasuring();
    return this.#out;
  }

  // ---- inputs of the program ----

  /** Return why it has ended; null if it has not. */
  get ended() {
    return this.#ended;
  }

  /** {key, rp, from} or {key, subscription}: `from` is now, earliest, last or a cursor; a durable one keeps its own. */
  _subscribe({ key, rp = null, subscription = null, from = null }) {
    this._adopt({
      key,
      wanted: {
        rp,
        subscription,
        from,
        target: targetOf({ rp, subscription }),
        cursor: null,
        repeats: null,
        epoch: null,
        offset: 0, // the place of the last delivered event; epoch null: none known yet
        gapDue: false, // the domain stated `recovered: false`, and its gap has not arrived yet
        placeIsTheirs: false, // that gap replaces the position here, even backwards
        canonical: null,
        state: "",
        paused: false,
      },
    });
  }

  /** {key, wanted}: take over a subscription, at its position, from a session whose replica refuses it. */
  _adopt({ key, wanted: before }) {
    const wanted = { ...before, key, canonical: null, wireId: null, attempt: 0, dueAt: 0 };
    if (this.#ended) {
      this.#emitState(wanted, "ended", { error: this.#ended });
      return;
    }
    this.#subscriptions.set(key, wanted);
    if (wanted.paused) return;
    this.#emitState(wanted, this.#phase === "waiting" ? "reconnecting" : "connecting");
    if (this.#phase === "open") this.#sendSubscribe(wanted);
    else if (this.#phase === "idle") this.#connect();
  }

  _unsubscribe({ key }) {
    const subscription = this.#subscriptions.get(key);
    if (!subscription) return;
    this.#detach(subscription);
    this.#endSubscription(subscription, null);
  }

  /** Stop the flow but keep the position; nothing is queued for a paused subscription, here or at the domain. */
  _pause({ key }) {
    const subscription = this.#subscriptions.get(key);
    if (!subscription || subscription.paused) return;
    subscription.paused = true;
    this.#detach(subscription);
    this.#emitState(subscription, "paused");
  }

  _resume({ key }) {
    const subscription = this.#subscriptions.get(key);
    if (!subscription?.paused) return;
    subscription.paused = false;
    this.#emitState(subscription, this.#phase === "waiting" ? "reconnecting" : "connecting");
    if (this.#phase === "open") this.#sendSubscribe(subscription);
  }

  /** {key, frame}: a frame that wants an answer, without its id. */
  _request({ key, frame }) {
    if (this.#ended) {
      this.#push({ kind: "failed", key, error: this.#ended });
      return;
    }
    if (this.#requests.size >= this.#options.requestsMax) {
      const detail = `${this.#options.requestsMax} requests are unanswered. Wait for some answers before sending more.`;
      this.#push({ kind: "failed", key, error: new Problem({ type: "urn:herald:problem:client-queue-full", detail }) });
      return;
    }
    const request = { key, frame, target: targetOf(frame), wireId: null, attempt: 0, dueAt: 0 };
    this.#requests.set(key, request);
    if (this.#phase === "open") this.#sendRequest(request);
    else if (this.#phase === "idle") this.#connect();
  }

  /** Discard a request; whether it took effect stays unknown. */
  _abandon({ key }) {
    const request = this.#requests.get(key);
    if (!request) return;
    this.#requests.delete(key);
    this.#wire.delete(request.wireId);
  }

  /** End the delay of reconnection: the network is available again. */
  _online() {
    if (this.#phase === "waiting") this.#connect();
    else if (this.#phase === "open") this.#ask();
  }

  _close() {
    if (this.#ended) return;
    if (this.#phase === "open" || this.#phase === "connecting") this.#push({ kind: "disconnect", code: 1000 });
    this.#end(new ClientClosed(), true);
  }

  // ---- inputs of the connection ----

  _opened() {
    if (this.#phase === "connecting") this.#begin();
  }

  #begin() {
    this.#phase = "open";
    this.#best?.arrived(this.#rollover.current, this.#now);
    this.#heardAt = this.#now;
    this.#pingAt = null;
    this.#closing = null;
    this.#held = false;
    this.#troubledAt = null;
    const move = this.#rollover.opened(this.#now);
    if (move) this.#push({ kind: "moved", move });
    this.#armProbe();
    this.#timer("connect", null);
    this.#timer("silence", this.#options.silenceMs);
    this.#push({ kind: "state", key: null, state: "live", detail: {} });
    for (const subscription of this.#subscriptions.values()) {
      if (!subscription.paused) this.#sendSubscribe(subscription);
    }
    for (const request of this.#requests.values()) this.#sendRequest(request);
  }

  /** {code, reason}: the socket closed, or never opened. */
  _closed({ code, reason }) {
    this.#lost(code, reason);
  }

  /** {error, terminal}: no token was available. */
  _refused({ error, terminal }) {
    if (this.#phase !== "connecting") return;
    if (terminal) this.#refusedByReplica(1006, error);
    else this.#lost(1006, error.message);
  }

  _timer({ name }) {
    if (name === "reconnect" && this.#phase === "waiting") this.#connect();
    else if (name === "connect" && this.#phase === "connecting") this.#drop("The domain did not answer in time.");
    else if (name === "silence" && this.#phase === "open") this.#checkSilence();
    else if (name === "retry" && this.#phase === "open") this.#sendDue();
    else if (name === "probe" && this.#phase === "open") this.#push({ kind: "probe", url: this.#rollover.preferred });
    else if (name === "return" && this.#held) this.#leave();
    else if (name === "measure" && this.#phase === "open" && !this.#measuring) this.#measure();
  }

  /** {delays}: URL -> round-trip time in milliseconds, null without an answer. */
  _measured({ delays }) {
    if (!this.#measuring || !this.#best) return;
    this.#measuring = false;
    this.#best.measured(delays, this.#now);
    const { go } = this.#best;
    if (!go) return;
    const hops = this.#best.hops(this.#now) + (go.reason === ASKS ? 1 : 0);
    this.#push({ kind: "prepare", url: go.url, hops });
  }

  /** {url}: a connection to the better server is open. */
  _prepared({ url }) {
    const go = this.#best?.go;
    if (!go || go.url !== url || this.#held) {
      if (go?.url === url) this.#best?.failed(url, this.#now);
      this.#push({ kind: "unprepare" });
      return;
    }
    this.#prepared = go;
    this.#held = true;
    this.#timer("return", RETURN_MS);
    this.#returnWhenAnswered();
  }

  /** {url}: no connection to the better server could be opened, or it was lost again. */
  _unprepared({ url }) {
    if (this.#best?.go?.url !== url) return;
    this.#best?.failed(url, this.#now);
    if (!this.#prepared) return;
    this.#prepared = null;
    this.#held = false;
    this.#timer("return", null);
    const unsent = [...this.#requests.values()].filter(({ wireId, dueAt }) => wireId === null && !dueAt);
    for (const request of unsent) this.#sendRequest(request);
  }

  /** {good}: whether the preferred replica stated that it is ready. */
  _probed({ good }) {
    if (this.#phase !== "open" || this.#rollover.probeAt === null || this.#held) return;
    if (this.#rollover.probed(good, this.#now)) {
      this.#held = true;
      this.#timer("return", RETURN_MS);
      this.#returnWhenAnswered();
    } else {
      this.#armProbe();
    }
  }

  /** {urls}: replicas that a domain named. */
  _learned({ urls }) {
    this.#rollover.learn(this.#learnable(urls));
  }

  _frame({ text }) {
    if (this.#phase !== "open") return;
    this.#heardAt = this.#now;
    this.#pingAt = null;
    try {
      this.#read(JSON.parse(text));
    } catch (error) {
      if (!(error instanceof Malformed || error instanceof SyntaxError)) throw error;
      this.#notUnderstood();
    }
  }

  #read(frame) {
    if (!isObject(frame) || !("op" in frame)) throw new Malformed("op");
    if (frame.op === "event") this.#onEvent(frame);
    else if (frame.op === "ok") this.#onOk(frame);
    else if (frame.op === "gap") this.#onGap(frame);
    else if (frame.op === "error") this.#onError(frame);
    else if (frame.op === "covered") this.#onCovered(frame);
    else if (frame.op === "continued") this.#onContinued(frame);
    else if (frame.op === "redirect") this.#onRedirect(frame);
    else if (frame.op === "alternatives") {
      this.#best?.named(textOf(frame, "rp"), this.#usable(urlsOf(frame)), this.#now);
    } else if (frame.op === "closing") this.#closing = frame;
    // Unknown operations are for newer clients.
  }

  // ---- frames ----

  #onRedirect(frame) {
    if (!("to" in frame)) throw new Malformed("to");
    this._learned({ urls: frame.to });
    const { hops, valid_s: validS } = frame;
    if (!this.#best || !Number.isSafeInteger(hops) || !Number.isFinite(validS)) return;
    this.#best.redirected(this.#usable(frame.to), hops, Math.min(validS * 1000, VALID_MAX_MS), this.#now);
  }

  #armMeasuring() {
    const at = this.#phase === "open" && !this.#measuring ? (this.#best?.measureAt ?? null) : null;
    if (at === this.#measureAt) return;
    this.#measureAt = at;
    this.#timer("measure", at === null ? null : Math.max(0, at - this.#now));
  }

  #measure() {
    this.#measureAt = null;
    const at = this.#best?.measureAt ?? null;
    if (!this.#best || at === null || at > this.#now) return;
    const urls = this.#best.measures(this.#now);
    this.#measuring = urls.length > 0;
    if (this.#measuring) this.#push({ kind: "measure", urls });
  }

  #onEvent(frame) {
    const rp = textOf(frame, "rp");
    const subscription = this.#byRp.get(rp);
    if (!subscription) return;
    const epoch = textOf(frame, "epoch");
    const offset = numberOf(frame, "offset");
    const cursor = cursorOf(frame, epoch, offset);
    const { event } = frame;
    if (!isObject(event)) throw new Malformed("event");
    const ours = epoch === subscription.epoch && !subscription.placeIsTheirs;
    if (ours && offset <= subscription.offset) return;
    const following = ours ? subscription.offset + 1 : 1;
    if (subscription.gapDue || epoch !== subscription.epoch || offset > following) {
      this.#pushGap(subscription, epoch, following, offset - 1, `${epoch}:${offset - 1}`);
    }
    subscription.epoch = epoch;
    subscription.offset = offset;
    subscription.cursor = cursor;
    if (cursor.includes("~")) {
      subscription.repeats ??= new Repeats();
      if (subscription.repeats.repeated(cursor, event)) return;
    }
    this.#drops = 0;
    this.#push({ kind: "event", key: subscription.key, delivery: { rp, epoch, offset, cursor, event } });
  }

  #onGap(frame) {
    const subscription = this.#byRp.get(textOf(frame, "rp"));
    if (!subscription) return;
    const epoch = textOf(frame, "epoch");
    const [from, to] = [numberOf(frame, "from"), numberOf(frame, "to")];
    const cursor = cursorOf(frame, epoch, to);
    const { feeds } = frame;
    const ours = epoch === subscription.epoch && !subscription.placeIsTheirs;
    if (subscription.subscription === null || !ours || feeds !== undefined) {
      this.#pushGap(subscription, epoch, from, to, cursor, feedsOf(feeds), rewoundOf(frame.rewound));
      return;
    }
    // The domain continues after what was acknowledged, this session after what was delivered: that part is not missing.
    const start = Math.max(from, subscription.offset + 1);
    if (start <= to) this.#pushGap(subscription, epoch, start, to, cursor);
    else subscription.gapDue = false;
  }

  /** Skip offsets whose events the reader already has, according to its cursor from another replica. */
  #onCovered(frame) {
    const subscription = this.#byRp.get(textOf(frame, "rp"));
    if (!subscription) return;
    const [epoch, to, cursor] = [textOf(frame, "epoch"), numberOf(frame, "to"), textOf(frame, "cursor")];
    if (subscription.epoch === epoch && to > subscription.offset) this.#stand(subscription, epoch, to, cursor);
  }

  /** Go on in an epoch that continues the subscription's: nothing is missing. */
  #onContinued(frame) {
    const subscription = this.#byRp.get(textOf(frame, "rp"));
    if (!subscription) return;
    const [epoch, offset] = [textOf(frame, "epoch"), numberOf(frame, "offset")];
    if (!isObject(frame.previous)) throw new Malformed("previous");
    const [ended, end] = [textOf(frame.previous, "epoch"), numberOf(frame.previous, "to")];
    // Otherwise the next event shows what is missing.
    if (ended !== subscription.epoch || subscription.offset > end || subscription.gapDue) return;
    if (offset === subscription.offset) this.#stand(subscription, epoch, offset, cursorOf(frame, epoch, offset));
    else subscription.epoch = epoch; // the older cursor remains as good
  }

  #stand(subscription, epoch, offset, cursor) {
    subscription.epoch = epoch;
    subscription.offset = offset;
    subscription.cursor = cursor;
    if (cursor.includes("~")) subscription.repeats ??= new Repeats();
    subscription.repeats?.stand(cursor);
  }

  /**
   * Set the position after the gap, even if that is before the present one: a log may have lost its end.
   *
   * @param {{epoch: string, from: number, to: number} | null} [rewound]
   */
  #pushGap(subscription, epoch, from, to, cursor, feeds = {}, rewound = null) {
    const previousEpoch = subscription.epoch === epoch ? null : subscription.epoch;
    subscription.gapDue = subscription.placeIsTheirs = false;
    this.#stand(subscription, epoch, to, cursor);
    const gap = { rp: subscription.canonical, epoch, from, to, previousEpoch, cursor: subscription.cursor, feeds };
    if (rewound) gap.rewound = rewound;
    this.#drops = 0;
    this.#push({ kind: "gap", key: subscription.key, gap });
  }

  #onOk(frame) {
    if (!("id" in frame)) throw new Malformed("id");
    this.#troubledAt = null;
    const entry = this.#wire.get(frame.id);
    if (!entry) return;
    this.#wire.delete(frame.id);
    if (entry.subscription) {
      this.#onSubscribed(entry.subscription, frame);
      return;
    }
    this.#refreshed = false;
    if (entry.request) {
      this.#drops = 0;
      this.#requests.delete(entry.request.key);
      const { op: _op, id: _id, ...answer } = frame;
      this.#push({ kind: "settled", key: entry.request.key, answer });
      this.#returnWhenAnswered();
    }
  }

  #onSubscribed(subscription, frame) {
    const rp = textOf(frame, "rp");
    const epoch = textOf(frame, "epoch");
    const offset = numberOf(frame, "offset");
    const place = cursorOf(frame, epoch, offset);
    if (this.#byRp.has(rp)) {
      const detail = "The domain let one connection read a rendezvous point twice.";
      this.#endSubscription(subscription, new Problem({ type: "urn:herald:problem:conflict", detail }));
      throw new Malformed("rp");
    }
    this.#refreshed = false;
    subscription.canonical = rp;
    subscription.attempt = 0;
    this.#byRp.set(rp, subscription);
    const first = subscription.epoch === null;
    subscription.gapDue = frame.recovered === false;
    // The domain's position (of a durable subscription) may lie behind this session's, which then prevails.
    subscription.placeIsTheirs = subscription.gapDue && (first || subscription.subscription === null);
    // The first answer sets the position; later the own one is as good, and a gap frame states where it is not. Another
    // epoch and nothing lost: another replica, which translated the cursor into a place of its own log.
    const ahead = epoch !== subscription.epoch || (subscription.subscription === null && offset >= subscription.offset);
    if (first || (ahead && !subscription.gapDue)) this.#stand(subscription, epoch, offset, place);
    const cursor = subscription.gapDue ? null : subscription.cursor; // that gap has the position
    if (cursor?.includes("~")) this.#push({ kind: "learn", rp, url: this.#rollover.current });
    this.#best?.named(subscription.key, "alternatives" in frame ? this.#usable(urlsOf(frame)) : [], this.#now);
    this.#emitState(subscription, "live", { recovered: !subscription.gapDue, cursor });
  }

  #onError(frame) {
    const error = new Problem(frame);
    const entry = this.#wire.get(frame.id);
    this.#wire.delete(frame.id);
    if (entry?.request) {
      if (error.passing) {
        this.#retryLater(entry.request, error);
        return;
      }
      const end = this.#elsewhere(entry.request, error);
      if (end) {
        this.#requests.delete(entry.request.key);
        this.#push({ kind: "failed", key: entry.request.key, error: end });
      }
      this.#returnWhenAnswered();
    } else if (entry?.subscription) {
      if (error.passing) {
        this.#subscribeLater(entry.subscription, error);
      } else {
        this.#refusedHere(entry.subscription, error);
      }
    } else {
      this.#onReadingEnded(frame, error);
    }
  }

  /**
   * Process an error for a subscribe that was answered long ago, or without an id: the reading has ended, for that
   * reason.
   */
  #onReadingEnded({ id = null, rp }, error) {
    const live = id === null ? this.#byRp.get(rp) : [...this.#byRp.values()].find(({ wireId }) => wireId === id);
    if (!live) return;
    if (error.passing) {
      this.#byRp.delete(live.canonical);
      this.#subscribeLater(live, error);
    } else {
      this.#refusedHere(live, error);
    }
  }

  #refusedHere(subscription, error) {
    const end = this.#elsewhere(subscription, error);
    if (end) this.#endSubscription(subscription, explained(end, subscription.from));
  }

  // ---- other replicas ----

  /**
   * Return the error with which `item` ends, which this replica refuses for good. Null: another replica may not, and
   * the item has left the session, a request with all others about the same target, so that their order is kept.
   */
  #elsewhere(item, error) {
    const many = this.#rollover.many;
    if (!(error.code === "moved" || (many && HERE_ONLY.has(error.code)))) return error;
    const { target } = item;
    const end = this.#refuses(target, this.#rollover.current, error);
    if (end) return end;
    if (!("frame" in item)) {
      this.#subscriptions.delete(item.key);
      this.#best?.forget(item.key);
      if (this.#byRp.get(item.canonical) === item) this.#byRp.delete(item.canonical);
      this.#push({ kind: "elsewhere", key: item.key, target, wanted: item });
      return null;
    }
    for (const request of [...this.#requests.values()].filter((one) => one.target === target)) {
      this.#requests.delete(request.key);
      this.#wire.delete(request.wireId);
      this.#push({ kind: "elsewhere", key: request.key, target, frame: request.frame });
    }
    return null;
  }

  #armProbe() {
    const at = this.#rollover.probeAt;
    this.#timer("probe", at === null ? null : Math.max(0, at - this.#now));
  }

  #returnWhenAnswered() {
    if (this.#held && ![...this.#requests.values()].some(({ wireId }) => wireId !== null)) this.#leave();
  }

  #leave() {
    if (this.#prepared) this.#switch(this.#prepared);
    else this.#goBack();
  }

  /** Go on at the better server, whose connection is open. */
  #switch({ url, reason }) {
    this.#prepared = null;
    this.#forgetWire();
    for (const name of ["silence", "retry", "probe", "return"]) this.#timer(name, null);
    this.#rollover.chosen(url, this.#now, reason);
    this.#rollover.dialled(url);
    this.#refreshed = false;
    this.#push({ kind: "switch" });
    this.#begin();
  }

  #goBack() {
    this.#held = false;
    this.#push({ kind: "disconnect", code: 1000 });
    this.#rollover.returning(this.#now);
    this.#wait({ code: 1000, reason: "The preferred domain answers again.", retryInMs: 0 });
  }

  // ---- sending ----

  #send(frame) {
    this.#push({ kind: "send", text: JSON.stringify(frame) });
  }

  #sendSubscribe(subscription) {
    const id = ++this.#id;
    subscription.wireId = id;
    subscription.dueAt = 0;
    this.#wire.set(id, { subscription });
    const target =
      subscription.subscription === null ? { rp: subscription.rp } : { subscription: subscription.subscription };
    const from = this.#resumeFrom(subscription);
    this.#send({ op: "subscribe", id, ...target, ...(from === null ? {} : { from }) });
  }

  /** A durable subscription's position is kept by the domain, but another replica may not know it. */
  #resumeFrom({ subscription, cursor, from }) {
    if (subscription === null) return cursor ?? from;
    return cursor?.includes("~") ? cursor : null;
  }

  #sendRequest(request) {
    request.dueAt = 0;
    if (this.#held) return; // it is sent when the next connection is open
    const id = ++this.#id;
    request.wireId = id;
    this.#wire.set(id, { request });
    const { op, ...members } = request.frame;
    this.#send({ op, id, ...members });
  }

  #detach(subscription) {
    const asked = subscription.wireId !== null;
    this.#wire.delete(subscription.wireId);
    if (this.#byRp.get(subscription.canonical) === subscription) this.#byRp.delete(subscription.canonical);
    subscription.wireId = null;
    subscription.dueAt = 0;
    if (this.#phase !== "open" || !asked) return;
    const target =
      subscription.subscription === null
        ? { rp: subscription.canonical ?? subscription.rp }
        : { subscription: subscription.subscription };
    this.#send({ op: "unsubscribe", id: ++this.#id, ...target });
  }

  // ---- trying again ----

  #subscribeLater(subscription, error) {
    const retryInMs = this.#retryLater(subscription, error);
    if (retryInMs !== null) this.#emitState(subscription, "reconnecting", { reason: error.message, retryInMs });
  }

  /** Send `item` again after a delay of its own; return the delay. Null: the domain is left instead. */
  #retryLater(item, { retryAfterS, code }) {
    const asked = Math.min(retryAfterS ?? 0, RETRY_AFTER_S_MAX) * 1000;
    const delay = asked + backoffMs(item.attempt++, this.#random(), this.#options);
    if (code === "unavailable" && this.#leftInTrouble()) return null;
    item.wireId = null;
    item.dueAt = this.#now + Math.max(delay, 1);
    this.#armRetry();
    return delay;
  }

  /**
   * Leave a domain that has answered nothing but `unavailable` for a while, if there is another; return whether it was
   * left.
   */
  #leftInTrouble() {
    this.#troubledAt ??= this.#now;
    if (!this.#rollover.many || this.#now - this.#troubledAt < TROUBLED_MS) return false;
    this.#drop("The domain is not available.", "is not available");
    return true;
  }

  #waiting() {
    return [...this.#subscriptions.values(), ...this.#requests.values()].filter((item) => item.dueAt > 0);
  }

  #armRetry() {
    const due = Math.min(...this.#waiting().map((item) => item.dueAt));
    this.#timer("retry", Number.isFinite(due) ? Math.max(0, due - this.#now) : null);
  }

  #sendDue() {
    for (const item of this.#waiting()) {
      if (item.dueAt > this.#now) continue;
      if ("frame" in item) this.#sendRequest(item);
      else this.#sendSubscribe(item);
    }
    this.#armRetry();
  }

  // ---- the connection ----

  #connect() {
    this.#phase = "connecting";
    this.#timer("reconnect", null);
    this.#timer("connect", this.#options.connectMs);
    this.#push({ kind: "state", key: null, state: this.#attempt ? "reconnecting" : "connecting", detail: {} });
    const { url } = this.#rollover.next(this.#now);
    if (url !== this.#rollover.current) this.#refreshed = false;
    this.#rollover.dialled(url);
    this.#push({ kind: "connect", url, hops: this.#best?.hops(this.#now) ?? null });
  }

  #ask() {
    if (this.#pingAt !== null) return;
    const id = ++this.#id;
    this.#wire.set(id, { ping: true });
    this.#pingAt = this.#now;
    this.#send({ op: "ping", id });
    this.#timer("silence", this.#options.pongMs);
  }

  #checkSilence() {
    const { silenceMs, pongMs } = this.#options;
    if (this.#pingAt !== null) {
      if (this.#now - this.#pingAt >= pongMs) this.#drop("The domain fell silent.");
      else this.#timer("silence", this.#pingAt + pongMs - this.#now);
    } else if (this.#now - this.#heardAt >= silenceMs) {
      this.#ask();
    } else {
      this.#timer("silence", this.#heardAt + silenceMs - this.#now);
    }
  }

  /** Close the socket here and treat it as lost. `about`: the reason to report for a move to another domain. */
  /**
   * @param {string} reason
   * @param {string} [about] the reason to report; by default after the close code
   */
  #drop(reason, about) {
    this.#push({ kind: "disconnect", code: 4001 });
    this.#lost(1006, reason, about);
  }

  #notUnderstood() {
    const detail = "The domain sent a frame that is not understood.";
    if (++this.#drops < DROPS_MAX) {
      this.#drop(detail, "does not work");
      return;
    }
    this.#drops = 0;
    this.#push({ kind: "disconnect", code: 4001 });
    this.#refusedByReplica(1006, new Problem({ title: "Not an answer of a Herald domain", detail }));
  }

  #lost(code, reason, about = RESTARTING.has(code) ? "is restarting" : "does not answer") {
    if (this.#phase !== "open" && this.#phase !== "connecting") return;
    const closing = this.#phase === "open" ? this.#closing : null;
    const why = reason || (typeof closing?.reason === "string" ? closing.reason : "");
    const final = isTerminal(code) && !(CLOSE_OF_ONE.has(code) && this.#subscriptions.size > 1);
    const refresh = code === CLOSE_TOKEN_EXPIRED && this.#refreshable && !this.#refreshed;
    if (refresh) this.#refreshed = true;
    else if (typeof closing?.retry === "boolean" ? !closing.retry : final) {
      this.#refusedByReplica(code, new Closed(code, why));
      return;
    }
    if (refresh) this.#rollover.again(this.#now);
    else this.#rollover.failed(this.#now, about, retryAfterMs(closing?.retry_after_ms));
    if (!refresh) this.#attempt++;
    this.#wait({ code, reason: why, retryInMs: refresh ? 0 : this.#rollover.next(this.#now).delayMs });
  }

  /** Record that this replica refuses: the others are asked, and if all refuse, the connection ends. */
  #refusedByReplica(code, error) {
    this.#rollover.refuses(error, this.#now);
    const verdict = this.#rollover.verdict();
    if (verdict) this.#end(verdict, false);
    else this.#wait({ code, reason: error.message, retryInMs: this.#rollover.next(this.#now).delayMs });
  }

  #wait(detail) {
    this.#forgetWire();
    this.#phase = "waiting";
    this.#abandonPrepared();
    for (const name of ["connect", "silence", "retry", "probe", "return"]) this.#timer(name, null);
    this.#timer("reconnect", detail.retryInMs);
    this.#push({ kind: "state", key: null, state: "reconnecting", detail });
    for (const subscription of this.#subscriptions.values()) {
      if (!subscription.paused) this.#emitState(subscription, "reconnecting", detail);
    }
  }

  #forgetWire() {
    this.#wire.clear();
    this.#byRp.clear();
    for (const item of [...this.#subscriptions.values(), ...this.#requests.values()]) {
      item.wireId = null;
      item.dueAt = 0;
    }
  }

  /** The present connection is lost: the next one is chosen as after every loss. */
  #abandonPrepared() {
    if (this.#best?.go) {
      this.#best.failed(this.#best.go.url, this.#now);
      this.#push({ kind: "unprepare" });
    }
    this.#prepared = null;
    this.#measuring = false;
  }

  #end(error, asked) {
    this.#phase = "ended";
    this.#abandonPrepared();
    this.#ended = error;
    for (const name of ["connect", "reconnect", "silence", "retry", "probe", "return"]) this.#timer(name, null);
    for (const key of this.#requests.keys()) this.#push({ kind: "failed", key, error });
    for (const subscription of [...this.#subscriptions.values()]) {
      this.#endSubscription(subscription, asked ? null : error);
    }
    this.#requests.clear();
    this.#wire.clear();
    this.#push({ kind: "state", key: null, state: "ended", detail: asked ? {} : { error } });
  }

  #endSubscription(subscription, error) {
    this.#subscriptions.delete(subscription.key);
    this.#best?.forget(subscription.key);
    if (this.#byRp.get(subscription.canonical) === subscription) this.#byRp.delete(subscription.canonical);
    this.#emitState(subscription, "ended", error ? { error } : {});
  }

  // ---- outputs ----

  #push(output) {
    this.#out.push(output);
  }

  #timer(name, ms) {
    this.#push({ kind: "timer", name, ms });
  }

  #emitState(subscription, state, detail = {}) {
    subscription.state = state;
    this.#push({ kind: "state", key: subscription.key, state, detail });
  }
}
