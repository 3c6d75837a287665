/** Time series of bounded length: equal steps of time, the newest so many, a number or nothing in each. For plots. */

export class Series {
  /** Length of a step, seconds. */
  stepS;
  #times; // of the steps, seconds since 1970; those of uPlot
  #columns; // a list per name

  /**
   * @param {string[]} names
   * @param {{stepS: number, steps: number}} size
   */
  constructor(names, { stepS, steps }) {
    this.stepS = stepS;
    this.steps = steps;
    this.#times = [];
    this.#columns = new Map(names.map((name) => [name, []]));
  }

  /** Begin anew with what is known: `start` of the first step, and a list per name; null where nothing is known. */
  reset(start, columns) {
    const length = Math.max(0, ...Object.values(columns).map((column) => column.length));
    this.#times = Array.from({ length }, (_, index) => start + index * this.stepS);
    for (const [name, column] of this.#columns) {
      column.length = 0;
      for (let index = 0; index < length; index++) column.push(columns[name]?.[index] ?? null);
    }
    this.#trim();
  }

  /**
   * Set values of the step that `atS` lies in, a step that is held or a newer one; steps that were skipped are empty.
   * @param {number} atS seconds since 1970
   * @param {Record<string, number | null>} values
   */
  set(atS, values) {
    const step = Math.floor(atS / this.stepS) * this.stepS;
    const newest = this.#times.at(-1) ?? step - this.stepS;
    if (step - newest > this.steps * this.stepS) this.reset(step, {}); // nothing of what is held would be left
    for (let next = (this.#times.at(-1) ?? step - this.stepS) + this.stepS; next <= step; next += this.stepS) {
      this.#times.push(next);
      for (const column of this.#columns.values()) column.push(null);
    }
    this.#trim();
    const index = Math.round((step - this.#times[0]) / this.stepS);
    if (index < 0) return; // older than what is held
    for (const [name, value] of Object.entries(values)) {
      const column = this.#columns.get(name);
      if (column) column[index] = value;
    }
  }

  get times() {
    return this.#times;
  }

  /** @param {string} name */
  column(name) {
    return this.#columns.get(name);
  }

  #trim() {
    const excess = this.#times.length - this.steps;
    if (excess <= 0) return;
    this.#times.splice(0, excess);
    for (const column of this.#columns.values()) column.splice(0, excess);
  }
}
