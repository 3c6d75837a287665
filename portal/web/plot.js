/**
 * A plot over time: uPlot in the console's colours, with a key that shows values, and words for those who cannot see it.
 *
 *     const plot = new Plot(document.getElementById("rates"), {
 *       title: "Events per second",
 *       format: (value) => rate(value),                       // a Quantity of format.js, or text
 *       series: [{ name: "in" }, { name: "out", dash: [6, 3] }], // colours are series-1, series-2 … in this order
 *       spanS: 3600,                                          // how much of the past is shown, up to now
 *       height: 220,
 *     });                                                       // past: true instead of spanS: all of what is shown, long ago
 *     plot.show(times, [inRates, outRates]);                  // seconds since 1970, oldest first; null for nothing known
 *
 * It fits its box, follows the look (light, dark), and says its numbers: the key holds the newest values (those under the
 * pointer while there is one), the label a sentence, "As a table" rows.
 */

import uPlot from "uplot";

import { eachFrame } from "./frame.js";
import { formatter, serverNow, zone } from "./times.js";

const HEIGHT_PX = 220;
const LABELLED_EVERY_MS = 10_000; // the words change no faster than they can be read
const TABLE_ROWS = 12;
const SPAN_LEAST_S = 600; // of what has only just begun: its first minutes fill the plot, and its numbers have room to move
/** @type {Intl.DateTimeFormatOptions} */
const TIME = { hour: "2-digit", minute: "2-digit" };
/** @type {Intl.DateTimeFormatOptions} */
const TIME_S = { ...TIME, second: "2-digit" };
/** @type {Intl.DateTimeFormatOptions} */
const DAY_TIME = { day: "numeric", month: "short", ...TIME };
const DAY_S = 86_400;
const SVG = "http://www.w3.org/2000/svg";

export class Plot {
  #options;
  #box; // what uPlot draws in
  #key; // an <li> per series, with the <b> that holds its value
  #table;
  /** @type {uPlot | null} */
  #uplot = null;
  #data;
  #labelledAt = -Infinity;
  #draw = eachFrame(() => this.#update());
  #observer;
  #looks = new AbortController();

  /**
   * @param {HTMLElement} element an empty box that the plot fills
   * @param {{title: string, format: (value: number) => unknown, series: {name: string, dash?: number[], fill?: boolean}[],
   *   spanS?: number, past?: boolean, height?: number, max?: number}} options `max`: the scale reaches at least so far
   */
  constructor(element, options) {
    this.#options = { spanS: 3600, height: HEIGHT_PX, max: 1, ...options };
    this.#data = [[], ...options.series.map(() => [])];
    element.replaceChildren();
    this.#key = key(options.series);
    this.#box = made("div", "plot");
    this.#box.style.setProperty("--plot-height", `${this.#options.height}px`);
    this.#box.setAttribute("role", "img");
    this.#box.setAttribute("aria-label", options.title);
    this.#table = made("details", "more small");
    this.#table.append(made("summary", "", "As a table"));
    this.#table.addEventListener("toggle", () => this.#fillTable());
    element.append(this.#key.list, this.#box, this.#table);
    this.#observer = new ResizeObserver(() => this.#resize());
    this.#observer.observe(this.#box);
    const { signal } = this.#looks;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#rebuild(), { signal });
    document.addEventListener("herald-look", () => this.#rebuild(), { signal });
  }

  /** @param {number[]} times @param {(number | null)[][]} columns one list per series; they are read, not kept */
  show(times, columns) {
    this.#data = [times, ...columns];
    this.#draw();
  }

  /** Show another stretch of the past, under another title. @param {number} spanS @param {string} title */
  range(spanS, title) {
    this.#options = { ...this.#options, spanS, title };
    this.#labelledAt = -Infinity;
    this.#draw();
  }

  destroy() {
    this.#observer.disconnect();
    this.#looks.abort();
    this.#uplot?.destroy();
  }

  #update() {
    if (!this.#uplot) this.#build();
    if (!this.#uplot) return; // no room yet: the observer calls again
    this.#uplot.setData(this.#data, false);
    this.#uplot.setScale("x", this.#span());
    if (this.#uplot.cursor.idx === null || (this.#uplot.cursor.left ?? -1) < 0) {
      this.#showValues(this.#data[0].length - 1);
    }
    this.#label();
  }

  /** Labels of the time axis. */
  #span() {
    const times = this.#data[0];
    const end = this.#options.past ? (times.at(-1) ?? 0) : serverNow() / 1000;
    const young = Math.max(SPAN_LEAST_S, end - (times[0] ?? 0));
    const begin = this.#options.past ? (times[0] ?? 0) : end - Math.min(this.#options.spanS, young);
    return { min: begin === end ? begin - 1800 : begin, max: begin === end ? end + 1800 : end };
  }

  /** An instant as the axis, the key and the table show it: with its day where there is more than one. */
  #at(seconds, exactly = false) {
    const { min, max } = this.#span();
    const form = max - min > DAY_S ? DAY_TIME : exactly ? TIME_S : TIME;
    return formatter(form).format(seconds * 1000);
  }

  #build() {
    const width = this.#box.clientWidth;
    if (width === 0) return;
    const colours = coloursOf(this.#box, this.#options.series.length);
    const { format, series, height, max, past } = this.#options;
    // uPlot divides the axis by its own dates: shifted where the chosen zone is not the browser's.
    const tzDate = zone() ? (at) => uPlot.tzDate(new Date(at * 1000), "UTC") : undefined;
    const axis = {
      stroke: colours.text,
      grid: { stroke: colours.line, width: 1 },
      ticks: { show: false },
      font: colours.font,
    };
    this.#uplot = new uPlot(
      {
        width,
        height,
        ...(tzDate && { tzDate }),
        padding: [8, past ? 40 : 28, 0, 0], // the last instant's words reach over the edge
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: { x: { time: true }, y: { range: (_, __, top) => [0, Math.max((top ?? 0) * 1.1, max)] } },
        axes: [
          { ...axis, size: 30, space: past ? 110 : 70, values: (_, splits) => splits.map((at) => this.#at(at)) },
          { ...axis, size: 70, space: 36, values: (_, splits) => splits.map((value) => String(format(value))) },
        ],
        series: [
          {},
          ...series.map(({ name, dash, fill = false }, index) => ({
            label: name,
            stroke: colours.series[index],
            width: 1.75,
            dash,
            fill: fill ? colours.soft[index] : undefined,
            points: { show: false },
            spanGaps: false,
          })),
        ],
        hooks: {
          setCursor: [({ cursor: { idx } }) => this.#showValues(idx ?? this.#data[0].length - 1, idx !== null)],
        },
      },
      this.#data,
      this.#box,
    );
  }

  #rebuild() {
    this.#uplot?.destroy();
    this.#uplot = null;
    this.#draw();
  }

  #resize() {
    const width = this.#box.clientWidth;
    if (!this.#uplot) this.#draw();
    else if (width && width !== this.#uplot.width) this.#uplot.setSize({ width, height: this.#options.height });
  }

  #showValues(index, pointed = false) {
    const at = this.#data[0][index];
    this.#key.values.forEach((element, nth) => {
      const text = this.#text(this.#data[nth + 1][index]);
      if (element.textContent !== text) element.textContent = text;
    });
    this.#key.at.textContent = pointed && at ? this.#at(at, true) : "";
  }

  #text(value) {
    return value === null || value === undefined ? "–" : String(this.#options.format(value));
  }

  #label() {
    const now = performance.now();
    if (now - this.#labelledAt < LABELLED_EVERY_MS) return;
    this.#labelledAt = now;
    const parts = this.#options.series.map(({ name }, nth) => {
      const known = this.#data[nth + 1].filter((value) => value !== null);
      if (known.length === 0) return `${name}: no data`;
      return `${name}: ${this.#text(known.at(-1))} ${this.#options.past ? "at the end" : "now"}, ${this.#text(Math.max(...known))} maximum`;
    });
    this.#box.setAttribute("aria-label", `${this.#options.title}. ${parts.join("; ")}.`);
    this.#fillTable();
  }

  #fillTable() {
    this.#table.querySelector("table")?.remove();
    if (!this.#table.open) return;
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const text of ["Time", ...this.#options.series.map(({ name }) => name)]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = text;
      head.append(cell);
    }
    const body = table.createTBody();
    const [times, ...columns] = this.#data;
    const step = Math.max(1, Math.ceil(times.length / TABLE_ROWS));
    for (let index = times.length - 1; index >= 0; index -= step) {
      const row = body.insertRow();
      row.insertCell().textContent = this.#at(times[index], true);
      for (const column of columns) row.insertCell().textContent = this.#text(column[index]);
    }
    this.#table.append(table);
  }
}

/** The plot's key: {list, values: one element per series, at: shows the time under the pointer}. */
function key(series) {
  const list = made("ul", "plot-key");
  const values = series.map(({ name, dash }, index) => {
    const item = document.createElement("li");
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 24 8");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", "M0 4h24");
    line.setAttribute("stroke-width", "2.5");
    if (dash) line.setAttribute("stroke-dasharray", dash.join(" "));
    line.style.stroke = `var(--series-${index + 1})`;
    svg.append(line);
    const value = made("b", "", "–");
    item.append(svg, name, value);
    list.append(item);
    return value;
  });
  const at = made("li", "");
  list.append(at);
  return { list, values, at };
}

/** The colours in use, resolved for a canvas: read from an element, because custom properties are unresolved. */
function coloursOf(box, count) {
  const probe = document.createElement("span");
  box.append(probe);
  const resolve = (value) => {
    probe.style.color = value;
    return getComputedStyle(probe).color;
  };
  const names = Array.from({ length: count }, (_, index) => `var(--series-${index + 1})`);
  const colours = {
    text: resolve("var(--muted)"),
    line: resolve("var(--line)"),
    series: names.map(resolve),
    soft: names.map((name) => resolve(`color-mix(in srgb, ${name} 14%, transparent)`)),
    font: `12px ${getComputedStyle(box).fontFamily}`,
  };
  probe.remove();
  return colours;
}

function made(name, className, text = "") {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}
