/**
 * Herald's client for browsers (and Node with a WebSocket): publish, subscribe, resume. No dependencies, no build.
 *
 *     import { Client } from "./herald.js";
 *     const client = new Client({ url: "https://herald.example", getToken: async () => (await fetch("/token")).text() });
 *     client.subscribe("/herald.example/weather/", { from: "earliest", onEvent: (event) => console.log(event.data) });
 *     await client.publish("/herald.example/weather/", { celsius: 21 });
 *
 * This file does the input and output only; what happens when is decided in session.js.
 */

import { CLOSE_TOKEN_EXPIRED, HeraldError } from "./errors.js";
import { randomId, toEvent } from "./events.js";
import { Session } from "./session.js";

export { ClientClosed, Closed, HeraldError, Problem } from "./errors.js";

const SUBPROTOCOL = "herald.v1";
const EVENT_TYPE = "io.herald.message";
const PROBE_MS = 5_000;
/** Events an iterating program may lag behind before the flow is stopped; it goes on, from the log, at half of it. */
const LAG_MAX = 1_000;

/** Events that a reader asked for and cannot have: trimmed from the history, or of a numbering that has ended. */
export class Gap {
  constructor({ rp, epoch, from, to, previousEpoch, cursor }) {
    this.rp = rp;
    /** The epoch that reading goes on in. */
    this.epoch = epoch;
    /** First and last missing offset of `epoch`, both inclusive; `to < from` if none of it is missing. */
    this.from = from;
    this.to = to;
    /** The epoch the reader was in, if it ended: how much of it was missed is unknown. Else null. */
    this.previousEpoch = previousEpoch;
    /** What to hold to continue behind the gap. */
    this.cursor = cursor;
  }

  /** How many events of `epoch` are known to be missing. */
  get missing() {
    return Math.max(0, this.to - this.from + 1);
  }
}

/** One connection to a domain, opened when first needed, with any number of subscriptions and publishes on it. */
export class Client {
  #url;
  #getToken;
  #Socket;
  #onState;
  #session;
  #socket = null;
  #attempt = 0; // of connecting: an answer to an older one is ignored
  #timers = new Map();
  #keys = 0;
  #subscriptions = new Map();
  #settlers = new Map();
  #defaults;
  #outputs = [];
  #draining = false;
  #online = () => this.#handle({ kind: "online" });

  /**
   * @param {object} settings see herald.d.ts
   */
  constructor({ url, token, getToken, source, onState, WebSocket: Socket, random = Math.random, ...tuning } = {}) {
    this.#url = endpoint(url ?? globalThis.location?.origin);
    this.#Socket = Socket ?? globalThis.WebSocket;
    if (!this.#Socket) throw new TypeError("There is no WebSocket here; pass one as the setting WebSocket.");
    this.#getToken = getToken ?? (async () => token);
    this.#onState = onState ?? (() => {});
    this.#defaults = { source: source ?? `/herald-js/${randomId().slice(0, 16)}`, type: EVENT_TYPE };
    this.#session = new Session({ random, refreshable: getToken !== undefined, ...tuning });
    globalThis.addEventListener?.("online", this.#online);
  }

  /** Read an RP from `from` (now, earliest, last or a cursor) on, across reconnections. See herald.d.ts. */
  subscribe(rp, options = {}) {
    return this.#add({ rp, from: options.from ?? "now" }, options);
  }

  /** Read a durable subscription from its last acknowledged event on. Acknowledge with the `ack` of what it returns. */
  attach(subscription, options = {}) {
    return this.#add({ subscription }, options);
  }

  /**
   * Publish one event; the promise is kept when the domain has stored it as durably as the RP asks. An unconfirmed
   * event is sent again after each reconnection with the same id, and stored once.
   */
  async publish(rp, dataOrEvent, { signal } = {}) {
    return this.#request({ op: "publish", rp, event: toEvent(dataOrEvent, this.#defaults) }, signal);
  }

  /** Publish many events in one frame; the answer has `results`, one for each. */
  async publishAll(rp, items, { signal } = {}) {
    const events = items.map((item) => toEvent(item, this.#defaults));
    return this.#request({ op: "publish", rp, events }, signal);
  }

  /** Renew the lease of an RP or, as {subscription}, of a durable subscription. */
  async renew(target, leaseS) {
    const whose = typeof target === "string" ? { rp: target } : { subscription: target.subscription };
    return this.#request({ op: "renew", ...whose, lease_s: leaseS });
  }

  /** End all subscriptions and the connection; unanswered publishes are rejected. */
  close() {
    globalThis.removeEventListener?.("online", this.#online);
    this.#handle({ kind: "close" });
  }

  #add(target, options) {
    const key = ++this.#keys;
    const subscription = new Subscription(options, {
      tell: (kind) => this.#handle({ kind, key }),
      ack: (cursor) => this.#request({ op: "ack", subscription: target.subscription, cursor }),
    });
    this.#subscriptions.set(key, subscription);
    this.#handle({ kind: "subscribe", key, ...target });
    return subscription;
  }

  #request(frame, signal) {
    const key = ++this.#keys;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const abort = () => {
        this.#settlers.delete(key);
        this.#handle({ kind: "abandon", key });
        reject(signal.reason);
      };
      const done = (settle) => (value) => {
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#settlers.set(key, { resolve: done(resolve), reject: done(reject) });
      this.#handle({ kind: "request", key, frame });
    });
  }

  /** Callbacks may call us again: outputs wait in line, so that they are carried out in the session's order. */
  #handle(input) {
    this.#outputs.push(...this.#session.handle(input, performance.now()));
    if (this.#draining) return;
    this.#draining = true;
    for (let next = 0; next < this.#outputs.length; next++) this.#carryOut(this.#outputs[next]);
    this.#outputs.length = 0;
    this.#draining = false;
  }

  #carryOut(output) {
    const { kind, key } = output;
    if (kind === "event") this.#subscriptions.get(key)?._event(output.delivery);
    else if (kind === "gap") this.#subscriptions.get(key)?._gap(new Gap(output.gap));
    else if (kind === "send") this.#socket.send(output.text);
    else if (kind === "settled") this.#settle(key)?.resolve(output.answer);
    else if (kind === "failed") this.#settle(key)?.reject(output.error);
    else if (kind === "state") this.#tellState(key, output.state, output.detail);
    else if (kind === "timer") this.#setTimer(output.name, output.ms);
    else if (kind === "connect") this.#connect();
    else if (kind === "disconnect") this.#disconnect(output.code);
  }

  #settle(key) {
    const settler = this.#settlers.get(key);
    this.#settlers.delete(key);
    return settler;
  }

  #tellState(key, state, detail) {
    if (key === null) {
      shielded(() => this.#onState(state, detail));
      return;
    }
    this.#subscriptions.get(key)?._state(state, detail);
    if (state === "ended") this.#subscriptions.delete(key);
  }

  #setTimer(name, ms) {
    clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
    if (ms !== null) this.#timers.set(name, setTimeout(() => this.#handle({ kind: "timer", name }), ms));
  }

  async #connect() {
    const attempt = ++this.#attempt;
    let token;
    try {
      token = await this.#getToken();
    } catch (error) {
      if (attempt !== this.#attempt) return;
      const terminal = error instanceof HeraldError;
      this.#handle({ kind: "refused", error, terminal });
      return;
    }
    if (attempt !== this.#attempt) return;
    const url = new URL(this.#url);
    if (token) url.searchParams.set("access_token", token);
    const socket = new this.#Socket(url.href, [SUBPROTOCOL]);
    this.#socket = socket;
    const current = (handler) => (event) => {
      if (this.#socket === socket) handler(event);
    };
    let opened = false;
    socket.onopen = current(() => {
      opened = true;
      this.#handle({ kind: "opened" });
    });
    socket.onmessage = current(({ data }) => this.#handle({ kind: "frame", text: data }));
    const closed = current(async ({ code = 1006, reason = "" }) => {
      this.#socket = null;
      const refusal = opened ? null : await this.#refusal(token);
      if (attempt === this.#attempt) this.#handle({ kind: "closed", ...(refusal ?? { code, reason }) });
    });
    socket.onclose = closed;
    socket.onerror = (event) => {
      if (!opened) closed(event); // some runtimes tell a failed handshake in no other way
    };
  }

  /** Why a handshake failed, which a WebSocket does not tell: asked over HTTP. Null unless it was the token. */
  async #refusal(token) {
    const url = new URL("api/v1/rps?limit=1", this.#url.replace(/^ws/, "http"));
    try {
      const headers = token ? { Authorization: `Bearer ${token}` } : {};
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(PROBE_MS) });
      if (response.status !== 401) return null;
      return { code: CLOSE_TOKEN_EXPIRED, reason: (await response.json()).detail ?? "" };
    } catch {
      return null; // the domain is away, or does not let other sites ask
    }
  }

  #disconnect(code) {
    this.#attempt++;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(code);
  }
}

/**
 * A subscription: callbacks, or an async iterator over {rp, epoch, offset, cursor, event} and Gap.
 *
 * As an iterator it ends when it is closed, and throws when it ends otherwise. A program that iterates too slowly holds at
 * most LAG_MAX events: the flow is paused and later continued from the log.
 */
class Subscription {
  /** connecting, live, reconnecting, paused or ended. */
  state = "connecting";
  /** Where to continue, also in another client: the cursor of the last event delivered; null before it was ever live. */
  cursor = null;
  #options;
  #link;
  #queue = [];
  #wake = null;
  #error = null;
  #lagging = false;

  constructor(options, link) {
    this.#options = options;
    this.#link = link;
  }

  /** Durable subscriptions: everything up to `cursor` is processed and may be forgotten. Default: all delivered. */
  async ack(cursor = this.cursor) {
    if (cursor !== null) await this.#link.ack(cursor);
  }

  /** Stop the flow and keep the place; nothing is buffered meanwhile, and `resume` continues from the log. */
  pause() {
    this.#link.tell("pause");
  }

  resume() {
    this.#link.tell("resume");
  }

  close() {
    this.#link.tell("unsubscribe");
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (;;) {
        while (this.#queue.length) {
          yield this.#queue.shift();
          if (this.#lagging && this.#queue.length <= LAG_MAX / 2) {
            this.#lagging = false;
            this.resume();
          }
        }
        if (this.#error) throw this.#error;
        if (this.state === "ended") return;
        await new Promise((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.close();
    }
  }

  _event(delivery) {
    this.cursor = delivery.cursor;
    if (this.#options.onEvent) shielded(() => this.#options.onEvent(delivery.event, delivery));
    else this.#enqueue(delivery);
  }

  _gap(gap) {
    this.cursor = gap.cursor;
    if (this.#options.onGap) shielded(() => this.#options.onGap(gap));
    else if (!this.#options.onEvent) this.#enqueue(gap);
  }

  _state(state, detail) {
    if (state === "connecting" && this.state === "connecting") return; // as every subscription begins: no news
    this.state = state;
    this.cursor = detail.cursor ?? this.cursor;
    this.#error = detail.error ?? null;
    if (this.#options.onState) shielded(() => this.#options.onState(state, detail));
    this.#wake?.();
  }

  #enqueue(item) {
    this.#queue.push(item);
    this.#wake?.();
    if (this.#lagging || this.#queue.length < LAG_MAX) return;
    this.#lagging = true;
    this.pause();
  }
}

/** The WebSocket URL for a domain's address; ws: and wss: are taken as they are. */
function endpoint(url) {
  if (!url) throw new TypeError("The setting url is needed: the domain's address, such as https://herald.example.");
  const base = new URL(url);
  if (base.protocol === "ws:" || base.protocol === "wss:") return base.href;
  base.pathname = `${base.pathname.replace(/\/$/, "")}/ws`;
  base.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  return base.href;
}

/** A failing callback is reported as an uncaught error and does not stop the flow. */
function shielded(callback) {
  try {
    callback();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
