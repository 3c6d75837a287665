/**
 * The list of events: oldest at the top, newest at the bottom, as a terminal shows them.
 *
 * Rows are drawn once per frame, however many events arrive, and at most ROWS_MAX are kept. The list follows the newest
 * event while it is scrolled to its end and no row is open; otherwise what is being read stays where it is.
 */

import { momentText } from "./times.js";

export const ROWS_MAX = 500;
const PREVIEW_CHARS = 300;
const AT_END_PX = 24;
const WHOLE = new Intl.NumberFormat();

export class EventList {
  #list;
  #empty;
  #newest;
  #waiting = []; // rows to be drawn: functions that make the element
  #skipped = 0; // events that arrived faster than they can be shown
  #scheduled = false;
  #paused = false;
  #held = 0; // events that arrived while paused
  #onHeld;

  /**
   * @param {{list: HTMLElement, empty: HTMLElement, newest: HTMLElement, onHeld: (count: number) => void}} parts
   */
  constructor({ list, empty, newest, onHeld }) {
    this.#list = list;
    this.#empty = empty;
    this.#newest = newest;
    this.#onHeld = onHeld;
    list.addEventListener("scroll", () => this.#showNewestButton(), { passive: true });
    newest.addEventListener("click", () => this.#toNewest());
  }

  get paused() {
    return this.#paused;
  }

  /** @param {import("../../client/js/herald.js").Received} received */
  add(received) {
    this.#put(() => eventRow(received));
    if (this.#paused) this.#onHeld(++this.#held);
  }

  /** @param {import("../../client/js/herald.js").Gap} gap */
  addGap(gap) {
    this.#put(() => markRow("mark-row", gapText(gap)));
  }

  pause() {
    this.#paused = true;
    this.#held = 0;
  }

  resume() {
    this.#paused = false;
    this.#schedule();
  }

  /** Shown again after being hidden: scroll to the end, if the reader was there. */
  shown() {
    if (this.#list.querySelector("details[open]") === null && this.#newest.hidden) {
      this.#list.scrollTop = this.#list.scrollHeight;
    }
  }

  clear() {
    this.#waiting = [];
    this.#skipped = 0;
    this.#held = 0;
    this.#list.replaceChildren();
    this.#empty.hidden = false;
    this.#newest.hidden = true;
  }

  #put(row) {
    this.#waiting.push(row);
    if (this.#waiting.length > ROWS_MAX) {
      this.#waiting.shift();
      this.#skipped++;
    }
    if (!this.#paused) this.#schedule();
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      if (!this.#paused) this.#draw();
    });
  }

  #draw() {
    if (this.#waiting.length === 0) return;
    const follow = this.#follows();
    const rows = document.createDocumentFragment();
    if (this.#skipped) {
      const many = this.#skipped === 1 ? "1 earlier row is" : `${WHOLE.format(this.#skipped)} earlier rows are`;
      rows.append(markRow("mark-row plain", `${many} not shown: this page holds the newest ${ROWS_MAX}.`));
      this.#skipped = 0;
    }
    for (const row of this.#waiting) rows.append(row());
    this.#waiting = [];
    this.#empty.hidden = true;
    this.#list.append(rows);
    this.#trim(follow);
    if (follow) this.#list.scrollTop = this.#list.scrollHeight;
    this.#showNewestButton();
  }

  /** Remove the oldest rows beyond the bound, and keep what is being read where it is. */
  #trim(follow) {
    const excess = this.#list.childElementCount - ROWS_MAX;
    if (excess <= 0) return;
    const height = this.#list.scrollHeight;
    for (let count = 0; count < excess; count++) this.#list.firstElementChild.remove();
    if (!follow) this.#list.scrollTop -= height - this.#list.scrollHeight;
  }

  #atEnd() {
    return this.#list.scrollHeight - this.#list.scrollTop - this.#list.clientHeight < AT_END_PX;
  }

  #follows() {
    return this.#atEnd() && this.#list.querySelector("details[open]") === null;
  }

  #showNewestButton() {
    this.#newest.hidden = this.#atEnd();
  }

  #toNewest() {
    this.#list.scrollTop = this.#list.scrollHeight;
    this.#newest.hidden = true;
    this.#list.focus({ preventScroll: true });
  }
}

/**
 * A row of a list of events, which shows the whole event when it is opened.
 * @param {{rp: string, epoch?: string, offset: number, event: any}} received
 */
export function eventRow({ rp, epoch, offset, event }) {
  const item = document.createElement("li");
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  const time = element("time", "ev-time", "");
  const instant = new Date(event.time ?? "");
  if (Number.isNaN(instant.getTime())) {
    time.textContent = "no time";
  } else {
    time.textContent = momentText(instant);
    time.dateTime = time.title = event.time;
  }
  summary.append(
    element("span", "ev-offset", `#${offset}`),
    time,
    element("span", "ev-type", String(event.type)),
    element("span", "ev-data", preview(event)),
  );
  details.append(summary);
  item.append(details);
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const raw = element("pre", "ev-raw", JSON.stringify(event, null, 2));
    const links = element("p", "ev-link small", "");
    const route = element("a", "", "Bytes, origin and route in the timescale");
    route.href = `/timescale?${new URLSearchParams({ rp, event: String(offset) })}`;
    const own = element("a", "", "Link to this event");
    own.href = linkOf(rp, epoch, offset);
    links.append(own, " · ", route);
    details.append(raw, links);
  });
  return item;
}

/** The address of one event on its RP's page: it opens it. @param {string} rp @param {string | undefined} epoch @param {number} offset */
export function linkOf(rp, epoch, offset) {
  return `/rps/${rp}?${new URLSearchParams({ event: epoch ? `${epoch}:${offset}` : String(offset) })}#events-tab`;
}

/** Write the times of rows anew: another zone was chosen. @param {ParentNode} list */
function fillRows(list) {
  for (const time of list.querySelectorAll("time.ev-time[datetime]")) {
    time.textContent = momentText(Date.parse(time.getAttribute("datetime") ?? ""));
  }
}

document.addEventListener("herald-look", () => fillRows(document));

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function markRow(className, text) {
  return element("li", className, text);
}

function preview(event) {
  if ("data" in event) {
    const text = typeof event.data === "string" ? event.data : JSON.stringify(event.data);
    return text.slice(0, PREVIEW_CHARS);
  }
  if (typeof event.data_base64 === "string") {
    const padding = event.data_base64.endsWith("==") ? 2 : event.data_base64.endsWith("=") ? 1 : 0;
    return `${WHOLE.format((event.data_base64.length * 3) / 4 - padding)} bytes of ${event.datacontenttype ?? "binary data"}`;
  }
  return "no data";
}

function gapText(gap) {
  const known =
    gap.missing === 0
      ? ""
      : gap.missing === 1
        ? `Event #${gap.from} is no longer in the history.`
        : `Events #${gap.from} to #${gap.to} are no longer in the history.`;
  if (gap.previousEpoch === null) return known || "Some events are no longer in the history.";
  return `The log has started a new epoch (${gap.epoch}); the number of events missed in the old one is unknown. ${known}`;
}
