/**
 * Draws the lanes under one time axis, and translates wheel, drag and click into requests.
 *
 * A mark is an event, round if it was published here, a diamond if it came from another domain; a mark with a number is that
 * many. Colours tell types apart; what a colour means is in the key, and in words wherever an event is told. To assistive
 * technology the drawing is one thing that the arrow keys go through (pages/timescale.js), beside a list of the same events.
 */

import { html, nothing, render, svg } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import { count } from "../format.js";
import { now } from "./clock.js";
import { marksOf } from "./clusters.js";
import { tickText, ticks } from "./scale.js";

/** @import { LaneReader } from "./reader.js" */

export const LANE_PX = 56;
const AXIS_PX = 26;
const MIDDLE = LANE_PX / 2;
const DRAG_PX = 4; // less is a click
const WHEEL_FACTOR = 1.0015;
const LABELLED_HOLE_PX = 90;

/** Colours of types, in the order in which they were seen; the last one is for all further ones. */
export class TypeColours {
  #numbers = new Map();

  of(type) {
    if (!this.#numbers.has(type) && this.#numbers.size < 200) {
      this.#numbers.set(type, Math.min(this.#numbers.size + 1, 6));
    }
    return this.#numbers.get(type) ?? 6;
  }

  /** [{number, types}], as the key shows them. */
  get shown() {
    const by = new Map();
    for (const [type, number] of this.#numbers) by.set(number, [...(by.get(number) ?? []), type]);
    return [...by].map(([number, types]) => ({ number, types }));
  }
}

export class Chart {
  #element;
  #asks;
  #colours = new TypeColours();
  /** @type {{id: number, x: number, moved: boolean} | null} */
  #drag = null;

  /**
   * @param {HTMLElement} element
   * @param {{zoom: (factor: number, x: number) => void, pan: (pixels: number) => void, resize: (width: number) => void,
   *   select: (reader: LaneReader, offset: number) => void, open: (from: number, to: number) => void, remove: (reader: LaneReader) => void}} asks
   */
  constructor(element, asks) {
    this.#element = element;
    this.#asks = asks;
    element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    element.addEventListener("pointerdown", (event) => this.#down(event));
    element.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, (event) => this.#up(event));
    new ResizeObserver(() => this.#asks.resize(this.#plotBox().width)).observe(element);
  }

  /** @param {{scale: import("./scale.js").Scale, readers: LaneReader[], selected: {reader: LaneReader, offset: number} | null}} shown */
  draw({ scale, readers, selected }) {
    render(
      html`<svg class="ts-axis" height=${AXIS_PX} aria-hidden="true">${axis(scale)}</svg>
        ${repeat(
          readers,
          (reader) => reader.reference,
          (reader) => this.#lane(reader, scale, selected),
        )}`,
      this.#element,
    );
  }

  get key() {
    return this.#colours.shown;
  }

  colour(type) {
    return this.#colours.of(type);
  }

  #lane(reader, scale, selected) {
    const { lane, state } = reader;
    return html`<section class="ts-lane" data-rp=${reader.rp || reader.reference}>
      <header class="ts-lane-head">
        ${reader.rp && !reader.rp.endsWith(".admin") ? html`<a class="rp-link" href=${`/rps/${reader.rp}`}>${reader.label}</a>` : html`<span class="rp-link">${reader.label}</span>`}
        <span class="muted small number">${laneText(reader)}</span>
        <button type="button" class="button quiet compact" data-remove @click=${() => this.#asks.remove(reader)}>Remove<span class="visually-hidden"> ${reader.label}</span></button>
      </header>
      <svg class="ts-strip ${state}" height=${LANE_PX} aria-hidden="true">
        <line class="ts-base" x1="0" x2="100%" y1=${MIDDLE} y2=${MIDDLE}></line>
        ${lane.holes().map((hole) => this.#hole(hole, scale))}
        ${nowLine(scale)}
        ${marksOf(lane.events, scale).map((mark) => this.#mark(mark, reader, selected))}
      </svg>
    </section>`;
  }

  #hole({ left, right, text }, scale) {
    const from = left === null ? 0 : Math.max(0, scale.x(left));
    const to = Math.min(scale.width, scale.x(right));
    if (to < 0 || from > scale.width) return nothing;
    const room = Math.max(to - from, 3);
    const label =
      room > LABELLED_HOLE_PX
        ? svg`<text class="ts-hole-text" x=${(from + to) / 2} y=${LANE_PX - 6}>${clipped(text, room)}</text>`
        : nothing;
    return svg`<g class=${left === null ? "ts-before" : "ts-gap"}><title>${text}</title>
      <rect x=${from} y="0" width=${room} height=${LANE_PX}></rect>${label}</g>`;
  }

  #mark(mark, reader, selected) {
    const { events } = reader.lane;
    const event = events[mark.first];
    const number = this.#colours.of(event.type);
    const mine =
      selected?.reader === reader && selected.offset >= event.offset && selected.offset <= events[mark.last].offset;
    const ring = mine ? svg`<circle class="ts-ring" cx=${mark.x} cy=${MIDDLE} r="13"></circle>` : nothing;
    if (mark.count === 1) {
      return svg`<g class="ts-mark" @click=${() => this.#click(() => this.#asks.select(reader, event.offset))}>
        <title>#${event.offset} ${event.type}</title>${ring}
        ${event.feed ? diamond(mark.x, number) : svg`<circle class=${`ts-dot s${number}`} cx=${mark.x} cy=${MIDDLE} r="5.5"></circle>`}
        <rect class="ts-target" x=${mark.x - 8} y=${MIDDLE - 14} width="16" height="28"></rect></g>`;
    }
    const text = String(count(mark.count));
    const width = Math.max(16, 6 + 7 * text.length);
    return svg`<g class="ts-mark ts-cluster" @click=${() => this.#click(() => this.#asks.open(mark.from, mark.to))}>
      <title>${text} events, #${event.offset} to #${events[mark.last].offset}: click to come nearer</title>${ring}
      <rect class=${sameType(events, mark) ? `s${number}` : "s6"} x=${mark.x - width / 2} y=${MIDDLE - 9} width=${width} height="18" rx="9"></rect>
      <text x=${mark.x} y=${MIDDLE + 4}>${text}</text></g>`;
  }

  // ---- hands ----

  #click(act) {
    if (!this.#drag?.moved) act();
  }

  #plotBox() {
    return this.#element.querySelector(".ts-axis")?.getBoundingClientRect() ?? this.#element.getBoundingClientRect();
  }

  #wheel(event) {
    if (event.ctrlKey || event.metaKey) return; // the browser's own zoom
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.#asks.pan(event.deltaX || event.deltaY);
    else this.#asks.zoom(WHEEL_FACTOR ** event.deltaY, event.clientX - this.#plotBox().left);
  }

  #down(event) {
    if (event.button !== 0 || !event.target.closest("svg")) return;
    this.#drag = { id: event.pointerId, x: event.clientX, moved: false };
  }

  #move(event) {
    const drag = this.#drag;
    if (!drag || drag.id !== event.pointerId || event.buttons === 0) return;
    if (!drag.moved && Math.abs(event.clientX - drag.x) < DRAG_PX) return;
    if (!drag.moved) this.#element.setPointerCapture(event.pointerId);
    drag.moved = true;
    this.#asks.pan(drag.x - event.clientX);
    drag.x = event.clientX;
  }

  #up(event) {
    if (!this.#drag || this.#drag.id !== event.pointerId) return;
    if (event.type === "pointercancel" || !this.#drag.moved) this.#drag = null;
    else setTimeout(() => (this.#drag = null)); // after the click that follows a drag
  }
}

function laneText({ state, says, lane, waiting }) {
  if (state === "loading") return "Loading the history";
  if (state === "broken" || state === "away") return says;
  if (lane.next <= 1) return "No events yet";
  const shown = `showing ${count(lane.shown)} of ${count(lane.held)}`;
  return waiting ? `${shown}, ${count(waiting)} new` : shown;
}

function axis(scale) {
  return ticks(scale).map(({ at, step }) => {
    const x = scale.x(at);
    return svg`<line class="ts-tick" x1=${x} x2=${x} y1=${AXIS_PX - 6} y2=${AXIS_PX}></line>
      <text x=${Math.min(Math.max(x, 26), scale.width - 26)} y="14">${tickText(at, step)}</text>`;
  });
}

function nowLine(scale) {
  const x = scale.x(now());
  return x >= 0 && x <= scale.width ? svg`<line class="ts-now" x1=${x} x2=${x} y1="0" y2=${LANE_PX}></line>` : nothing;
}

function diamond(x, number) {
  return svg`<path class=${`ts-dot s${number}`} d=${`M${x} ${MIDDLE - 7.5}l7.5 7.5-7.5 7.5-7.5-7.5z`}></path>`;
}

function sameType(events, { first, last }) {
  const { type } = events[first];
  for (let index = first + 1; index <= last; index++) if (events[index].type !== type) return false;
  return true;
}

function clipped(text, room) {
  const most = Math.floor(room / 6.2);
  return text.length > most ? `${text.slice(0, Math.max(0, most - 1))}…` : text;
}
