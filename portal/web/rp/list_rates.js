/** Rates of the rows of a list: from the samples of domain.admin, or where these are not for the reader from ends of logs. */

import { rate } from "../format.js";
import { Rate, rateText } from "../poll.js";
import { serverNow } from "../times.js";

/** @import { GatewayLoadRow } from "../shapes.d.ts" */

/**
 * @typedef {{in: unknown, out?: unknown, idle: boolean, about?: string, samples: number[], slots?: number}} RowRate `in`, `out`: Quantities or text
 */

export const SLOTS = 60; // seconds of the small lines
const SMOOTH = 4; // ticks that the number shown is the mean of, so that it can be read
const HOT_MAX = 20; // RPs that a sample names; fewer: nothing moved at the others
const FRESH_MS = 15_000;

/**
 * From samples, each of which names the RPs that moved most at a gateway. Of an RP that a full list does not name it is known
 * that less moved there than at the least of those named: "< 12.0 /s".
 */
export class ListRates {
  #gateways = new Map(); // gateway -> {at, named: Map(rp -> {in, out}), least}
  #ticks = new Map(); // rp -> [{in, out}], the newest SLOTS
  #least = 0;

  /** @param {Pick<GatewayLoadRow, "gateway" | "at" | "interval_s" | "hot">} sample of the domain */
  take({ gateway, at, interval_s: interval, hot }) {
    const named = new Map(hot.map((row) => [row.rp, { in: row.events_in / interval, out: row.deliveries / interval }]));
    const moved = [...named.values()].map((row) => row.in + row.out);
    this.#gateways.set(gateway, { at: Date.parse(at), named, least: named.size >= HOT_MAX ? Math.min(...moved) : 0 });
  }

  /** @param {string} gateway that has ended */
  forget(gateway) {
    this.#gateways.delete(gateway);
  }

  /** A second has passed. @param {string[]} rps the rows of now */
  tick(rps) {
    const now = serverNow();
    const fresh = [...this.#gateways.values()].filter(({ at }) => now - at <= FRESH_MS);
    this.#least = fresh.reduce((total, { least }) => total + least, 0);
    const kept = new Map();
    for (const rp of rps) {
      const ticks = this.#ticks.get(rp) ?? [];
      const sum = { in: 0, out: 0 };
      for (const { named } of fresh) {
        sum.in += named.get(rp)?.in ?? 0;
        sum.out += named.get(rp)?.out ?? 0;
      }
      ticks.push(sum);
      if (ticks.length > SLOTS) ticks.shift();
      kept.set(rp, ticks);
    }
    this.#ticks = kept;
  }

  /** Rates to show for an RP; null before the first data. @param {string} rp @returns {RowRate | null} */
  of(rp) {
    const ticks = this.#ticks.get(rp);
    if (!ticks || this.#gateways.size === 0) return null;
    const latest = ticks.slice(-SMOOTH);
    const mean = (name) => latest.reduce((total, tick) => total + tick[name], 0) / latest.length;
    const [eventsIn, out] = [mean("in"), mean("out")];
    const idle = eventsIn + out === 0;
    const bounded = idle && this.#least > 0;
    const shown = (value) => (bounded ? `< ${rate(this.#least)}` : rate(value));
    return {
      in: shown(eventsIn),
      out: shown(out),
      idle,
      about: bounded
        ? "Every second each gateway reports its busiest rendezvous points; this one is not among them."
        : "",
      samples: ticks.map((tick) => tick.in),
      slots: SLOTS,
    };
  }
}

/** From successive looks at the ends of the logs (poll.js). */
export class PolledRates {
  #rates = new Map();

  /** @param {string} rp @param {{epoch: string, offset: number}} end @param {number} at @returns {RowRate | null} */
  look(rp, end, at) {
    const known = this.#rates.get(rp) ?? new Rate();
    this.#rates.set(rp, known);
    const perSecond = known.look(end.epoch, end.offset, at);
    return perSecond === null ? null : { in: rateText(perSecond), idle: perSecond === 0, samples: known.samples };
  }
}
