/** The busiest rendezvous points over all gateways, steady enough to be read, and what they are called. */

import { RpLabels } from "./rp_labels.js";
import { serverNow } from "./times.js";

/** @import { GatewayLoadRow } from "./shapes.d.ts" */

const SMOOTH_S = 4; // the numbers shown are about the mean of so long
const GONE_S = 20; // a rendezvous point that no gateway has named for so long is quiet
const ROWS_MAX = 60; // 20 of each sample, and some that are on their way out
const NAMES_EVERY_MS = 5_000; // where the busiest change with each sample, names are asked for together; a lone newcomer has its at once

export class Hottest {
  /** Called when names have arrived. */
  onNames = () => {};
  #labels;
  #askedAt = -Infinity;
  #gateways = new Map(); // gateway -> Map(rp -> {eventsIn, deliveries, readings, at})

  /** @param {string} labelsUrl answers {id: name} to ?ids= */
  constructor(labelsUrl) {
    this.#labels = new RpLabels(labelsUrl, () => this.onNames());
  }

  /** Take a gateway's sample. @param {Pick<GatewayLoadRow, "gateway" | "at" | "interval_s" | "hot">} sample */
  take({ gateway, at, interval_s: interval, hot }) {
    const held = this.#gateways.get(gateway) ?? new Map();
    this.#gateways.set(gateway, held);
    const now = Date.parse(at) / 1000;
    const named = new Map(hot.map((row) => [row.rp, row]));
    const weight = Math.min(1, interval / SMOOTH_S);
    for (const rp of new Set([...held.keys(), ...named.keys()])) {
      const row = named.get(rp);
      const before = held.get(rp);
      const smooth = (name, value) => (before ? before[name] + weight * (value - before[name]) : value);
      if (!row && now - before.at > GONE_S) {
        held.delete(rp);
        continue;
      }
      held.set(rp, {
        eventsIn: smooth("eventsIn", (row?.events_in ?? 0) / interval),
        deliveries: smooth("deliveries", (row?.deliveries ?? 0) / interval),
        readings: row?.readings ?? before.readings,
        at: row ? now : before.at,
      });
    }
  }

  /** Rows of all gateways: {rp, label, eventsIn, deliveries, readings}. */
  rows() {
    const now = serverNow() / 1000;
    const sums = new Map();
    for (const [gateway, held] of this.#gateways) {
      for (const [rp, row] of held) {
        if (now - row.at > 2 * GONE_S) continue; // of a gateway that has ended
        const sum = sums.get(rp) ?? { rp, eventsIn: 0, deliveries: 0, readings: 0 };
        for (const name of ["eventsIn", "deliveries", "readings"]) sum[name] += row[name];
        sums.set(rp, sum);
      }
      if ([...held.values()].every((row) => now - row.at > 2 * GONE_S)) this.#gateways.delete(gateway);
    }
    const rows = [...sums.values()]
      .sort((a, b) => b.eventsIn + b.deliveries - a.eventsIn - a.deliveries)
      .slice(0, ROWS_MAX);
    this.#name(rows);
    return rows.map((row) => ({ ...row, label: this.#labels.of(row.rp) }));
  }

  #name(rows) {
    const now = performance.now();
    if (now - this.#askedAt < NAMES_EVERY_MS || !this.#labels.lacks(rows.map(({ rp }) => rp))) return;
    this.#askedAt = now;
    void this.#labels.ask(rows.map(({ rp }) => rp));
  }
}
