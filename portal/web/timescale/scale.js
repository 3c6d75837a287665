/** The axis of time: which stretch of it is seen, and where an instant lies on the screen. Pure; instants are Unix milliseconds. */

import { zone as chosenZone, zoneMs as zoneOffsetMs } from "../times.js";

export const SPAN_MIN_MS = 10;
export const SPAN_MAX_MS = 400 * 86_400_000; // longer than any history is kept
const AT_MAX_MS = 253_402_300_799_999; // the end of the year 9999

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  SECOND,
  2 * SECOND,
  5 * SECOND,
  10 * SECOND,
  15 * SECOND,
  30 * SECOND,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
  28 * DAY,
  56 * DAY,
];

/** A stretch of time drawn `width` pixels wide. It never changes: moving and zooming give another one. */
export class Scale {
  constructor(from, to, width) {
    const span = Math.min(Math.max(to - from, SPAN_MIN_MS), SPAN_MAX_MS);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, 0), AT_MAX_MS - span);
    this.to = this.from + span;
    this.width = Math.max(width, 1);
  }

  get span() {
    return this.to - this.from;
  }

  get msPerPixel() {
    return this.span / this.width;
  }

  /** The pixel of an instant; outside 0 to `width` for what is not seen. */
  x(at) {
    return (at - this.from) / this.msPerPixel;
  }

  at(x) {
    return this.from + x * this.msPerPixel;
  }

  /** Zoom: `factor` below 1 zooms in; the instant `anchor` keeps its position. */
  zoomed(factor, anchor = (this.from + this.to) / 2) {
    const span = Math.min(Math.max(this.span * factor, SPAN_MIN_MS), SPAN_MAX_MS);
    const from = anchor - ((anchor - this.from) / this.span) * span;
    return new Scale(from, from + span, this.width);
  }

  /** Later by `ms`, or earlier if it is negative. */
  moved(ms) {
    return new Scale(this.from + ms, this.to + ms, this.width);
  }

  endingAt(to) {
    return new Scale(to - this.span, to, this.width);
  }

  around(at) {
    return new Scale(at - this.span / 2, at + this.span / 2, this.width);
  }

  resized(width) {
    return new Scale(this.from, this.to, width);
  }

  /** The scale that shows all from `from` to `to`, with some room at both sides. */
  static fitting(from, to, width) {
    const room = Math.max((to - from) * 0.06, 500);
    return new Scale(from - room, to + room, width);
  }
}

/**
 * Positions of time labels: {at, step} each, about `spacing` pixels apart, at round times of the reader's zone.
 * @param {Scale} scale
 * @param {number} spacing
 * @param {(at: number) => number} [zoneMs] how far the zone is ahead of UTC then
 */
export function ticks(scale, spacing = 110, zoneMs = zoneOffsetMs) {
  const wanted = scale.msPerPixel * spacing;
  const step = STEPS.find((one) => one >= wanted) ?? STEPS[STEPS.length - 1];
  const ahead = zoneMs(scale.from);
  const found = [];
  for (let wall = Math.ceil((scale.from + ahead) / step) * step; ; wall += step) {
    const at = wall - (step < DAY ? ahead : zoneMs(wall - ahead)); // days begin at midnight also after the clocks were changed
    if (at > scale.to) return found;
    found.push({ at, step });
  }
}

/**
 * Text of a tick beside others `step` apart: only the distinguishing part.
 * @param {number} at @param {number} step @param {string} [zone] by default the one that the reader chose
 */
export function tickText(at, step, zone = chosenZone()) {
  const parts =
    step < SECOND
      ? { minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 }
      : step < MINUTE
        ? { hour: "2-digit", minute: "2-digit", second: "2-digit" }
        : step < DAY
          ? { hour: "2-digit", minute: "2-digit" }
          : { day: "numeric", month: "short" };
  return format(parts, zone).format(at);
}

const formats = new Map();

function format(parts, zone) {
  const key = JSON.stringify([parts, zone]);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(undefined, { ...parts, timeZone: zone }));
  return formats.get(key);
}
