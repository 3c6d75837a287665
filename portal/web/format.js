/** Numbers with their units, and instants, as people read them. Everything here is pure but for the clock in `ago`. */

import { serverNow, stretch, timeOfDay } from "./times.js";

const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const ONE = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const THREE = new Intl.NumberFormat(undefined, { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const UNKNOWN = "–";
const NARROW = "\u202f"; // between a number and its unit: narrow, never broken

/** A formatted number: `value` and `unit` apart, so that a page can show the unit smaller; the unit may be empty. */
class Quantity {
  constructor(value, unit) {
    this.value = value;
    this.unit = unit;
  }

  toString() {
    return this.unit ? `${this.value}${NARROW}${this.unit}` : this.value;
  }
}

/** @param {number} value @param {[number, string][]} scales largest first @returns {[number, string]} */
function scaled(value, scales) {
  const [size, unit] = scales.find(([least]) => Math.abs(value) >= least) ?? scales[scales.length - 1];
  return [value / size, unit];
}

/** A count: 12,345, and from a million on 1.23 M. */
export function count(value) {
  if (!isNumber(value)) return new Quantity(UNKNOWN, "");
  if (Math.abs(value) < 1e6) return new Quantity(WHOLE.format(value), "");
  const [shown, unit] = scaled(value, [
    [1e9, "G"],
    [1e6, "M"],
  ]);
  return new Quantity(THREE.format(shown), unit);
}

/** Events (or whatever `unit` names) per second. */
export function rate(value, unit = "/s") {
  if (!isNumber(value)) return new Quantity(UNKNOWN, unit);
  if (value === 0) return new Quantity("0", unit);
  if (value < 0.05) return new Quantity("< 0.1", unit);
  if (value < 100) return new Quantity(ONE.format(value), unit);
  if (value < 1e6) return new Quantity(WHOLE.format(value), unit);
  return new Quantity(THREE.format(value / 1e6), `M${unit}`);
}

/** @type {[number, string][]} */
const BYTES = [
  [1024 ** 4, "TiB"],
  [1024 ** 3, "GiB"],
  [1024 ** 2, "MiB"],
  [1024, "KiB"],
  [1, "B"],
];

/** Bytes in binary units. */
export function bytes(value) {
  if (!isNumber(value)) return new Quantity(UNKNOWN, "B");
  const [shown, unit] = scaled(value, BYTES);
  return new Quantity(unit === "B" || shown >= 100 ? WHOLE.format(shown) : ONE.format(shown), unit);
}

/** Bytes per second. */
export function byteRate(value) {
  const { value: shown, unit } = bytes(value);
  return new Quantity(shown, `${unit}/s`);
}

/** A part of a whole, both in the same unit: 42 %. */
export function percent(part, whole) {
  if (!isNumber(part) || !(whole > 0)) return new Quantity(UNKNOWN, "%");
  const share = (100 * part) / whole;
  return new Quantity(share > 0 && share < 1 ? "< 1" : WHOLE.format(share), "%");
}

/** A duration of milliseconds: 12 ms, 1.5 s, and from a minute on in two units (3 min 12 s). */
export function duration(ms) {
  if (!isNumber(ms)) return new Quantity(UNKNOWN, "");
  if (ms < 1000) return new Quantity(ms < 10 && ms > 0 ? ONE.format(ms) : WHOLE.format(ms), "ms");
  if (ms < 60_000) return new Quantity(ONE.format(ms / 1000), "s");
  return new Quantity(stretch(ms).replace(/ 0 (s|min|h)$/, ""), "");
}

/** Age of the instant `iso` by the domain's clock: "4 s", "3 min 12 s"; `null` for none. */
export function age(iso, now = serverNow()) {
  const at = Date.parse(iso ?? "");
  return Number.isNaN(at) ? null : stretch(now - at);
}

/** The time of day in the reader's zone, with the day if it is not today: "14:03:07". */
export function clock(iso) {
  const instant = new Date(iso ?? "");
  return Number.isNaN(instant.getTime()) ? UNKNOWN : timeOfDay(instant);
}

/** "1 event", "2 events": `plural(2, "event")`. */
export function plural(number, noun, nouns = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : nouns}`;
}

/**
 * Lag of a durable subscription: "7,319 behind, 6,819 of them lost". The same words as core/events/lag.py.
 * @param {number | null} events not acknowledged @param {number | null} [lost] of these, gone from the history
 */
export function behind(events, lost) {
  if (!isNumber(events)) return UNKNOWN;
  return `${count(events)} behind${lost ? `, ${count(lost)} of them lost` : ""}`;
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}
