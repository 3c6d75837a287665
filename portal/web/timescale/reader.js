/**
 * Feeds a lane: past events by pages of the history, new events by the page's WebSocket, and back to the newest after a
 * pause.
 *
 * The life of it: the newest page is asked, the RP is read live from there on. While it `follows`, what comes is held; else
 * it is only counted (`waiting`), and `follow` asks for what was missed, or, if that is more than CAUGHT_UP_MAX events,
 * begins anew with the newest page. What came live is asked for once a second, for the time at which it was stored.
 */

import { Problem } from "../../../client/js/herald.js";
import { domainConnection, onAgain } from "../domain_connection.js";
import { Refused, SessionEnded, getJson } from "../requests.js";
import { hasCome, now } from "./clock.js";
import { HELD_MAX, Lane } from "./lane.js";

/** @import { CloudEvent, Received } from "../../../client/js/herald.d.ts" */

const PAGE_EVENTS = 500; // of one answer
const CAUGHT_UP_MAX = 2 * PAGE_EVENTS;
const STAMP_EVERY_MS = 1_000;
const RETRY_MS = [1_000, 2_000, 5_000, 10_000];

export class LaneReader {
  lane = new Lane();
  /** "loading", "ready", "away" (no response; retried) or "broken"; `says` is one sentence about the latter two. */
  state = "loading";
  says = "";
  /** Facts of the RP, available once it is ready. */
  rp = "";
  label;
  mayPublish = false;
  /** Number of events received since it stopped following. */
  waiting = 0;
  /** Whether new events reach this page now. */
  connected = false;
  #url;
  #follows = true;
  /** @type {ReturnType<import("../../../client/js/herald.js").Client["subscribe"]> | null} */
  #subscription = null;
  #onChange;
  #onArrival;
  /** @type {Promise<void> | null} */
  #loading = null; // the one request in flight
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #stamping;
  #failures = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retry;
  #closed = false;
  #forget;

  /**
   * @param {string} reference id or name of the RP
   * @param {{url: string, onChange: () => void, onArrival?: (event: CloudEvent, received: Received) => void}} options `url`: where
   *   the past is asked for; `onChange`: whenever what is held, or the state, changed; `onArrival`: for each live event
   */
  constructor(reference, { url, onChange, onArrival = () => {} }) {
    this.label = reference;
    this.reference = reference;
    this.#url = url;
    this.#onChange = onChange;
    this.#onArrival = onArrival;
    this.#forget = onAgain(() => this.#read());
  }

  get follows() {
    return this.#follows;
  }

  /** Ask for the newest page, or the one around an instant or an offset, and read on live. @param {{at?: number, offset?: number}} [place] */
  async begin({ at, offset } = {}) {
    /** @type {Record<string, number>} */
    const place = offset ? { after: Math.max(0, offset - 1 - PAGE_EVENTS / 2) } : at ? { at: Math.round(at) } : {};
    if (offset || at) this.#follows = false;
    await this.#ask(place, () => this.begin({ at, offset }));
    if (this.state === "ready" && !this.#subscription) this.#read();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#stamping);
    clearTimeout(this.#retry);
    this.#subscription?.close();
    this.#forget();
  }

  /** Hold new events from now on, and load missed ones. */
  async follow() {
    if (this.#follows) return;
    this.#follows = true;
    this.waiting = 0;
    await this.#catchUp();
  }

  /** Keep the events held; count new ones. */
  hold() {
    this.#follows = false;
  }

  /** Go to the page around an instant. */
  async jump(at) {
    this.hold();
    await this.#ask({ at: Math.round(at) }, () => this.jump(at));
  }

  /** Have what is held reach back to `from`, and unless it follows on to `to`, a page at a time. */
  async reach(from, to) {
    const { lane } = this;
    if (this.state !== "ready" || this.#loading) return;
    const earlier = lane.events[0]?.at > from && lane.oldest > lane.first;
    if (earlier && !(this.#follows && lane.events.length >= HELD_MAX)) {
      await this.#ask({ before: lane.oldest }, null, this.#follows ? "newer" : "older");
    } else if (!this.#follows && !lane.whole && lane.events.at(-1)?.at < to) await this.#ask({ after: lane.newest });
  }

  // ---- the past ----

  /** @param {Record<string, number>} place @param {(() => Promise<void>) | null} [again] @param {"newer" | "older"} [keep] */
  async #ask(place, again = null, keep = "newer") {
    if (this.#loading) await this.#loading;
    this.#loading = this.#get(place, again, keep);
    await this.#loading;
    this.#loading = null;
  }

  async #get(place, again, keep) {
    try {
      const page = await getJson(
        `${this.#url}?${new URLSearchParams({ rp: this.reference, limit: PAGE_EVENTS, ...place })}`,
      );
      if (this.#closed) return;
      Object.assign(this, { rp: page.rp, label: page.label, mayPublish: page.may_publish, state: "ready", says: "" });
      this.#failures = 0;
      hasCome(Math.max(page.now, page.events.at(-1)?.at ?? 0));
      this.lane.take(page, keep);
    } catch (error) {
      this.#failed(error, again);
    }
    this.#onChange();
  }

  #failed(error, again) {
    this.says = error.message;
    const final =
      error instanceof SessionEnded || (error instanceof Refused && error.status < 500 && error.status !== 429);
    if (!final && !(error instanceof Refused) && error.name !== "Unanswered") throw error; // our own mistake
    if (final) {
      this.state = "broken";
    } else if (again) {
      this.state = "away";
      const ms = (error.retryAfterS ?? 0) * 1000 || RETRY_MS[Math.min(this.#failures++, RETRY_MS.length - 1)];
      this.#retry = setTimeout(() => this.#closed || again(), ms);
    }
  }

  async #catchUp() {
    const { lane } = this;
    if (lane.next - 1 - lane.newest > CAUGHT_UP_MAX) await this.#ask({}, () => this.#catchUp());
    for (
      let pages = 0;
      this.#follows && !lane.whole && this.state === "ready" && pages <= CAUGHT_UP_MAX / PAGE_EVENTS;
      pages++
    ) {
      await this.#ask({ after: lane.newest }, () => this.#catchUp());
    }
    this.#onChange();
  }

  // ---- new events ----

  #read() {
    if (this.#closed || !this.rp) return;
    this.#subscription?.close();
    const { epoch, newest } = this.lane;
    this.#subscription = domainConnection().subscribe(this.rp, {
      from: epoch ? `${epoch}:${this.#follows ? newest : this.lane.next - 1}` : "earliest",
      onEvent: (event, received) => this.#arrived(event, received),
      onGap: (gap) => {
        this.lane.missed(gap, now());
        this.#onChange();
      },
      onState: (state, { error }) => {
        this.connected = state === "live";
        this.#onChange();
        if (state !== "ended" || !(error instanceof Problem)) return; // the connection itself is the pill's affair
        this.state = "broken";
        this.says = error.message;
        this.#onChange();
      },
    });
  }

  #arrived(event, received) {
    this.#onArrival(event, received);
    if (!this.#follows) {
      this.lane.passed(received);
      this.waiting++;
    } else if (this.lane.arrived(event, received, now())) {
      this.#stampSoon();
    } else if (!this.#loading) {
      void this.#catchUp(); // it arrived while a page was loading
    }
    this.#onChange();
  }

  #stampSoon() {
    this.#stamping ??= setTimeout(async () => {
      this.#stamping = undefined;
      const { unstamped, newest } = this.lane;
      if (!unstamped || this.#closed || this.state !== "ready") return;
      await this.#ask({ after: Math.max(unstamped.offset - 1, newest - PAGE_EVENTS) });
    }, STAMP_EVERY_MS);
  }
}
