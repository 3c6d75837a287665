/**
 * The session: what the client does on one logical connection, without any input or output of its own.
 *
 * `handle(input, now)` takes something that happened and the time in milliseconds, and gives back what to do, in order.
 * No clock, socket, timer or random source is touched here (randomness is passed in), so every path is tested by plain
 * calls. herald.js carries the outputs out.
 *
 * Life of a connection:   idle -> connecting -> open -> waiting -> connecting ...      any -> ended
 * Life of a subscription: connecting -> live -> reconnecting -> live ...  live <-> paused     any -> ended
 *
 * Laws:
 *  1. A subscription resumes after the last event it delivered; an event is never delivered twice.
 *  2. What was lost is said: every hole in the offsets, and every change of epoch, is a gap before the next event.
 *  3. A request is sent again, unchanged and in order, after each reconnection until it is answered.
 *  4. Late, repeated and unknown timers and frames are harmless.
 */

import { CLOSE_TOKEN_EXPIRED, ClientClosed, Closed, Problem, isTerminal } from "./errors.js";

/** Bounds and times, in milliseconds unless named otherwise. All can be given to the constructor. */
export const DEFAULTS = Object.freeze({
  backoffMinMs: 500, // the first delay is between 0 and this, then it doubles: full jitter
  backoffMaxMs: 30_000,
  stableMs: 5_000, // a connection that lived this long starts the backoff anew
  connectMs: 15_000, // token and handshake must be done by then
  silenceMs: 25_000, // after this much silence we ask whether the domain is there (its own heartbeat is as long)
  pongMs: 10_000, // and give it this long to say anything
  requestsMax: 1_000, // unanswered requests; more are refused at once, so that a long outage cannot fill the memory
});

const RETRY_AFTER_S_MAX = 300; // a domain that asks for more is asked again by then; guess

/**
 * Full jitter: a delay between 0 and the doubled and capped bound.
 * @param {number} attempt attempts that failed before this one
 * @param {number} random in [0, 1)
 */
export function backoffMs(attempt, random, { backoffMinMs, backoffMaxMs } = DEFAULTS) {
  return Math.round(random * Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(attempt, 30)));
}

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
  #openedAt = 0;
  #heardAt = 0;
  #pingAt = null;
  #closing = null; // the server's `closing` frame
  #refreshed = false; // a token was refreshed because of 4100, and nothing was accepted since
  #ended = null;
  #now = 0;
  #out = [];

  /**
   * @param {object} settings
   * @param {() => number} settings.random a number in [0, 1)
   * @param {boolean} settings.refreshable whether a fresh token can be had, so that an expired one is no end
   */
  constructor({ random, refreshable, ...tuning }) {
    this.#random = random;
    this.#refreshable = refreshable;
    this.#options = { ...DEFAULTS, ...tuning };
  }

  /** Take `input`; give back the outputs, to be carried out in order. */
  handle(input, now) {
    this.#now = now;
    this.#out = [];
    this[`_${input.kind}`](input);
    return this.#out;
  }

  // ---- what the program wants ----

  /** {key, rp, from} or {key, subscription}: `from` is now, earliest, last or a cursor; a durable one keeps its own. */
  _subscribe({ key, rp = null, subscription = null, from = null }) {
    const wanted = {
      key, rp, subscription, from,
      epoch: null, offset: 0, // the place of the last event delivered; epoch null: none known yet
      canonical: null, state: "", wireId: null, attempt: 0, dueAt: 0, paused: false,
    };
    if (this.#ended) {
      this.#emitState(wanted, "ended", { error: this.#ended });
      return;
    }
    this.#subscriptions.set(key, wanted);
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

  /** Stop the flow but keep the place; nothing is held for a paused subscription, here or there. */
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
      const detail = `${this.#options.requestsMax} requests are unanswered; wait for some answers before sending more.`;
      this.#push({ kind: "failed", key, error: new Problem({ type: "urn:herald:problem:client-queue-full", detail }) });
      return;
    }
    const request = { key, frame, wireId: null, attempt: 0, dueAt: 0 };
    this.#requests.set(key, request);
    if (this.#phase === "open") this.#sendRequest(request);
    else if (this.#phase === "idle") this.#connect();
  }

  /** Forget a request; whether it took effect stays unknown. */
  _abandon({ key }) {
    const request = this.#requests.get(key);
    if (!request) return;
    this.#requests.delete(key);
    this.#wire.delete(request.wireId);
  }

  /** The network came back: do not wait out the delay. */
  _online() {
    if (this.#phase === "waiting") this.#connect();
    else if (this.#phase === "open") this.#ask();
  }

  _close() {
    if (this.#ended) return;
    if (this.#phase === "open" || this.#phase === "connecting") this.#push({ kind: "disconnect", code: 1000 });
    this.#end(new ClientClosed(), true);
  }

  // ---- what the connection did ----

  _opened() {
    if (this.#phase !== "connecting") return;
    this.#phase = "open";
    this.#openedAt = this.#heardAt = this.#now;
    this.#pingAt = null;
    this.#closing = null;
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

  /** {error, terminal}: no token could be had. */
  _refused({ error, terminal }) {
    if (this.#phase !== "connecting") return;
    if (terminal) this.#end(error, false);
    else this.#lost(1006, error.message);
  }

  _timer({ name }) {
    if (name === "reconnect" && this.#phase === "waiting") this.#connect();
    else if (name === "connect" && this.#phase === "connecting") this.#drop("The domain did not answer in time.");
    else if (name === "silence" && this.#phase === "open") this.#checkSilence();
    else if (name === "retry" && this.#phase === "open") this.#sendDue();
  }

  _frame({ text }) {
    if (this.#phase !== "open") return;
    this.#heardAt = this.#now;
    this.#pingAt = null;
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      this.#drop("The domain sent something that is not JSON.");
      return;
    }
    if (typeof frame !== "object" || frame === null) this.#drop("The domain sent something that is not a frame.");
    else if (frame.op === "event") this.#onEvent(frame);
    else if (frame.op === "ok") this.#onOk(frame);
    else if (frame.op === "gap") this.#onGap(frame);
    else if (frame.op === "error") this.#onError(frame);
    else if (frame.op === "closing") this.#closing = frame;
    // Unknown operations are for newer clients.
  }

  // ---- frames ----

  #onEvent({ rp, epoch, offset, event }) {
    const subscription = this.#byRp.get(rp);
    if (!subscription) return;
    if (epoch !== subscription.epoch) {
      this.#pushGap(subscription, epoch, 1, offset - 1);
    } else if (offset <= subscription.offset) {
      return;
    } else if (offset > subscription.offset + 1) {
      this.#pushGap(subscription, epoch, subscription.offset + 1, offset - 1);
    }
    subscription.epoch = epoch;
    subscription.offset = offset;
    const delivery = { rp, epoch, offset, cursor: `${epoch}:${offset}`, event };
    this.#push({ kind: "event", key: subscription.key, delivery });
  }

  #onGap({ rp, epoch, from, to }) {
    const subscription = this.#byRp.get(rp);
    if (subscription) this.#pushGap(subscription, epoch ?? subscription.epoch, from, to);
  }

  /** The reader's place is after the gap, even if that is before where it stood: a log may have lost its end. */
  #pushGap(subscription, epoch, from, to) {
    const previousEpoch = subscription.epoch === epoch ? null : subscription.epoch;
    subscription.epoch = epoch;
    subscription.offset = to;
    const gap = { rp: subscription.canonical, epoch, from, to, previousEpoch, cursor: `${epoch}:${to}` };
    this.#push({ kind: "gap", key: subscription.key, gap });
  }

  #onOk(frame) {
    const entry = this.#wire.get(frame.id);
    if (!entry) return;
    this.#wire.delete(frame.id);
    this.#refreshed = false;
    if (entry.request) {
      this.#requests.delete(entry.request.key);
      const { op: _op, id: _id, ...answer } = frame;
      this.#push({ kind: "settled", key: entry.request.key, answer });
    } else if (entry.subscription) {
      this.#onSubscribed(entry.subscription, frame);
    }
  }

  #onSubscribed(subscription, { rp, epoch, offset, recovered }) {
    subscription.canonical = rp;
    subscription.attempt = 0;
    this.#byRp.set(rp, subscription);
    if (subscription.epoch === null) {
      // The first time the answer is our place; later our own is as good, and a gap frame says where it is not.
      subscription.epoch = epoch;
      subscription.offset = offset;
    }
    const cursor = `${subscription.epoch}:${subscription.offset}`;
    this.#emitState(subscription, "live", { recovered: recovered !== false, cursor });
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
      this.#requests.delete(entry.request.key);
      this.#push({ kind: "failed", key: entry.request.key, error });
    } else if (entry?.subscription) {
      if (error.passing) {
        const retryInMs = this.#retryLater(entry.subscription, error);
        this.#emitState(entry.subscription, "reconnecting", { reason: error.message, retryInMs });
      } else {
        this.#endSubscription(entry.subscription, error);
      }
    } else {
      this.#onReadingEnded(frame, error);
    }
  }

  /** An error for a subscribe that was answered long ago: the reading has ended, and the error says why. */
  #onReadingEnded(frame, error) {
    const live = [...this.#byRp.values()].find(({ wireId }) => wireId === frame.id);
    if (!live) return;
    if (error.passing) {
      this.#byRp.delete(live.canonical);
      this.#emitState(live, "reconnecting", { reason: error.message, retryInMs: this.#retryLater(live, error) });
    } else {
      this.#endSubscription(live, error);
    }
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
    const target = subscription.subscription === null ? { rp: subscription.rp } : { subscription: subscription.subscription };
    const from = subscription.epoch === null ? subscription.from : `${subscription.epoch}:${subscription.offset}`;
    this.#send({ op: "subscribe", id, ...target, ...(from === null ? {} : { from }) });
  }

  #sendRequest(request) {
    const id = ++this.#id;
    request.wireId = id;
    request.dueAt = 0;
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

  /** Send `item` again after a delay of its own; answers the delay. */
  #retryLater(item, { retryAfterS }) {
    const asked = Math.min(retryAfterS ?? 0, RETRY_AFTER_S_MAX) * 1000;
    const delay = asked + backoffMs(item.attempt++, this.#random(), this.#options);
    item.wireId = null;
    item.dueAt = this.#now + Math.max(delay, 1);
    this.#armRetry();
    return delay;
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
    this.#push({ kind: "connect" });
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

  /** Close the socket ourselves and treat it as lost. */
  #drop(reason) {
    this.#push({ kind: "disconnect", code: 4001 });
    this.#lost(1006, reason);
  }

  #lost(code, reason) {
    if (this.#phase !== "open" && this.#phase !== "connecting") return;
    if (this.#phase === "open" && this.#now - this.#openedAt >= this.#options.stableMs) this.#attempt = 0;
    const closing = this.#phase === "open" ? this.#closing : null;
    const why = reason || closing?.reason || "";
    const refresh = code === CLOSE_TOKEN_EXPIRED && this.#refreshable && !this.#refreshed;
    if (refresh) this.#refreshed = true;
    else if (closing && typeof closing.retry === "boolean" ? !closing.retry : isTerminal(code)) {
      this.#end(new Closed(code, why), false);
      return;
    }
    this.#forgetWire();
    const retryInMs = refresh ? 0 : backoffMs(this.#attempt++, this.#random(), this.#options);
    this.#phase = "waiting";
    for (const name of ["connect", "silence", "retry"]) this.#timer(name, null);
    this.#timer("reconnect", retryInMs);
    const detail = { code, reason: why, retryInMs };
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
      item.attempt = 0;
    }
  }

  #end(error, asked) {
    this.#phase = "ended";
    this.#ended = error;
    for (const name of ["connect", "reconnect", "silence", "retry"]) this.#timer(name, null);
    for (const key of this.#requests.keys()) this.#push({ kind: "failed", key, error });
    for (const subscription of [...this.#subscriptions.values()]) this.#endSubscription(subscription, asked ? null : error);
    this.#requests.clear();
    this.#wire.clear();
    this.#push({ kind: "state", key: null, state: "ended", detail: asked ? {} : { error } });
  }

  #endSubscription(subscription, error) {
    this.#subscriptions.delete(subscription.key);
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
