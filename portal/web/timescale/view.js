/** Visible part of the time axis: a scale, and whether it follows the present. */

import { now } from "./clock.js";
import { Scale } from "./scale.js";

const AHEAD = 0.03; // of the span: the present is a little before the right edge
const SPAN_FIRST_MS = 5 * 60_000;
const SPAN_FIRST_MAX_MS = 24 * 3_600_000;
const FIRST_EVENTS = 40; // what is seen at first: about so many of the newest
const STEP_MS = 100;
const STEP_REDUCED_MS = 1_000;

const reduced = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)");

export class View {
  #scale = new Scale(now() - SPAN_FIRST_MS, now(), 800);
  #follows = true;
  #onChange;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {(about: {moved: boolean}) => void} onChange `moved`: not only by the time that passes */
  constructor(onChange) {
    this.#onChange = onChange;
    this.#tick();
  }

  get scale() {
    return this.#scale;
  }

  get follows() {
    return this.#follows;
  }

  /** Begin with a span that shows the newest events. @param {number[]} instants of all that is held */
  begin(instants) {
    const since =
      instants
        .sort((a, b) => b - a)
        .slice(0, FIRST_EVENTS)
        .at(-1) ?? now();
    const span = Math.min(Math.max((now() - since) * 1.4, SPAN_FIRST_MS / 10), SPAN_FIRST_MAX_MS);
    this.#set(new Scale(now() - span, now(), this.#scale.width));
  }

  follow() {
    this.#follows = true;
    this.#set(this.#scale);
    this.#tick();
  }

  hold() {
    this.#follows = false;
    this.#set(this.#scale);
  }

  resize(width) {
    this.#set(this.#scale.resized(width));
  }

  /** While it follows, the present stays where it is. */
  zoom(factor, anchor) {
    this.#set(this.#scale.zoomed(factor, this.#follows ? now() : anchor));
  }

  pan(ms) {
    this.#follows = false;
    this.#set(this.#scale.moved(ms));
  }

  show(from, to) {
    this.#follows = false;
    this.#set(Scale.fitting(from, to, this.#scale.width));
  }

  /** Have an instant on the screen, in the middle if it was not. */
  reveal(at) {
    const x = this.#scale.x(at);
    if (x >= 8 && x <= this.#scale.width - 8) return;
    this.#follows = false;
    this.#set(this.#scale.around(at));
  }

  #set(scale) {
    this.#scale = this.#follows ? this.#present(scale) : scale;
    this.#onChange({ moved: true });
  }

  #present(scale) {
    return scale.endingAt(now() + scale.span * AHEAD);
  }

  #tick() {
    clearTimeout(this.#timer);
    if (!this.#follows) return;
    const step = reduced?.matches ? STEP_REDUCED_MS : Math.max(this.#scale.msPerPixel, STEP_MS);
    this.#timer = setTimeout(
      () => {
        if (this.#follows && !document.hidden) {
          this.#scale = this.#present(this.#scale);
          this.#onChange({ moved: false });
        }
        this.#tick();
      },
      Math.min(step, STEP_REDUCED_MS),
    );
  }
}
