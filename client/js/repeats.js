/**
 * Events that a publisher's retry at another replica has put into the log twice: subscribers see them once.
 *
 * A publisher whose domain went away before it answered publishes the same event, with the same id, at another replica.
 * If the first domain had stored it, it is there twice, once in each domain's feed. Which feed an event is of shows in
 * its cursor: its vector differs from that of the event before in that feed alone. What comes again within one feed is given.
 */

/** Events remembered for each subscription at a rendezvous point with replicas. */
export const WINDOW = 10_000;

export class Repeats {
  #feeds = new Map(); // source and id -> feed
  #vector = new Set();

  /** The reader stands at `cursor`, without having been given an event. */
  stand(cursor) {
    this.#vector = new Set(parts(cursor));
  }

  /** Whether the event, which stands right before `cursor`, was given before, out of another feed. */
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
