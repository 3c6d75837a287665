/** Poll the ends of logs every 2 s while the page is visible, and compute rates from them. */

import { SessionEnded, getJson } from "./requests.js";

const POLL_MS = 2_000;
const TIMEOUT_MS = 8_000;
export const SAMPLES = 30;
const SMOOTH_MS = 6_000; // the number shown is the mean of about this long, so that it can be read

const SMALL = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
export const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });

/** @param {number} rate events per second */
export function rateText(rate) {
  if (rate === 0) return "0 /s";
  if (rate < 0.05) return "< 0.1 /s";
  return `${rate < 100 ? SMALL.format(rate) : WHOLE.format(rate)} /s`;
}

/** The rate of one log, from successive looks at its end. */
export class Rate {
  #looks = []; // {at, offset} of this epoch
  #epoch = null;
  /** Events per second between successive looks, oldest first; at most SAMPLES. */
  samples = [];

  /** Take a look: the log's end at the time `at` in milliseconds. Returns events per second, null if unknown yet. */
  look(epoch, offset, at) {
    if (epoch !== this.#epoch) {
      this.#epoch = epoch;
      this.#looks = [];
    }
    const before = this.#looks.at(-1);
    this.#looks.push({ at, offset });
    if (!before) return null;
    this.samples.push(perSecond(before, { at, offset }));
    this.samples.splice(0, this.samples.length - SAMPLES);
    while (this.#looks.length > 2 && at - this.#looks[1].at >= SMOOTH_MS) this.#looks.shift();
    return perSecond(this.#looks[0], { at, offset });
  }
}

function perSecond(from, to) {
  return Math.max(0, (to.offset - from.offset) / ((to.at - from.at) / 1000));
}

/**
 * Ask for the ends of the logs of `ids`, again and again while the page is visible.
 * @param {string} url
 * @param {string[]} ids
 * @param {(ends: Record<string, {epoch: string, offset: number, first: number, bytes: number}>, at: number) => void} onEnds
 * @param {(error: Error) => void} onFailure called each time there was no answer
 */
export function pollEnds(url, ids, onEnds, onFailure) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const ask = async () => {
    timer = undefined;
    try {
      const ends = await getJson(`${url}?ids=${ids.join(",")}`, TIMEOUT_MS);
      onEnds(ends, performance.now());
    } catch (error) {
      onFailure(error);
      if (error instanceof SessionEnded) return;
    }
    if (!document.hidden && timer === undefined) timer = setTimeout(ask, POLL_MS);
    else waiting = true;
  };
  let waiting = false;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !waiting) return;
    waiting = false;
    void ask();
  });
  void ask();
}
