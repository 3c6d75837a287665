/** The differences of two reports of the same kind over two periods. Pure. */

import { rowsOf } from "./words.js";

/** @import { Report } from "../types.d.ts" */

const MOVERS_MAX = 10;

/** For each short list: what names a row, and by which column its rows are compared. */
const MEASURES = {
  access: {
    principals: [["principal", "issuer"], "operations"],
    operations: [["operation", "client"], "operations"],
    rps: [["rp"], "operations"],
    refusals: [["reason", "operation", "principal"], "operations"],
  },
  load: { hot: [["rp"], "moved"], latency: [["operation"], "p99_us"] },
  placement: { domains: [["domain"], "bytes_now"] },
  overlap: { regions: [["region"], "saved_readings"] },
  federation: { peers: [["peer"], "operations"], failures: [["peer", "operation", "reason"], "operations"] },
  compaction: {},
};

/**
 * Headline numbers side by side: [{name, unit, now, before}].
 * @param {Pick<Report, "headline">} now @param {Pick<Report, "headline">} before
 */
export function headlines(now, before) {
  return Object.entries(now.headline).map(([name, { value, unit }]) => ({
    name,
    unit,
    now: value,
    before: before.headline[name]?.value ?? null,
  }));
}

/**
 * Largest changes, per short list: [{list, about, column, unit, rows: [{key, now, before}]}]. A row that is not among the
 * top rows of the other report is null there: its value is unknown.
 */
export function movers(now, before) {
  return Object.entries(MEASURES[now.report] ?? {}).flatMap(([list, [keys, column]]) => {
    const part = now.tops[list];
    if (!part || !before.tops[list]) return [];
    const byKey = (report) =>
      new Map(rowsOf(report.tops[list]).map((row) => [keys.map((key) => row[key]).join(" "), row]));
    const here = byKey(now);
    const there = byKey(before);
    const rows = [...new Set([...here.keys(), ...there.keys()])]
      .map((key) => ({
        key,
        row: here.get(key) ?? there.get(key),
        now: here.get(key)?.[column] ?? null,
        before: there.get(key)?.[column] ?? null,
      }))
      .filter((row) => row.now !== row.before)
      .sort((a, b) => size(b) - size(a) || a.key.localeCompare(b.key))
      .slice(0, MOVERS_MAX);
    const unit = part.columns.find(({ name }) => name === column)?.unit ?? "";
    return rows.length ? [{ list, about: part.about, column, unit, rows }] : [];
  });
}

function size({ now, before }) {
  return Math.abs((now ?? 0) - (before ?? 0));
}
