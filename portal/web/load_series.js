/**
 * The domain's load in a range of time: the history (GET /console/load) and later samples, summed as in
 * portal/console/load_history.py.
 *
 * A sample has the counts of one gateway in an interval: its counts are spread over the steps that the interval touches;
 * the rate of a step is what all gateways did in it, by the part of it that is known.
 */

import { Series } from "./series.js";

/** @import { GatewaySampleData } from "./shapes.d.ts" */

/** @typedef {{start: number, until: number, step_s?: number, steps?: number, series: Record<string, (number | null)[]>, seen: Record<string, number>}} LoadAnswer */

export const STEPS = 360;
export const STEP_S = 10;
export const RATES = ["events_in", "bytes_in", "deliveries", "bytes_out", "publishes", "refused", "cpu_s"];
export const NOW = ["sessions", "readings", "rss_bytes"];
export const MOST = ["lag_ms"];
export const COUNTS = ["rps", "subscriptions", "reserved_bytes", "backlog"];
const INTERVAL_S_MAX = 60;
const OPEN_STEPS = 8; // steps that late samples may still change: an interval of 60 s reaches so far back

export class LoadSeries {
  series = seriesOf(STEP_S, STEPS);
  #stepS = STEP_S;
  #open = new Map(); // start of a step -> {sums, until, now: Map(gateway -> numbers), counts}
  #seen = new Map(); // gateway -> end of its newest sample, seconds since 1970

  /** Begin with the domain's answer. @param {LoadAnswer} answer */
  reset({ start, until, step_s: stepS = STEP_S, steps = STEPS, series, seen }) {
    this.#stepS = stepS;
    this.series = seriesOf(stepS, steps);
    this.series.reset(start, series);
    this.#open.clear();
    this.#seen = new Map(Object.entries(seen));
    const last = this.series.times.at(-1);
    if (last === undefined) return;
    const known = (name) => this.series.column(name).at(-1);
    const sums = Object.fromEntries(RATES.map((name) => [name, (known(name) ?? 0) * (until - last)]));
    this.#open.set(last, {
      sums,
      until,
      now: new Map(),
      most: Object.fromEntries(MOST.map((name) => [name, known(name) ?? 0])),
      counts: Object.fromEntries(COUNTS.map((name) => [name, known(name)])),
    });
  }

  /**
   * Take a sample of a gateway (data of io.herald.load.sampled at domain.admin); one that was counted already changes nothing.
   * @param {Partial<GatewaySampleData> & Pick<GatewaySampleData, "at" | "interval_s">} sample
   * @param {number} backlog events that wait for peers now
   */
  add(sample, backlog) {
    const end = Date.parse(sample.at) / 1000;
    if (end <= (this.#seen.get(sample.gateway) ?? -Infinity)) return;
    this.#seen.set(sample.gateway, end);
    const interval = Math.min(Math.max(sample.interval_s, 1e-3), INTERVAL_S_MAX);
    const begin = end - interval;
    for (let start = Math.floor(begin / this.#stepS) * this.#stepS; start < end; start += this.#stepS) {
      const until = Math.min(end, start + this.#stepS);
      const covered = until - Math.max(begin, start);
      if (covered <= 0) continue;
      const step = this.#step(start, until);
      for (const name of RATES) step.sums[name] += ((sample[name] ?? 0) * covered) / interval;
      for (const name of MOST) step.most[name] = Math.max(step.most[name], sample[name] ?? 0);
      step.now.set(sample.gateway, sample);
      for (const name of COUNTS) step.counts[name] = sample.counts?.[name] ?? step.counts[name];
      step.counts.backlog = backlog;
      this.series.set(start, values(step, start));
    }
  }

  /** Remove a gateway that has ended from the current numbers. @param {string} gateway */
  forget(gateway) {
    this.#seen.delete(gateway);
    for (const step of this.#open.values()) step.now.delete(gateway);
  }

  #step(start, until) {
    let step = this.#open.get(start);
    if (!step) {
      const newest = [...this.#open.values()].at(-1);
      step = {
        sums: Object.fromEntries(RATES.map((name) => [name, 0])),
        until,
        now: new Map(),
        most: Object.fromEntries(MOST.map((name) => [name, 0])),
        counts: { ...newest?.counts },
      };
      this.#open.set(start, step);
      while (this.#open.size > OPEN_STEPS) this.#open.delete(this.#open.keys().next().value);
    }
    step.until = Math.max(step.until, until);
    return step;
  }
}

function values({ sums, until, now, most, counts }, start) {
  const known = Math.max(until - start, 1e-3);
  const sum = (name) => [...now.values()].reduce((total, sample) => total + (sample[name] ?? 0), 0);
  return {
    ...Object.fromEntries(RATES.map((name) => [name, sums[name] / known])),
    ...Object.fromEntries(NOW.map((name) => [name, sum(name)])),
    ...most,
    ...Object.fromEntries(COUNTS.map((name) => [name, counts[name] ?? null])),
  };
}

function seriesOf(stepS, steps) {
  return new Series([...RATES, ...NOW, ...MOST, ...COUNTS], { stepS, steps });
}
