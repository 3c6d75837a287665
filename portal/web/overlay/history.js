/** The last day of the overlay: domains, links, round-trip times and messages between domains over time. */

import { byId } from "../elements.js";
import { count, duration, rate } from "../format.js";
import { Plot } from "../plot.js";
import { getJson } from "../requests.js";

const DAY_S = 86_400;
const EVERY_MS = 60_000; // as often as samples are taken

/** @typedef {{id: string, title: string, format: (value: number) => unknown, lines: {name: string, of: string, dash?: number[]}[]}} Drawn */

const DASH = [6, 3];
/** @type {Drawn[]} */
const PLOTS = [
  {
    id: "history-domains",
    title: "Domains",
    format: count,
    lines: [
      { name: "known", of: "domains" },
      { name: "live", of: "live", dash: DASH },
    ],
  },
  {
    id: "history-links",
    title: "Links",
    format: count,
    lines: [
      { name: "chosen here", of: "chosen" },
      { name: "chosen by others", of: "accepted", dash: DASH },
    ],
  },
  {
    id: "history-times",
    title: "Round-trip times of links",
    format: duration,
    lines: [
      { name: "median", of: "rtt_p50_ms" },
      { name: "90th percentile", of: "rtt_p90_ms", dash: DASH },
    ],
  },
  {
    id: "history-messages",
    title: "Events from other domains",
    format: (value) => rate(value),
    lines: [
      { name: "new", of: "events" },
      { name: "copies", of: "copies", dash: DASH },
    ],
  },
];

export class OverlayHistory {
  #url;
  #onLast;
  /** @type {[Plot, string[]][]} */
  #plots = [];
  #element;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;

  /**
   * @param {HTMLElement} element with a box for each plot
   * @param {{url: string, onLast: (last: Record<string, number | null>) => void}} options `onLast`: the newest point, after each answer
   */
  constructor(element, { url, onLast }) {
    this.#element = element;
    this.#url = url;
    this.#onLast = onLast;
    document.addEventListener("visibilitychange", () => !document.hidden && this.#timer && void this.refresh());
  }

  /** Begin to ask, once; the page calls this when this domain takes part in an overlay. */
  begin() {
    if (this.#timer) return;
    this.#timer = setInterval(() => !document.hidden && void this.refresh(), EVERY_MS);
    void this.refresh();
  }

  async refresh() {
    let answer;
    try {
      answer = await getJson(this.#url);
    } catch {
      return; // the page says what is wrong
    }
    const { at, series } = answer;
    this.#element.classList.toggle("without", at.length === 0);
    if (at.length === 0) return;
    if (this.#plots.length === 0) this.#make();
    for (const [plot, names] of this.#plots) {
      const columns = names.map((name) => series[name]);
      plot.show(at, columns);
    }
    this.#onLast(Object.fromEntries(Object.entries(series).map(([name, values]) => [name, values.at(-1)])));
  }

  #make() {
    for (const { id, title, format, lines } of PLOTS) {
      const plot = new Plot(byId(id), { title, format, series: lines, spanS: DAY_S, height: 130 });
      this.#plots.push([plot, lines.map(({ of }) => of)]);
    }
  }
}
