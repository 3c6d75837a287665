/** Processor, memory and event-loop lag of the gateways in the chosen range, on the page of the system. */

import { byId } from "./elements.js";
import { bytes, duration } from "./format.js";
import { Plot } from "./plot.js";
import { RANGES, beginsLater, chosenRange, startRange } from "./ranges.js";
import { SessionEnded, getJson } from "./requests.js";
import { serverNow } from "./times.js";

const EVERY_MS = 10_000;
const CORES = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });

/** Id of the box, title, series of the load, how a value reads, and how far the scale reaches at least. */
const PLOTS = /** @type {[string, string, string, (value: number) => unknown, number][]} */ ([
  ["past-cpu", "Processors in use by gateways", "cpu_s", (value) => CORES.format(value), 0.1],
  ["past-memory", "Memory of the gateways", "rss_bytes", bytes, 1024 ** 2],
  ["past-lag", "Greatest event-loop lag", "lag_ms", duration, 10],
]);

/** @param {string} url of the load */
export function startSystemPast(url) {
  let range = chosenRange();
  let attempt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const titled = (title) => `${title}, ${RANGES[range].words}`;
  const plots = PLOTS.map(([id, title, name, format, max]) => {
    const spanS = RANGES[range].seconds;
    const series = [{ name: "all gateways", fill: true }];
    return { title, name, plot: new Plot(byId(id), { title: titled(title), format, series, spanS, max, height: 130 }) };
  });

  async function look() {
    clearTimeout(timer);
    const mine = ++attempt;
    byId("past-title").textContent = titled("Gateways");
    for (const { plot, title } of plots) plot.range(RANGES[range].seconds, titled(title));
    try {
      if (!document.hidden) {
        const { start, step_s: stepS, series } = await getJson(`${url}?range=${range}`);
        if (mine !== attempt) return;
        const times = (series.cpu_s ?? []).map((_, index) => start + index * stepS);
        for (const { plot, name } of plots) plot.show(times, [series[name] ?? []]);
        byId("past-begin").textContent = beginsLater(range, times, serverNow() / 1000);
      }
    } catch (error) {
      if (error instanceof SessionEnded) return;
    }
    if (mine === attempt) timer = setTimeout(() => void look(), EVERY_MS);
  }

  startRange(byId("range"), (name) => {
    range = name;
    void look();
  });
  void look();
}
