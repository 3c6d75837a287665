/** Marks for events on the axis: one each, and one with a number for events that would overlap. Pure. */

export const CELL_PX = 24; // the axis is divided into cells of this width; a cell has one mark

/**
 * The marks of the events that are seen, in order: {x, first, last, count, from, to}, `first` and `last` indices into `events`,
 * `from` and `to` the instants of these two, `x` the event's own place, or the middle of the cell for several.
 *
 * Cells are counted from 1970, not from the edge of the screen, so that marks keep together while the axis moves under them.
 *
 * @param {{at: number}[]} events by `at`, the earliest first
 * @param {import("./scale.js").Scale} scale
 */
export function marksOf(events, scale, cellPx = CELL_PX) {
  const cellMs = scale.msPerPixel * cellPx;
  const cellOf = (at) => Math.floor(at / cellMs);
  const last = cellOf(scale.to);
  const marks = [];
  /** @type {{cell: number, first: number, last: number, from: number, to: number} | null} */
  let mark = null;
  for (let index = firstFrom(events, cellOf(scale.from) * cellMs); index < events.length; index++) {
    const { at } = events[index];
    const cell = cellOf(at);
    if (cell > last) break;
    if (mark && mark.cell === cell) {
      mark.last = index;
      mark.to = at;
    } else {
      mark = { cell, first: index, last: index, from: at, to: at };
      marks.push(mark);
    }
  }
  return marks.map(({ cell, first, last: end, from, to }) => ({
    x: scale.x(first === end ? from : (cell + 0.5) * cellMs),
    first,
    last: end,
    count: end - first + 1,
    from,
    to,
  }));
}

/** The index of the first event at `at` or later; their number if there is none. By bisection. */
export function firstFrom(events, at) {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle].at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The events between two instants, both included. */
export function between(events, from, to) {
  const begin = firstFrom(events, from);
  let end = begin;
  while (end < events.length && events[end].at <= to) end++;
  return events.slice(begin, end);
}
