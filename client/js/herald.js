/**
 * Herald's client for browsers (and Node with a WebSocket): publish, subscribe, resume. No dependencies, no build.
 *
 *     import { Client } from "./herald.js";
 *     const client = new Client({ url: "https://herald.example", getToken: async () => (await fetch("/token")).text() });
 *     client.subscribe("/herald.example/weather/", { from: "earliest", onEvent: (event) => console.log(event.data) });
 *     await client.publish("/herald.example/weather/", { celsius: 21 });
 *
 * This file does the input and output only; session.js makes the decisions.
 */

import { CLOSE_TOKEN_EXPIRED, HeraldError } from "./errors.js";
import { randomId, toEvent } from "./events.js";
import { URLS_MAX, host } from "./rollover.js";
import { Session, targetOf } from "./session.js";
import { startText } from "./starts.js";
import { ReplicaLocations } from "./replica_locations.js";

export { ClientClosed, Closed, HeraldError, Problem } from "./errors.js";

const SUBPROTOCOL = "herald.v1";
const EVENT_TYPE = "io.herald.message";
const PROBE_MS = 5_000;
const DELAYS = 3; // requests of one measurement
const MEASURE_MAX_MS = 30_000; // of all measurements of one round; servers without a result by then count as away
const PREPARE_MS = 15_000; // for connecting to a better server
/** @type {{signal?: AbortSignal}} */
const NO_OPTIONS = {};
const LEARNED_MAX = 1_000; // RPs whose replicas are looked up
/** Events an iterating program may lag behind before the flow is paused; it resumes, from the log, at half of it. */
const LAG_MAX = 1_000;

/** Events that a reader requested and cannot get: trimmed from the history, or of an ended epoch. */
export class Gap {
  constructor({ rp, epoch, from, to, previousEpoch, cursor, feeds = {}, rewound = null }) {
    this.rp = rp;
    /** The epoch in which reading continues. */
    this.epoch = epoch;
    /** First and last missing offset of `epoch`, both inclusive; `to < from` if none of it is missing. */
    this.from = from;
    this.to = to;
    /** The reader's former epoch, if it ended: how many of its events were missed is unknown. Else null. */
    this.previousEpoch = previousEpoch;
    /** The cursor to continue behind the gap. */
    this.cursor = cursor;
    /**
     * At a rendezvous point with replicas, the first and last lost sequence of each feed: exactly what is missing, at
     * whichever replica one reads. Empty elsewhere.
     */
    this.feeds = feeds;
    /**
     * Events {epoch, from, to} that the reader was given and that the domain has lost since: other events have these offsets
     * in `epoch`. Null: nothing was withdrawn.
     */
    this.rewound = rewound;
  }

  /** Return how many events of `epoch` are known to be missing. */
  get missing() {
    return Math.max(0, this.to - this.from + 1);
  }

  /** Durable subscriptions: acknowledge everything up to this gap. Replaced for gaps of a durable one. */
  async ack() {}
}

/**
 * A connection to a domain, or to one of several with replicas of what is read, opened when first needed, with any
 * number of subscriptions and publishes. A target that one replica refuses and another may serve gets a client of its
 * own.
 */
export class Client {
  #names = new Map(); // endpoint -> the URL that the program gave
  #settings;
  /** @type {Client} */
  #root = this; // the client that the program made, which knows the replica locations
  #where;
  #elsewhere = new Map(); // replicas, and those of them that refuse -> the client for targets that only the others serve
  #told = ""; // the last move reported to the program, which has several clients
  #learning = new Set(); // RPs whose replicas were looked up
  #onMove;
  #getToken;
  #Socket;
  #onState;
  #session;
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {WebSocket | null} to the server that is to be gone on at */
  #prepared = null;
  #whenSwitched = () => {};
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
   * @param {import("./herald.d.ts").ClientSettings & {random?: () => number}} settings
   * @param {{root: Client, urls: string[], refused: Map<string, Error>}} [elsewhere] for a client of a client
   */
  constructor(settings = {}, elsewhere = undefined) {
    const {
      url,
      token,
      getToken,
      source,
      onState,
      onMove,
      WebSocket: Socket,
      random = Math.random,
      learnable = (named) => addresses(named, given[0]),
      bestServer = true,
      ...tuning
    } = settings;
    const given = Array.isArray(url) ? url : [url ?? globalThis.location?.origin];
    if (!given.length) endpointOf(undefined);
    for (const one of given) this.#names.set(endpointOf(one), one);
    this.#settings = settings;
    this.#onMove = onMove ?? (() => {});
    this.#Socket = Socket ?? globalThis.WebSocket;
    if (!this.#Socket) throw new TypeError("There is no WebSocket here. Pass one as the setting WebSocket.");
    this.#getToken = elsewhere ? elsewhere.root.#getToken : this.#tokens(token, getToken);
    this.#onState = onState ?? (() => {});
    this.#defaults = { source: source ?? `/herald-js/${randomId().slice(0, 16)}`, type: EVENT_TYPE };
    const { root = this, urls = [...this.#names.keys()], refused } = elsewhere ?? {};
    this.#root = root;
    this.#where = elsewhere ? null : new ReplicaLocations(urls, learnable);
    const refuses = (target, refusing, error) => root.#where.refuses(target, refusing, error);
    const refreshable = getToken !== undefined;
    const covers = this.#covers(token, getToken);
    const usable = bestServer ? (named) => learnable(named).filter(covers) : null;
    const now = performance.now();
    this.#session = new Session({ random, refreshable, urls, refused, now, learnable, refuses, usable, ...tuning });
    globalThis.addEventListener?.("online", this.#online);
  }

  /** Read an RP from `from` (now, earliest, last, a time or a cursor) on, across reconnections. See herald.d.ts. */
  subscribe(rp, options = {}) {
    return this.#add({ rp, from: startText(options.from ?? "now") }, options);
  }

  /**
   * Read a durable subscription from its last acknowledged event on. Acknowledge with the `ack` of the returned object.
   */
  attach(subscription, options = {}) {
    return this.#add({ subscription }, options);
  }

  /** Create a durable subscription at the first domain; resolves to its document, whose `id` is for `attach`. */
  async createSubscription(rp, options = undefined) {
    const [endpoint] = this.#names.keys();
    const { create } = await import("./durable.js");
    return create(httpOf(endpoint), await this.#getToken(endpoint), rp, options);
  }

  /** End a durable subscription at the first domain; its unread events are lost. */
  async deleteSubscription(id, options = undefined) {
    const [endpoint] = this.#names.keys();
    const { remove } = await import("./durable.js");
    return remove(httpOf(endpoint), await this.#getToken(endpoint), id, options);
  }

  /**
   * Publish one event; the promise resolves when the domain has stored it as durably as the RP requires. An unconfirmed
   * event is sent again after each reconnection with the same id, and stored once.
   */
  async publish(rp, dataOrEvent, { signal } = NO_OPTIONS) {
    return this.#request({ op: "publish", rp, event: toEvent(dataOrEvent, this.#defaults) }, signal);
  }

  /** Publish many events in one frame; the answer has `results`, one for each. */
  async publishAll(rp, items, { signal } = NO_OPTIONS) {
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
    for (const client of this.#elsewhere.values()) client.close();
  }

  /** Return the source of the token for an endpoint: one given without a URL is used only for the given domains. */
  #tokens(token, getToken) {
    const name = (url) => this.#names.get(url) ?? url.replace(/^ws/, "http").replace(/\/ws$/, "");
    if (getToken) return async (url) => (getToken.length || this.#names.has(url) ? getToken(name(url)) : undefined);
    if (typeof token !== "object" || token === null) return async (url) => (this.#names.has(url) ? token : undefined);
    const known = new Map(Object.entries(token).map(([url, value]) => [endpointOf(url), value]));
    return async (url) => known.get(url);
  }

  /** Return whether an endpoint is shown the same rights: a token that is for it, or none as everywhere. */
  #covers(token, getToken) {
    if (getToken) return (url) => getToken.length > 0 || this.#root.#names.has(url);
    if (typeof token === "object" && token !== null) {
      const known = new Set(Object.keys(token).map(endpointOf));
      return (url) => known.has(url);
    }
    return (url) => !token || this.#root.#names.has(url);
  }

  /** Return the client for a target: this one, or another one for a target that some replicas refuse. */
  #at(target) {
    const { refused, urls } = { refused: this.#where.refused(target), urls: this.#where.candidates(target) };
    if (!refused.size) return this;
    const key = `${urls.join(" ")} without ${[...refused.keys()].sort().join(" ")}`;
    if (!this.#elsewhere.has(key) || this.#elsewhere.get(key).#session.ended) {
      const client = new Client({ ...this.#settings, onState: undefined }, { root: this, urls, refused });
      this.#elsewhere.set(key, client);
    }
    return this.#elsewhere.get(key);
  }

  #goElsewhere({ key, target, wanted, frame }) {
    const client = this.#root.#at(target);
    if (frame) {
      const settler = this.#settle(key);
      if (settler) client.#take(settler, frame);
      return;
    }
    const subscription = this.#subscriptions.get(key);
    this.#subscriptions.delete(key);
    if (subscription) client.#read(subscription, (there) => ({ kind: "adopt", key: there, wanted }));
  }

  #read(subscription, input) {
    const key = ++this.#keys;
    this.#subscriptions.set(key, subscription);
    subscription._move((kind) => this.#handle({ kind, key }));
    this.#handle(input(key));
  }

  #take(settler, frame) {
    const key = ++this.#keys;
    this.#settlers.set(key, settler);
    settler.moved(() => this.#abandon(key));
    this.#handle({ kind: "request", key, frame });
  }

  #abandon(key) {
    this.#settlers.delete(key);
    this.#handle({ kind: "abandon", key });
  }

  /** Look up the other replicas of an RP once, so that they are known when they are needed. */
  async #learn(rp, endpoint) {
    if (this.#learning.has(rp) || this.#learning.size >= LEARNED_MAX) return;
    this.#learning.add(rp);
    try {
      const token = await this.#getToken(endpoint);
      /** @type {Record<string, string>} */
      const headers = token ? { Authorization: `Bearer ${token}` } : {};
      const url = new URL(`api/v1/rps/${encodeURIComponent(rp)}`, endpoint.replace(/^ws/, "http"));
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(PROBE_MS) });
      if (!response.ok) return;
      const { replicas = [] } = await response.json();
      this.#handle({ kind: "learned", urls: replicas.map((replica) => replica?.url) });
    } catch {
      // The domain allows no requests of other sites, or does not answer; redirects name replicas as well.
    }
  }

  async #probe(endpoint) {
    const url = new URL("readyz", endpoint.replace(/^ws/, "http"));
    let good;
    try {
      good = (await fetch(url, { signal: AbortSignal.timeout(PROBE_MS) })).ok;
    } catch {
      // Browsers hide another site's answer unless it allows access, but not that it answers.
      good = await fetch(url, { mode: "no-cors", signal: AbortSignal.timeout(PROBE_MS) }).then(
        ({ type }) => type === "opaque",
        () => false,
      );
    }
    this.#handle({ kind: "probed", good });
  }

  #add(target, options) {
    const ack = (cursor) => this.#request({ op: "ack", subscription: target.subscription, cursor });
    const subscription = new Subscription(options, ack, "subscription" in target);
    this.#at(targetOf(target)).#read(subscription, (key) => ({ kind: "subscribe", key, ...target }));
    return subscription;
  }

  #request(frame, signal) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      let abandon;
      const abort = () => {
        abandon();
        reject(signal.reason);
      };
      const done = (settle) => (value) => {
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      signal?.addEventListener("abort", abort, { once: true });
      const moved = (there) => (abandon = there);
      this.#at(targetOf(frame)).#take({ resolve: done(resolve), reject: done(reject), moved }, frame);
    });
  }

  /** Callbacks may call this client again: outputs are queued, so that they are carried out in the session's order. */
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
    else if (kind === "send") /** @type {WebSocket} */ (this.#socket).send(output.text);
    else if (kind === "settled") this.#settle(key)?.resolve(output.answer);
    else if (kind === "failed") this.#settle(key)?.reject(output.error);
    else if (kind === "state") this.#tellState(key, output.state, output.detail);
    else if (kind === "timer") this.#setTimer(output.name, output.ms);
    else if (kind === "connect") this.#connect(output.url, output.hops);
    else if (kind === "measure") this.#measure(output.urls);
    else if (kind === "prepare") this.#prepare(output.url, output.hops);
    else if (kind === "unprepare") this.#unprepare();
    else if (kind === "switch") this.#switch();
    else if (kind === "elsewhere") this.#goElsewhere(output);
    else if (kind === "learn") this.#learn(output.rp, output.url);
    else if (kind === "probe") this.#probe(output.url);
    else if (kind === "moved") this.#tellMove(output.move);
    else if (kind === "disconnect") this.#disconnect(output.code);
  }

  #tellMove({ from, to, reason, back }) {
    if (this.#root.#told === `${from} ${to}`) return;
    this.#root.#told = `${from} ${to}`;
    const text = `${host(back ? to : from)} ${reason}; going ${back ? "back to" : "on at"} ${host(to)}`;
    shielded(() => this.#onMove({ from, to, reason, back, text }));
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
    if (ms !== null) {
      this.#timers.set(
        name,
        setTimeout(() => this.#handle({ kind: "timer", name }), ms),
      );
    }
  }

  async #connect(endpoint, hops) {
    const attempt = ++this.#attempt;
    let token;
    try {
      token = await this.#getToken(endpoint);
    } catch (error) {
      if (attempt !== this.#attempt) return;
      const terminal = error instanceof HeraldError;
      this.#handle({ kind: "refused", error, terminal });
      return;
    }
    if (attempt !== this.#attempt) return;
    const socket = this.#open(endpoint, token, hops);
    this.#socket = socket;
    this.#wire(socket, endpoint, token);
  }

  #open(endpoint, token, hops) {
    const url = new URL(endpoint);
    if (token) url.searchParams.set("access_token", token);
    if (hops !== null) url.searchParams.set("hops", hops);
    return new this.#Socket(url.href, [SUBPROTOCOL]);
  }

  /** Pass what the current socket does to the session; `opened`: whether it is open already. */
  #wire(socket, endpoint, token, opened = false) {
    const attempt = this.#attempt;
    const current = (handler) => (event) => {
      if (this.#socket === socket) handler(event);
    };
    socket.onopen = current(() => {
      opened = true;
      this.#handle({ kind: "opened" });
    });
    socket.onmessage = current(({ data }) => this.#handle({ kind: "frame", text: data }));
    const closed = current(async ({ code = 1006, reason = "" }) => {
      this.#socket = null;
      const refusal = opened ? null : await this.#refusal(endpoint, token);
      if (attempt === this.#attempt) this.#handle({ kind: "closed", ...(refusal ?? { code, reason }) });
    });
    socket.onclose = closed;
    socket.onerror = (event) => {
      if (!opened) closed(event); // some runtimes report a failed handshake in no other way
    };
  }

  /** Measure the round-trip time to servers, one after the other: the least of several requests on one connection. */
  async #measure(urls) {
    const delays = new Map(urls.map((url) => [url, null]));
    const until = performance.now() + MEASURE_MAX_MS;
    for (const url of urls) {
      const left = until - performance.now();
      if (left <= 0) break;
      delays.set(url, await this.#delay(url, AbortSignal.timeout(Math.min(left, PROBE_MS))));
    }
    this.#handle({ kind: "measured", delays });
  }

  async #delay(endpoint, signal) {
    const url = new URL("livez", endpoint.replace(/^ws/, "http"));
    let least = Infinity;
    try {
      for (let number = 0; number <= DELAYS; number++) {
        const began = performance.now();
        const response = await fetch(url, { mode: "no-cors", cache: "no-store", signal });
        await response.arrayBuffer();
        if (number > 0) least = Math.min(least, performance.now() - began); // the first one opened the connection
      }
      return least;
    } catch {
      return null;
    }
  }

  /** Connect to the server that is to be gone on at, beside the present connection. */
  async #prepare(endpoint, hops) {
    const attempt = this.#attempt;
    const given = () => attempt === this.#attempt;
    let token;
    try {
      token = await this.#getToken(endpoint);
    } catch {
      this.#handle({ kind: "unprepared", url: endpoint });
      return;
    }
    if (!given()) return;
    const socket = this.#open(endpoint, token, hops);
    this.#prepared = socket;
    const failed = () => {
      clearTimeout(late);
      if (this.#prepared !== socket) return;
      this.#prepared = null;
      this.#handle({ kind: "unprepared", url: endpoint });
    };
    socket.onclose = socket.onerror = failed;
    socket.onopen = () => {
      clearTimeout(late);
      if (this.#prepared !== socket) return;
      this.#whenSwitched = () => this.#wire(socket, endpoint, token, true);
      this.#handle({ kind: "prepared", url: endpoint });
    };
    const late = setTimeout(() => {
      failed();
      socket.close();
    }, PREPARE_MS);
  }

  #unprepare() {
    const socket = this.#prepared;
    this.#prepared = null;
    socket?.close(1000);
  }

  #switch() {
    const before = this.#socket;
    this.#attempt++;
    this.#socket = this.#prepared;
    this.#prepared = null;
    this.#whenSwitched();
    before?.close(1000);
  }

  /**
   * Return why a handshake failed, which a WebSocket does not report: asked over HTTP. Null unless it was the token.
   */
  async #refusal(endpoint, token) {
    const url = new URL("api/v1/rps?limit=1", endpoint.replace(/^ws/, "http"));
    try {
      /** @type {Record<string, string>} */
      const headers = token ? { Authorization: `Bearer ${token}` } : {};
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(PROBE_MS) });
      if (response.status !== 401) return null;
      return { code: CLOSE_TOKEN_EXPIRED, reason: (await response.json()).detail ?? "" };
    } catch {
      return null; // the domain does not answer, or allows no requests of other sites
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
 * A subscription: callbacks, or an async iterator over {rp, epoch, offset, cursor, event} and Gap. As an iterator it
 * ends when it is closed, and throws when it ends otherwise. For a program that iterates too slowly at most LAG_MAX
 * events are queued: the flow is paused and later continued from the log.
 */
class Subscription {
  /** connecting, live, reconnecting, paused or ended. */
  state = "connecting";
  /**
   * The cursor to continue, also in another client: that of the last item handed out, to a callback or by an iterator;
   * null before it was ever live. Items that wait for an iterator do not count.
   */
  cursor = null;
  #options;
  #acknowledge;
  /** @type {(kind: "pause" | "resume" | "unsubscribe") => void} */
  #tell = () => {};
  #queue = [];
  /** @type {((value?: unknown) => void) | null} */
  #wake = null;
  #error = null;
  #lagging = false;
  #durable;
  #numbered = 0; // items so far
  #acknowledged = 0; // the last item that was acknowledged, by its own `ack` or as the last one handed out
  #given = 0; // the last item that was handed out

  constructor(options, acknowledge, durable) {
    this.#options = options;
    this.#acknowledge = acknowledge;
    this.#durable = durable;
  }

  /** Durable subscriptions: acknowledge everything up to `cursor`. Default: everything handed out. */
  async ack(cursor = this.cursor) {
    if (cursor === null) return;
    const given = cursor === this.cursor ? this.#given : 0;
    await this.#acknowledge(cursor);
    this.#acknowledged = Math.max(this.#acknowledged, given);
  }

  /** Pause the flow and keep the position; nothing is queued meanwhile, and `resume` continues from the log. */
  pause() {
    this.#tell("pause");
  }

  resume() {
    this.#tell("resume");
  }

  close() {
    this.#tell("unsubscribe");
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (;;) {
        while (this.#queue.length) {
          const { item, number } = this.#queue.shift();
          this.#give(item, number);
          yield item;
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

  _move(tell) {
    this.#tell = tell;
  }

  _event(delivery) {
    const number = this.#number(delivery);
    if (!this.#options.onEvent) {
      this.#enqueue(delivery, number);
      return;
    }
    this.#give(delivery, number);
    shielded(() => this.#options.onEvent(delivery.event, delivery));
  }

  _gap(gap) {
    const number = this.#number(gap);
    if (!this.#options.onGap && !this.#options.onEvent) {
      this.#enqueue(gap, number);
      return;
    }
    if (!this.#queue.length) this.#give(gap, number); // otherwise earlier events wait for an iterator
    if (this.#options.onGap) shielded(() => this.#options.onGap(gap));
  }

  _state(state, detail) {
    if (state === "connecting" && this.state === "connecting") return; // the first state of every subscription: not reported
    this.state = state;
    if (!this.#queue.length) this.cursor = detail.cursor ?? this.cursor;
    this.#error = detail.error ?? null;
    if (this.#options.onState) shielded(() => this.#options.onState(state, detail));
    this.#wake?.();
  }

  /** Give an item an `ack` method, outside its enumerable properties, which are data. */
  #number(item) {
    const number = ++this.#numbered;
    const ack = async () => {
      if (!this.#durable || number <= this.#acknowledged) return;
      const before = this.#acknowledged;
      this.#acknowledged = number;
      try {
        await this.#acknowledge(item.cursor);
      } catch (error) {
        if (this.#acknowledged === number) this.#acknowledged = before;
        throw error;
      }
    };
    Object.defineProperty(item, "ack", { value: ack });
    return number;
  }

  #give(item, number) {
    this.cursor = item.cursor;
    this.#given = number;
  }

  #enqueue(item, number) {
    this.#queue.push({ item, number });
    this.#wake?.();
    if (this.#lagging || this.#queue.length < LAG_MAX) return;
    this.#lagging = true;
    this.pause();
  }
}

/** Return those endpoints named by a domain that may be used: https, unless the first one given is http. */
function addresses(named, like) {
  if (!Array.isArray(named)) return [];
  const insecure = /^(http|ws):/.test(like);
  return named.slice(0, URLS_MAX).flatMap((url) => {
    if (typeof url !== "string" || !URL.canParse(url)) return [];
    const { protocol, search, hash } = new URL(url);
    return !search && !hash && (protocol === "https:" || (insecure && protocol === "http:")) ? [endpointOf(url)] : [];
  });
}

/** Return the WebSocket URL for a domain's address; ws: and wss: are used as they are. */
function endpointOf(url) {
  if (!url) throw new TypeError("The setting url is needed: the domain's address, such as https://herald.example.");
  const base = new URL(url);
  if (base.protocol === "ws:" || base.protocol === "wss:") return base.href;
  base.pathname = `${base.pathname.replace(/\/$/, "")}/ws`;
  base.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  return base.href;
}

/** Return the address of a domain's HTTP interface for its WebSocket URL. */
function httpOf(endpoint) {
  return endpoint.replace(/^ws/, "http").replace(/ws$/, "");
}

/** Report a failing callback as an uncaught error; the flow continues. */
function shielded(callback) {
  try {
    callback();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
