/** Instants as a reader reads them: in their own zone, with the exact instant in UTC as the title. */

const DATE_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
/** @type {Intl.DateTimeFormatOptions} */
const TO_THE_MILLISECOND = {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
};
const TIME = new Intl.DateTimeFormat(undefined, TO_THE_MILLISECOND);
const DAY_TO_THE_MILLISECOND = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  ...TO_THE_MILLISECOND,
});
const DAY_TIME = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const TICK_MS = 1_000;

/** Difference between this browser's clock and the domain's, so that countdowns follow the domain's clock. */
const skewMs = Number(globalThis.document?.documentElement.dataset.now || Date.now()) - Date.now();

/** The domain's clock now, in milliseconds since 1970: what ages and countdowns are taken by. */
export function serverNow() {
  return Date.now() + skewMs;
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
  return instant.toDateString() === new Date().toDateString() ? TIME.format(instant) : DAY_TIME.format(instant);
}

/**
 * The time of an event, to the millisecond on any day: "14:03:07.125", "23 Nov, 14:03:07.125".
 * @param {number | Date} at
 */
export function momentText(at) {
  return (new Date(at).toDateString() === new Date().toDateString() ? TIME : DAY_TO_THE_MILLISECOND).format(at);
}

/** Text of each kind of <time> by its mark, for an instant in milliseconds, at `now`. */
const SAYS = {
  local: (at) => DATE_TIME.format(at),
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
    const title =
      mark === "local" ? new Date(at).toISOString() : `${DATE_TIME.format(at)} (${new Date(at).toISOString()})`;
    if (element.title !== title) element.title = title;
  }
}
