/** Instants as a reader reads them: in their own zone, with the exact instant in UTC as the title. */

const DATE_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const TIME = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
});
const DAY_TIME = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const TICK_MS = 1_000;

/** How far this browser's clock is from the domain's, so that a lease counts down by the clock that ends it. */
const skewMs = Number(document.documentElement.dataset.now || Date.now()) - Date.now();

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

/** Fill every <time data-local> and keep every <time data-countdown> counting. */
export function startTimes() {
  for (const element of document.querySelectorAll("time[data-local]")) {
    const instant = new Date(element.dateTime);
    element.textContent = DATE_TIME.format(instant);
    element.title = instant.toISOString();
  }
  const countdowns = [...document.querySelectorAll("time[data-countdown]")].map((element) => {
    const instant = new Date(element.dateTime);
    element.title = `${DATE_TIME.format(instant)} (${instant.toISOString()})`;
    return { element, at: instant.getTime() };
  });
  if (countdowns.length === 0) return;
  const tick = () => {
    const now = Date.now() + skewMs;
    for (const { element, at } of countdowns) {
      const text = at > now ? `in ${stretch(at - now)}` : "ended";
      if (element.textContent !== text) element.textContent = text;
    }
  };
  tick();
  setInterval(tick, TICK_MS);
}
