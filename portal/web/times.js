/**
 * Instants as a reader reads them: in their own zone, or in UTC where they chose that (pages/theme.js, pages/base.js), with the exact
 * instant in UTC as the title.
 */

/** @type {Intl.DateTimeFormatOptions} */
const TO_THE_MILLISECOND = {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
};
/** @type {Intl.DateTimeFormatOptions} */
const DAY = { day: "numeric", month: "short" };
/** @type {Intl.DateTimeFormatOptions} */
const TO_THE_MINUTE = { hour: "2-digit", minute: "2-digit" };
const MINUTE_MS = 60_000;
const TICK_MS = 1_000;

/** Difference between this browser's clock and the domain's, so that countdowns follow the domain's clock. */
const skewMs = Number(globalThis.document?.documentElement.dataset.now || Date.now()) - Date.now();

/** The domain's clock now, in milliseconds since 1970: what ages and countdowns are taken by. */
export function serverNow() {
  return Date.now() + skewMs;
}

/** The zone that times are shown in: "UTC", or undefined for the reader's own. */
export function zone() {
  return globalThis.document?.documentElement?.dataset.times === "utc" ? "UTC" : undefined;
}

const formats = new Map();

/** A formatter for the zone that is chosen now. @param {Intl.DateTimeFormatOptions} parts */
export function formatter(parts) {
  const key = JSON.stringify([parts, zone()]);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(undefined, { ...parts, timeZone: zone() }));
  return formats.get(key);
}

/** How far the chosen zone is ahead of UTC at an instant, milliseconds. @param {number} at */
export function zoneMs(at) {
  return zone() ? 0 : -new Date(at).getTimezoneOffset() * MINUTE_MS;
}

/** An instant as a field of type datetime-local takes it, in the chosen zone, to the minute; "" for none. @param {string} iso */
export function fieldOf(iso) {
  const at = Date.parse(iso);
  return Number.isNaN(at) ? "" : new Date(at + zoneMs(at)).toISOString().slice(0, 16);
}

/** The instant that was typed into such a field, in the chosen zone; NaN for none. @param {string} text */
export function instantOf(text) {
  return text ? Date.parse(zone() ? `${text}Z` : text) : NaN;
}

/** @param {number | Date} at */
function isToday(at) {
  const day = formatter({ dateStyle: "short" });
  return day.format(at) === day.format(Date.now());
}

/** Day and time. @param {number} at */
function dateTime(at) {
  return `${formatter({ dateStyle: "medium", timeStyle: "short" }).format(at)}${zone() ? " UTC" : ""}`;
}

/** @param {number} count @param {string} noun */
function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * A stretch of time in two units at most: "23 h 59 min".
 * @param {number} ms
 */
export function stretch(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const days = Math.floor(seconds / 86_400);
  const hours = Math.floor((seconds % 86_400) / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  if (days > 0) return `${plural(days, "day")} ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  if (minutes > 0) return `${minutes} min ${seconds % 60} s`;
  return `${seconds} s`;
}

/**
 * A short time of day, with the day if it is not today.
 * @param {Date} instant
 */
export function timeOfDay(instant) {
  return formatter(isToday(instant) ? TO_THE_MILLISECOND : { ...DAY, ...TO_THE_MINUTE }).format(instant);
}

/**
 * The time of an event, to the millisecond on any day: "14:03:07.125", "23 Nov, 14:03:07.125".
 * @param {number | Date} at
 */
export function momentText(at) {
  return formatter(isToday(at) ? TO_THE_MILLISECOND : { ...DAY, ...TO_THE_MILLISECOND }).format(at);
}

/** Text of each kind of <time> by its mark, for an instant in milliseconds, at `now`. */
const SAYS = {
  local: dateTime,
  clock: (at) => timeOfDay(new Date(at)),
  moment: (at) => momentText(at),
  countdown: (at, now) => (at > now ? `in ${stretch(at - now)}` : "ended"),
  age: (at, now) => (at > now ? "now" : `${stretch(now - at)} ago`),
};

/**
 * Fill each <time datetime="…"> that is marked, and keep the moving ones right, also those that appear later:
 * data-local (day and time), data-clock (time of day), data-moment (of an
 * event, to the millisecond), data-countdown ("in 3 min 4 s"), data-age ("12 s ago").
 * Hovering shows the exact instant.
 */
export function startTimes() {
  const fill = () => fillTimes(document);
  fill();
  setInterval(fill, TICK_MS);
  document.addEventListener("visibilitychange", fill);
  document.addEventListener("herald-look", fill);
}

/** Fill those in `root` now: for what a script has just drawn. @param {ParentNode} root */
export function fillTimes(root) {
  if (document.hidden) return;
  const now = serverNow();
  /** @type {NodeListOf<HTMLTimeElement>} */
  const found = root.querySelectorAll(
    Object.keys(SAYS)
      .map((mark) => `time[data-${mark}]`)
      .join(),
  );
  for (const element of found) {
    const at = Date.parse(element.dateTime);
    if (Number.isNaN(at)) continue;
    const mark = Object.keys(SAYS).find((name) => name in element.dataset);
    const text = SAYS[mark](at, now);
    if (element.textContent !== text) element.textContent = text;
    const title = mark === "local" ? new Date(at).toISOString() : `${dateTime(at)} (${new Date(at).toISOString()})`;
    if (element.title !== title) element.title = title;
  }
}
