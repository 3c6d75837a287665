/** Requests that events trigger: bounded in rate, one at a time. */

const PAUSE_MS = 250; // at least so long between two, and as long as one takes: a change is to be on the screen within a second
const FEW = 10; // changes since the last look that are no flood: they wait for the pause only
const WORK_SHARE = 10; // in a flood a page takes a tenth of one request's time at most, in the long run
const CREDIT_MS = 1_000; // of looks that may be had after a quiet time before a flood is slowed down

export class PacedPoll {
  #ask;
  #onAnswer;
  #onFailure;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #answeredAt = -Infinity;
  #pauseMs = PAUSE_MS; // after the last answer
  #floodPauseMs = PAUSE_MS; // the same where there were more than a few changes
  #attempt = 0;
  #changes = 0; // that no look has been begun for
  #underWay = false;
  #credit = CREDIT_MS;
  #creditAt = performance.now();

  /**
   * @param {() => Promise<any>} ask
   * @param {(answer: any) => void} onAnswer
   * @param {(error: Error) => void} onFailure for what the domain or the network did; our own mistakes are thrown
   */
  constructor(ask, onAnswer, onFailure) {
    this.#ask = ask;
    this.#onAnswer = onAnswer;
    this.#onFailure = onFailure;
  }

  /**
   * Request after the pause; further calls during the pause are merged.
   * @param {number} [changes] for the sake of so many
   */
  soon(changes = 1) {
    this.#changes += changes;
    if (!this.#underWay) this.#arm();
  }

  #arm() {
    clearTimeout(this.#timer);
    const notBefore = this.#answeredAt + (this.#changes > FEW ? this.#floodPauseMs : this.#pauseMs);
    this.#timer = setTimeout(() => void this.now(), Math.max(0, notBefore - performance.now()));
  }

  /** Look at once; the answer of an earlier look that is still under way is ignored. */
  async now() {
    clearTimeout(this.#timer);
    this.#changes = 0;
    this.#underWay = true;
    const attempt = ++this.#attempt;
    const begun = performance.now();
    try {
      const answer = await this.#ask();
      if (attempt === this.#attempt) this.#onAnswer(answer);
    } catch (error) {
      if (!["Refused", "Unanswered", "SessionEnded"].includes(error.name)) throw error;
      if (attempt === this.#attempt) this.#onFailure(error);
    } finally {
      if (attempt === this.#attempt) {
        const now = performance.now();
        this.#answeredAt = now;
        this.#pauseMs = Math.max(PAUSE_MS, now - begun);
        this.#floodPauseMs = Math.max(this.#pauseMs, this.#debtMs(begun, now));
        this.#underWay = false;
        if (this.#changes) this.#arm(); // something happened meanwhile: the answer may be older than that
      }
    }
  }

  /** A look took from `begun` to `now`: for how long there is to be none, because there were too many. */
  #debtMs(begun, now) {
    const earned = (begun - this.#creditAt) / WORK_SHARE;
    this.#credit = Math.min(CREDIT_MS, this.#credit + earned) - (now - begun);
    this.#creditAt = now;
    return -this.#credit * WORK_SHARE;
  }
}
