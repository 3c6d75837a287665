/**
 * Events that the page holds of one RP: consecutive events of its log, at most HELD_MAX, and the gaps among them. Pure.
 *
 * Pages of the past are put together with what is held where they adjoin it, else they take its place. Live events are added
 * at the end with the time of their arrival; a page that covers them says later when they were stored (`exact`).
 */

/** @import { LaneEvent } from "../types.d.ts" */

export const HELD_MAX = 5_000;
const GAPS_MAX = 200;
const PREVIEW_CHARS = 160;

export class Lane {
  /** Events as GET /console/timescale/past gives them, by their offsets; `exact`: `at` is when it was stored. */
  events = [];
  /** {from, to, at, previous}: offsets that are missing, when that was found, the epoch before if it ended. */
  gaps = [];
  epoch = "";
  /** The log's own oldest offset, and the one its next event will get. */
  first = 1;
  next = 1;
  /** Whether events were dropped from the page to keep the bound. */
  letGo = false;

  get oldest() {
    return this.events[0]?.offset ?? this.next;
  }

  get newest() {
    return this.events.at(-1)?.offset ?? this.next - 1;
  }

  /** Number of events in the log, as last loaded. */
  get held() {
    return this.next - this.first;
  }

  /** Number of these on the page, which also keeps events that have left the history. */
  get shown() {
    const begin = this.events.findIndex(({ offset }) => offset >= this.first);
    return begin < 0 ? 0 : this.events.length - begin;
  }

  /** Whether the newest event of the log is held. */
  get whole() {
    return this.newest >= this.next - 1;
  }

  find(offset) {
    const index = offset - this.oldest;
    const guess = this.events[index];
    return guess?.offset === offset ? guess : (this.events.find((event) => event.offset === offset) ?? null);
  }

  /**
   * Take a page of the past.
   * @param {{epoch: string, first: number, next: number, events: LaneEvent[]}} page
   * @param {"newer" | "older"} [keep] which events stay when there are more than HELD_MAX
   */
  take({ epoch, first, next, events }, keep = "newer") {
    if (epoch !== this.epoch) this.#begin(epoch);
    this.first = first;
    this.next = Math.max(next, this.next);
    if (events.length === 0) return;
    const [begin, end] = [events[0].offset, events[events.length - 1].offset];
    const adjoins = this.events.length > 0 && begin <= this.newest + 1 && end >= this.oldest - 1;
    const before = adjoins ? this.events.filter(({ offset }) => offset < begin) : [];
    const after = adjoins ? this.events.filter(({ offset }) => offset > end) : [];
    if (!adjoins) this.letGo = false;
    this.events = [...before, ...events.map((event) => ({ ...event, exact: true })), ...after];
    this.#order(before.length);
    this.#trim(keep);
  }

  /** A live event. Returns whether it follows what is held and is held now. */
  arrived(event, { epoch, offset }, at) {
    if (epoch !== this.epoch) this.#begin(epoch);
    this.next = Math.max(this.next, offset + 1);
    const follows = this.events.length === 0 || offset === this.newest + 1 || this.#gapBefore(offset);
    if (!follows) return false;
    this.events.push({ ...shown(event), offset, at: Math.max(at, this.events.at(-1)?.at ?? 0), exact: false });
    this.#trim("newer");
    return true;
  }

  /** A live event that is not to be held: only how far the log is. */
  passed({ epoch, offset }) {
    if (epoch === this.epoch) this.next = Math.max(this.next, offset + 1);
  }

  /** @param {{epoch: string, from: number, to: number, previousEpoch: string | null}} gap */
  missed({ epoch, from, to, previousEpoch }, at) {
    if (epoch !== this.epoch) this.#begin(epoch);
    this.next = Math.max(this.next, to + 1);
    this.gaps.push({ from, to, at, previous: previousEpoch });
    if (this.gaps.length > GAPS_MAX) this.gaps.shift();
  }

  /** The first event whose time of storage is unknown; null if all are known. */
  get unstamped() {
    const found = this.events.findLastIndex(({ exact }) => exact);
    return this.events[found + 1] ?? null;
  }

  /**
   * Gaps, as they are drawn: {from, to, left, right, text}; `left` null for all that is before.
   * @returns {{left: number | null, right: number, text: string}[]}
   */
  holes() {
    /** @type {{left: number | null, right: number, text: string}[]} */
    const holes = this.gaps.map(({ from, to, at, previous }) => {
      const before = this.#near(from - 1);
      const behind = this.#near(to + 1);
      return {
        left: Math.min(before?.at ?? at, behind?.at ?? at),
        right: behind?.at ?? at,
        text: gapText(from, to, previous),
      };
    });
    const oldest = this.events[0];
    if (oldest && oldest.offset > 1 && oldest.offset === this.first) {
      holes.unshift({
        left: null,
        right: oldest.at,
        text: `${offsets(1, oldest.offset - 1)} no longer in the history`,
      });
    } else if (oldest && oldest.offset > this.first) {
      const words = this.letGo ? "unloaded by this page" : "not loaded";
      holes.unshift({ left: null, right: oldest.at, text: `${offsets(this.first, oldest.offset - 1)} ${words}` });
    }
    return holes;
  }

  #near(offset) {
    return this.events.find((event) => event.offset === offset) ?? null;
  }

  #gapBefore(offset) {
    return this.gaps.some(({ to }) => to === offset - 1);
  }

  #begin(epoch) {
    if (this.epoch) this.gaps = [];
    this.epoch = epoch;
    this.events = [];
    this.first = 1;
    this.next = 1;
    this.letGo = false;
  }

  /** Events after one with an exact time are not earlier: log order is time order. */
  #order(from) {
    for (let index = Math.max(from, 1); index < this.events.length; index++) {
      const [before, event] = [this.events[index - 1], this.events[index]];
      if (event.at < before.at) this.events[index] = { ...event, at: before.at };
    }
  }

  #trim(keep) {
    const excess = this.events.length - HELD_MAX;
    if (excess <= 0) return;
    if (keep === "newer") {
      this.events.splice(0, excess);
      this.letGo = true;
    } else {
      this.events.length = HELD_MAX;
    }
  }
}

/** The stored form of a live event: as for past events, but without size and feed sequence, which are unknown yet. */
function shown(event) {
  const { id, source, type, subject = null, time = null } = event;
  return { id, source, type, subject, time, preview: preview(event), feed: null, sequence: null, size: null };
}

function preview({ data, data_base64: binary, datacontenttype = "binary data" }) {
  if (typeof binary === "string") return `${Math.floor((binary.length * 3) / 4)} B of ${datacontenttype}`;
  return data === undefined ? "" : JSON.stringify(data).slice(0, PREVIEW_CHARS);
}

function offsets(from, to) {
  return from === to ? `#${from}` : `#${from} to #${to}`;
}

function gapText(from, to, previous) {
  if (previous !== null && previous !== undefined) {
    return "The log started a new epoch; the number of missed events is unknown";
  }
  return to < from
    ? "An unknown number of events is missing"
    : `${offsets(from, to)} ${from === to ? "is" : "are"} missing`;
}
