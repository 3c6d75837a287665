/** A report's numbers, names and times as people read them. Pure. */

import { bytes, count, duration } from "../format.js";
import { formatter } from "../times.js";

/** @type {Intl.DateTimeFormatOptions} */
const DATE = { day: "numeric", month: "short", year: "numeric" };
/** @type {Intl.DateTimeFormatOptions} */
const DATE_TIME = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
const FRACTION = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });
const NOTHING = "–";
const HOUR_MS = 3_600_000;

/**
 * A value of a report in its unit (docs/reports.md): a Quantity of format.js, or text.
 * @param {unknown} value @param {string} unit
 */
export function shown(value, unit) {
  if (value === null || value === undefined) return NOTHING;
  if (unit === "UTC") return instant(String(value));
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return value === "" ? NOTHING : String(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "microseconds") return duration(value / 1000);
  if (unit === "seconds") return duration(value * 1000);
  return Number.isInteger(value) ? count(value) : Math.abs(value) < 1000 ? FRACTION.format(value) : count(value);
}

/** The unit to show beside a number; empty where the number's format already implies it. */
export function unitBeside(unit) {
  return ["UTC", "bytes", "microseconds", "seconds", "", "as unit says", "by kind"].includes(unit) ? "" : unit;
}

/** A text of the documents without its marks of code. @param {string} text */
export function plain(text) {
  return text.replaceAll("`", "");
}

/** "publish_p99_us" is "publish p99". @param {string} name */
export function spoken(name) {
  const words = name.replace(/_(us|s)$/, "").replaceAll("_", " ");
  return words.replace(/\brp(s?)\b/, "rendezvous point$1");
}

/** @param {string} iso */
export function instant(iso) {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? String(iso) : formatter(DATE_TIME).format(at);
}

/** The time that a run is about: a day, an hour, or from and to. @param {{from: string, to: string}} run */
export function period({ from, to }) {
  const begin = new Date(from);
  const end = new Date(to);
  const length = end.getTime() - begin.getTime();
  if (length === HOUR_MS) return `${formatter(DATE_TIME).format(begin)}, one hour`;
  const whole = (at) => at.getUTCHours() + at.getUTCMinutes() + at.getUTCSeconds() === 0;
  if (whole(begin) && whole(end)) {
    const utc = (at) => formatter(DATE).format(new Date(at.getTime() + at.getTimezoneOffset() * 60_000));
    const last = new Date(end.getTime() - 1);
    return length <= 24 * HOUR_MS ? `${utc(begin)} (UTC)` : `${utc(begin)} to ${utc(last)} (UTC)`;
  }
  return `${formatter(DATE_TIME).format(begin)} to ${formatter(DATE_TIME).format(end)}`;
}

/** A short list or series of a report as objects: column name -> value. */
export function rowsOf(part) {
  if (!part) return [];
  const names = part.columns.map(({ name }) => name);
  return part.rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index]])));
}

/** Change from `before` to `now` in percent, as text with its sign; empty where there is none. */
export function change(now, before) {
  if (typeof now !== "number" || typeof before !== "number" || now === before) return "";
  if (before === 0) return "new";
  const percent = (100 * (now - before)) / Math.abs(before);
  const size = Math.abs(percent);
  return `${percent > 0 ? "+" : "−"}${size < 1 ? FRACTION.format(Math.max(size, 0.01)) : Math.round(size).toLocaleString()} %`;
}
