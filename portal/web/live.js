/**
 * Live state: a snapshot of the domain or of one rendezvous point, kept current by its administrative events.
 *
 *     import { openDomain, openRp } from "../live.js";
 *     const live = openDomain({ onChange: (state, events, { fresh }) => draw(state) });
 *     …
 *     live.close();
 *
 * The life of it: catalogue and snapshot are fetched; the administrative RP is read from the snapshot's cursor on over the
 * page's one WebSocket (domain_connection.js), by the client library, which comes back by itself after a lost connection; each event is
 * applied by the effects that the catalogue states for its type (state.js). After a gap, or a change of epoch, there is a new
 * snapshot: what you are given is never built over a hole.
 *
 * `onChange` is called once after each snapshot (`fresh`, no events) and then at most once per frame of the screen, with the
 * events since the last call, oldest first; while the tab is hidden it is not called, the state is kept current all the same.
 */

import { Problem } from "../../client/js/herald.js";
import { showAlarms } from "./alarm_badge.js";
import { showConnection } from "./connection.js";
import { eachFrame } from "./frame.js";
import { domainConnection, onAgain, tellEnd } from "./domain_connection.js";
import { Refused, SessionEnded, getJson } from "./requests.js";
import { DOMAIN, RP, apply } from "./state.js";

/** @import { DomainState, RpState } from "./shapes.d.ts" */
/** @import { AdminEvent } from "./types.d.ts" */

/** @import { Client } from "../../client/js/herald.js" */
/** @import { StateDetail, SubscriptionState } from "../../client/js/herald.d.ts" */

const CATALOGUE_URL = document.documentElement?.dataset.catalogue || "/api/v1/admin/catalogue"; // the page's is kept by the browser
const EVENTS_KEPT = 500; // for the next onChange; a hidden tab drops older ones, its state has them
const RETRY_MS = [1_000, 2_000, 5_000, 10_000, 30_000];
/** @type {Parameters<typeof apply>[0] | null} */
let catalogue = null; // the same for the page's life

/** The domain's state. @param {Options<DomainState>} [options] @returns {Live<DomainState>} */
export function openDomain(options) {
  return new Live("domain.admin", "/api/v1/admin/snapshot", DOMAIN, options);
}

/** The state of the RP with the id `id`. @param {string} id @param {Options<RpState>} [options] @returns {Live<RpState>} */
export function openRp(id, options) {
  return new Live(`${id}.admin`, `/api/v1/rps/${encodeURIComponent(id)}/snapshot`, RP, options);
}

/**
 * @template S
 * @typedef {{onChange?: (state: S, events: AdminEvent[], about: {fresh: boolean}) => void,
 *   onState?: (state: "live" | "away" | "ended", error?: Error) => void}} Options
 */

/** @template {DomainState | RpState} S what the state is */
export class Live {
  /** The state; null before the first snapshot. Read it, never write it. @type {S | null} */
  state = null;
  /** Whether the state is current: false while it is fetched, and while the connection is interrupted. */
  current = false;
  #rp;
  #url;
  #where;
  #onChange;
  #onState;
  /** @type {ReturnType<Client["subscribe"]> | null} */
  #subscription = null;
  #events = [];
  #attempt = 0; // of fetching: answers to an older one are ignored
  #failures = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #forget;
  #draw = eachFrame(() => this.#tell());

  /**
   * @param {string} rp the administrative RP
   * @param {string} url of its snapshot
   * @param {"domain" | "rp"} where which effects of the catalogue apply: DOMAIN or RP
   * @param {Options<S>} [options]
   */
  constructor(rp, url, where, { onChange = () => {}, onState = () => {} } = {}) {
    this.#rp = rp;
    this.#url = url;
    this.#where = where;
    this.#onChange = onChange;
    this.#onState = onState;
    this.#forget = onAgain(() => this.#start());
    showConnection("connecting");
    void this.#start();
  }

  close() {
    this.#stop();
    this.#forget();
  }

  #stop() {
    this.#attempt++;
    clearTimeout(this.#timer);
    this.#subscription?.close();
    this.#subscription = null;
    this.current = false;
  }

  async #start() {
    this.#stop();
    const attempt = this.#attempt;
    try {
      const [kinds, snapshot] = await Promise.all([catalogue ?? getJson(CATALOGUE_URL), getJson(this.#url)]);
      if (attempt !== this.#attempt) return;
      catalogue = kinds;
      this.#failures = 0;
      this.state = snapshot.state;
      this.#events = [];
      this.#count();
      this.#follow(snapshot.cursor, attempt);
      this.#onChange(this.state, [], { fresh: true });
    } catch (error) {
      if (attempt === this.#attempt) this.#failed(error);
    }
  }

  #failed(error) {
    const final =
      error instanceof SessionEnded || (error instanceof Refused && error.status < 500 && error.status !== 429);
    if (final) {
      tellEnd(error);
      this.#onState("ended", error);
      return;
    }
    if (!("status" in error) && error.name !== "Unanswered") throw error; // our own mistake
    const retryInMs = (error.retryAfterS ?? 0) * 1000 || RETRY_MS[Math.min(this.#failures++, RETRY_MS.length - 1)];
    showConnection("reconnecting", { retryInMs, reason: error.message });
    this.#onState("away", error);
    this.#timer = setTimeout(() => this.#start(), retryInMs);
  }

  #follow(cursor, attempt) {
    const mine =
      (handler) =>
      (...given) => {
        if (attempt === this.#attempt) handler(...given);
      };
    this.#subscription = domainConnection().subscribe(this.#rp, {
      from: cursor,
      onEvent: mine((event) => this.#event(event)),
      onGap: mine(() => this.#start()),
      onState: mine((state, detail) => this.#connected(state, detail)),
    });
  }

  /** @param {SubscriptionState} state @param {StateDetail} detail */
  #connected(state, { error }) {
    this.current = state === "live";
    if (state === "live") {
      showConnection("live");
      this.#onState("live");
    } else if (state === "ended" && error) {
      if (error instanceof Problem) tellEnd(error); // of this subscription alone: the line does not report it
      this.#onState("ended", error);
    } else if (state === "reconnecting") {
      this.#onState("away");
    }
  }

  #event(event) {
    if (!catalogue || !this.state) return; // it follows a snapshot, which is there with the catalogue
    this.state = apply(catalogue, this.#where, this.state, event);
    this.#count();
    this.#events.push(event);
    if (this.#events.length > EVENTS_KEPT) this.#events.shift();
    this.#draw();
  }

  #count() {
    if (this.#where === DOMAIN && this.state) showAlarms(this.state.alarms);
  }

  #tell() {
    if (this.#events.length === 0) return; // closed, or replaced by a snapshot
    const events = this.#events;
    this.#events = [];
    this.#onChange(this.state, events, { fresh: false });
  }
}
