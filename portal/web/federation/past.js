/** Events that waited for peers, in the chosen range: for all of them, or for the one that is open. Asked for again from time to time. */

import { byId } from "../elements.js";
import { count } from "../format.js";
import { Plot } from "../plot.js";
import { RANGES, beginsLater, chosenRange, startRange } from "../ranges.js";
import { SessionEnded, getJson } from "../requests.js";
import { serverNow } from "../times.js";

const EVERY_MS = 10_000;

export class BacklogPlot {
  #url;
  #peer = "";
  #range = chosenRange();
  #plot;
  #attempt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {string} url of the load */
  constructor(url) {
    this.#url = url;
    this.#plot = new Plot(byId("past"), {
      title: this.#title(),
      format: count,
      series: [{ name: "waiting", fill: true }],
      spanS: RANGES[this.#range].seconds,
      height: 130,
    });
    startRange(byId("range"), (name) => {
      this.#range = name;
      void this.look();
    });
  }

  #title() {
    return `Events waiting for ${this.#peer || "peers"}, ${RANGES[this.#range].words}`;
  }

  /** Show a peer; "" for all. @param {string} peer */
  of(peer) {
    if (peer === this.#peer && this.#timer) return;
    this.#peer = peer;
    void this.look();
  }

  /** Ask, and again after a while. */
  async look() {
    clearTimeout(this.#timer);
    const mine = ++this.#attempt;
    this.#plot.range(RANGES[this.#range].seconds, this.#title());
    byId("past-title").textContent = this.#title();
    try {
      if (!document.hidden) {
        const query = new URLSearchParams({ range: this.#range, ...(this.#peer && { peer: this.#peer }) });
        const { start, step_s: stepS, series } = await getJson(`${this.#url}?${query}`);
        if (mine !== this.#attempt) return;
        const known = series.backlog ?? [];
        const times = known.map((_, index) => start + index * stepS);
        this.#plot.show(times, [known]);
        byId("past-begin").textContent = beginsLater(this.#range, times, serverNow() / 1000);
      }
    } catch (error) {
      if (error instanceof SessionEnded) return;
    }
    if (mine === this.#attempt) this.#timer = setTimeout(() => void this.look(), EVERY_MS);
  }
}
