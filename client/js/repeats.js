/**
 * Repeated events: a publisher's retry at another replica may put an event into the log twice; subscribers see it once.
 * A publisher that got no answer publishes the same event, with the same id, at another replica. If the first domain
 * had stored it, it is stored twice, once in each domain's feed. The cursor shows an event's feed: its vector differs
 * from that of the event before in that feed alone. Repetitions within one feed are delivered.
 */

/** Events remembered for each subscription at a rendezvous point with replicas. */
export const WINDOW = 10_000;

export class Repeats {
  #feeds = new Map(); // source and id -> feed
  #vector = new Set();

  /** Record the reader's position without an event. */
  stand(cursor) {
    this.#vector = new Set(parts(cursor));
  }

  /** Return whether the event, which is right before `cursor`, was delivered before from another feed. */
  repeated(cursor, event) {
    const vector = parts(cursor);
    const grown = vector.filter((part) => !this.#vector.has(part));
    this.#vector = new Set(vector);
    const feed = grown.length === 1 ? grown[0].split("=")[0] : "";
    const key = JSON.stringify([event?.source, event?.id]);
    const before = this.#feeds.get(key);
    if (before && feed && before !== feed) return true;
    this.#feeds.set(key, feed);
    if (this.#feeds.size > WINDOW) this.#feeds.delete(this.#feeds.keys().next().value);
    return false;
  }
}

function parts(cursor) {
  const vector = cursor.indexOf("~") + 1;
  return (vector ? cursor.slice(vector) : "").split(".");
}
