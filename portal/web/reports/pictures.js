/**
 * Charts of each kind of report, in order: cards with a title and either a body or a plot over time.
 *
 * A card: {title, about?, wide?, body} or {title, wide?, plot: {options, times, columns}}.
 */

import { html } from "lit-html";

import { bytes, count, duration, percent, plural, rate } from "../format.js";
import { bars, cluster, columnsOf, heat } from "./drawing.js";
import { instant, rowsOf, shown } from "./words.js";

/** @import { Report } from "../types.d.ts" */

const BARS = 10;
const HOUR_S = 3600;
const FORECAST_DAYS = 366; // a longer line would carry no information

/** @param {Report} report @param {(rp: string) => string} nameOf of an RP */
export function pictures(report, nameOf) {
  const made = PICTURES[report.report]?.(report, nameOf) ?? [];
  return made.filter(Boolean);
}

/** The ids of RPs that a report's pictures name. */
export function rpsNamed(report) {
  const rows = Object.values(report.tops).flatMap(rowsOf);
  return [
    ...new Set(
      rows
        .flatMap(({ rp, rp_a: a, rp_b: b, region, subject, limit }) => [rp, a, b, region, limit ? subject : null])
        .filter(Boolean),
    ),
  ].slice(0, 100);
}

const PICTURES = {
  access: (report, nameOf) => [
    overTime(
      report,
      "Operations per second, by the hour",
      "hours",
      [
        ["operations", "all"],
        ["refused", "refused"],
        ["failed", "failed"],
      ],
      perSecond,
    ),
    list(report, "principals", "Principals with the most operations", ({ principal, issuer, operations, refused }) => ({
      name: principal || "strangers",
      note: issuer && !principal.startsWith(issuer) ? issuer : "",
      value: operations,
      text: count(operations),
      part: refused,
    })),
    list(report, "rps", "Rendezvous points with the most operations", ({ rp, operations, principals, refused }) => ({
      name: nameOf(rp),
      href: rpPage(rp),
      note: plural(principals, "principal"),
      value: operations,
      text: count(operations),
      part: refused,
    })),
    {
      title: "Refusals and failures by reason",
      body: bars(byReason(report), "No refusals and no failures."),
    },
    list(report, "operations", "Operations", ({ operation, client, operations, refused }) => ({
      name: operation,
      note: client,
      value: operations,
      text: count(operations),
      part: refused,
    })),
    {
      ...sentences(
        "Anomalies",
        rowsOf(report.tops.anomalies).map(anomaly),
        "No anomalies: no new foreign domain, no burst of refusals, no principal active after a long silence.",
      ),
      wide: true,
    },
  ],
  load: (report, nameOf) => [
    overTime(
      report,
      "Events per second, by the hour",
      "hours",
      [
        ["events_in", "published"],
        ["deliveries", "delivered"],
      ],
      perSecond,
    ),
    heatMap(report, nameOf),
    list(report, "hot", "Busiest rendezvous points", ({ rp, moved, fan_out: fanOut, peak_events: peak }) => ({
      name: nameOf(rp),
      href: rpPage(rp),
      value: moved,
      text: count(moved),
      note: `fan-out ${shown(fanOut, "")}, busiest hour ${count(peak)}`,
    })),
    list(
      report,
      "growing",
      "Fastest growth",
      ({ rp, growth_per_day: growth, moved }) => ({
        name: nameOf(rp),
        href: rpPage(rp),
        value: growth,
        text: `+${count(Math.round(growth))} a day`,
        note: `${count(moved)} in all`,
      }),
      "No growth from day to day, or the period is a single day.",
    ),
    overTime(
      report,
      "Latency of publishes, by the hour",
      "latency",
      [
        ["p50_us", "half"],
        ["p95_us", "95 %"],
        ["p99_us", "99 %"],
      ],
      (value) => value,
      (value) => duration(value / 1000),
      false,
    ),
    histogram(report),
    sentences(
      "Sudden popularity",
      rowsOf(report.tops.fame)
        .slice(0, BARS)
        .map(
          ({ rp, hour, events, usual }) =>
            html`<a class="rp-link" href=${rpPage(rp)}>${nameOf(rp)}</a> moved ${count(events)} events in the hour of ${instant(hour)}, compared with usually ${count(Math.round(usual))}.`,
        ),
      "No rendezvous point had a sudden surge.",
    ),
    sentences(
      "Limits reached soon",
      rowsOf(report.tops.forecast)
        .filter(({ days_left: left }) => left <= FORECAST_DAYS)
        .slice(0, BARS)
        .map((row) => forecast(row, nameOf)),
      "At the current growth, no limit is reached within a year.",
    ),
  ],
  placement: (report, nameOf) => [
    {
      ...sentences(
        "Recommended replicas",
        rowsOf(report.tops.advice).map((row) => advice(row, nameOf)),
        "No further replica would save much: readers of other domains receive few events, or different ones.",
      ),
      wide: true,
    },
    {
      ...list(
        report,
        "domains",
        "Readers by domain",
        ({ domain, bytes_now: now, saved_bytes: saved, rps }) => ({
          name: domain,
          value: now,
          text: bytes(now),
          part: saved,
          note: `${plural(rps, "rendezvous point")}, ${bytes(saved)} could be saved`,
        }),
        "No readers from other domains.",
      ),
      wide: true,
    },
  ],
  overlap: (report, nameOf) => [clusters(report, nameOf)],
  federation: (report) => [
    list(
      report,
      "peers",
      "Requests by peer",
      ({ peer, operations, refused, failed }) => ({
        name: peer,
        value: operations,
        text: count(operations),
        part: refused + failed,
        note: refused + failed ? `${count(refused + failed)} not successful` : "",
      }),
      "No requests from peers.",
    ),
    list(
      report,
      "peers",
      "Longest silences",
      ({ peer, silence_s_max: silence, backlogs, backlog_bytes_max: backlog }) => ({
        name: peer,
        value: silence ?? 0,
        text: shown(silence, "seconds"),
        note: backlogs ? `${plural(backlogs, "backlog")}, at most ${bytes(backlog)}` : "no backlog",
      }),
      "No requests from peers.",
    ),
    list(
      report,
      "failures",
      "Failures",
      ({ peer, operation, reason, outcome, operations }) => ({
        name: `${peer}: ${reason}`,
        note: `${operation}, ${outcome}`,
        value: operations,
        text: count(operations),
      }),
      "All requests of peers succeeded.",
    ),
  ],
};

const perSecond = (value) => (value === null ? null : value / HOUR_S);
const rpPage = (rp) => `/rps/${encodeURIComponent(rp)}`;

function list(report, top, title, row, empty) {
  return { title, body: bars(rowsOf(report.tops[top]).slice(0, BARS).map(row), empty) };
}

function sentences(title, said, empty) {
  return {
    title,
    body: said.length
      ? html`<ul class="report-sentences">${said.map((one) => html`<li>${one}</li>`)}</ul>`
      : html`<p class="empty">${empty}</p>`,
  };
}

/** A plot of a series; an hour that is not in it is an hour without records. */
function overTime(report, title, name, series, scale, format = (value) => rate(value), wide = true) {
  const rows = rowsOf(report.series[name]);
  if (rows.length < 2) return null;
  const byHour = new Map(rows.map((row) => [Date.parse(row.hour) / 1000, row]));
  const first = Math.min(...byHour.keys());
  const last = Math.max(...byHour.keys());
  const times = [];
  for (let at = first; at <= last; at += HOUR_S) times.push(at);
  const nothing = name === "hours" ? 0 : null; // an hour without records has no latency
  const columns = series.map(([column]) => times.map((at) => scale(byHour.get(at) ? byHour.get(at)[column] : nothing)));
  const most = Math.max(...columns.flat().filter((value) => value !== null), 0);
  const dashes = [undefined, [7, 4], [2, 3]];
  return {
    title,
    wide,
    plot: {
      options: {
        title,
        format,
        past: true,
        max: most > 0 ? most : 1,
        series: series.map(([, words], index) => ({ name: words, dash: dashes[index], fill: index === 0 })),
      },
      times,
      columns,
    },
  };
}

function byReason(report) {
  return rowsOf(report.tops.reasons)
    .slice(0, BARS)
    .map(({ reason, outcome, operations }) => ({
      name: reason || outcome,
      note: outcome,
      value: operations,
      text: count(operations),
      part: operations,
    }));
}

function anomaly({ kind, subject, issuer, at, value, usual }) {
  const who = html`<strong>${subject || "A stranger"}</strong>${issuer && issuer !== subject ? ` of ${issuer}` : ""}`;
  const when = instant(at);
  return (
    {
      "new-foreign-issuer": html`<strong>${subject}</strong> issued an accepted token for the first time: ${plural(value, "operation")} since ${when}.`,
      "new-peer": html`<strong>${subject}</strong> sent requests as a peer for the first time: ${plural(value, "operation")} since ${when}.`,
      "refusal-burst": html`${who} was refused ${plural(value, "time")} in the hour of ${when}; usual: ${shown(usual ?? 0, "")} per hour.`,
      "dormant-awake": html`${who} is active again since ${when}, after ${plural(Math.round(value), "day")} of silence.`,
    }[kind] ?? html`${kind}: ${who}, ${when}.`
  );
}

function heatMap(report, nameOf) {
  const rows = rowsOf(report.tops.heat);
  if (rows.length === 0) return null;
  const at = [...new Set(rows.map(({ hour }) => Date.parse(hour)))];
  const first = Math.min(...at);
  const hours = Array.from(
    { length: Math.round((Math.max(...at) - first) / (HOUR_S * 1000)) + 1 },
    (_, index) => first + index * HOUR_S * 1000,
  );
  const byRp = new Map();
  for (const { rp, hour, events_in: published, deliveries } of rows) {
    const values = byRp.get(rp) ?? hours.map(() => 0);
    values[Math.round((Date.parse(hour) - first) / (HOUR_S * 1000))] += published + deliveries;
    byRp.set(rp, values);
  }
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const shownRows = [...byRp]
    .sort((a, b) => sum(b[1]) - sum(a[1]))
    .map(([rp, values]) => ({ key: rp, name: nameOf(rp), href: rpPage(rp), values }));
  return {
    title: "Rendezvous points by the hour",
    about: report.tops.heat.about,
    wide: true,
    body: heat(
      shownRows,
      hours.map((hour) => instant(new Date(hour).toISOString())),
      count,
    ),
  };
}

function histogram(report) {
  const rows = rowsOf(report.tops.histogram).filter(({ operation }) => operation === "publish");
  if (rows.length < 2) return null;
  const span = ({ from_us: from, to_us: to }) => `${duration(from / 1000)} to ${duration(to / 1000)}`;
  const columns = rows.map((row) => ({ value: row.operations, says: `${span(row)}: ${count(row.operations)}` }));
  const best = rows.reduce((a, b) => (b.operations > a.operations ? b : a));
  const label = `Latency of publishes: most took ${span(best)}`;
  return {
    title: "Latency of publishes",
    about: "Operations by duration; hover over a column.",
    body: columnsOf(columns, label, [
      String(duration(rows[0].from_us / 1000)),
      String(duration(rows[rows.length >> 1].from_us / 1000)),
      String(duration(rows.at(-1).to_us / 1000)),
    ]),
  };
}

function forecast(
  { limit, subject, unit, now, per_day: perDay, limit_value: most, days_left: left, exhausted_at: at },
  nameOf,
) {
  const what = subject ? html`<a class="rp-link" href=${rpPage(subject)}>${nameOf(subject)}</a>` : "The domain";
  const amount = (value) =>
    html`${unit.startsWith("bytes") ? bytes(value) : shown(value, "")} ${unit.startsWith("bytes") ? "/s" : unit}`;
  if (left === 0) return html`${what} has already reached <code>${limit}</code>: ${amount(now)} of ${amount(most)}.`;
  return html`${what} grows by ${amount(perDay)} per day and reaches <code>${limit}</code> (${amount(most)}) on ${instant(at)}; now at ${amount(now)}.`;
}

function advice({ rp, domain, readers, deliveries, bytes_now: now, saved_bytes: saved }, nameOf) {
  return html`A replica of <a class="rp-link" href=${rpPage(rp)}>${nameOf(rp)}</a> at <strong>${domain}</strong> would save
    <strong>${bytes(saved)}</strong> of ${bytes(now)} (${percent(saved, now)}): ${plural(readers, "reader")} there received ${count(deliveries)} events from here.`;
}

function clusters(report, nameOf) {
  const members = grouped(rowsOf(report.tops.members));
  const regions = rowsOf(report.tops.regions);
  if (regions.length === 0) {
    return { ...sentences("Regions", [], "No two rendezvous points have nearly the same subscribers."), wide: true };
  }
  return {
    title: "Regions: rendezvous points with nearly the same subscribers",
    about: "Each dot is a rendezvous point, sized by its number of subscribers.",
    wide: true,
    body: html`<div class="clusters">${regions.map(
      ({ region, rps, subscribers, saved_readings: saved, readings, least_jaccard: least }) => {
        const dots = (members.get(region) ?? []).map(({ rp, subscribers: its }) => ({
          name: nameOf(rp),
          href: rpPage(rp),
          subscribers: its,
        }));
        return html`<figure>${cluster(dots, `Region of ${rps} rendezvous points`)}
        <figcaption><strong>${plural(rps, "rendezvous point")}</strong>, ${plural(subscribers, "subscriber")}.
          Combined they would need ${count(readings - saved)} readings instead of ${count(readings)}; similarity at least ${percent(least, 1)}.
          <details class="more small"><summary>Which</summary><ul class="plain">${dots.map(({ name, href }) => html`<li><a href=${href}>${name}</a></li>`)}</ul></details>
        </figcaption></figure>`;
      },
    )}</div>`,
  };
}

function grouped(rows) {
  const found = new Map();
  for (const row of rows) found.set(row.region, [...(found.get(row.region) ?? []), row]);
  return found;
}
