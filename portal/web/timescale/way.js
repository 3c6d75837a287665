/**
 * Traces a published event: stored here, read by this page, written to its readers, held by each replica.
 *
 * Replicas are known by their vectors: the locations of the event are polled every half second, for half a minute at
 * most; so the time shown for a replica is up to half a second late.
 */

/** @typedef {{name: string, state: "done" | "wait" | "unknown" | "late", ms: number | null, says: string}} Step */

export const LOOK_EVERY_MS = 500;
export const WATCHED_MS = 30_000;

/**
 * @param {object} options
 * @param {() => Promise<{domains: {domain: string, held: boolean | null, link?: string}[]}>} options.look where the event is
 * @param {() => Promise<{sessions: number, behind: number} | null>} options.readers who reads here; null: not to be known
 * @param {string} options.domain this one's name
 * @param {(steps: Step[]) => void} options.onSteps
 * @param {() => number} options.now milliseconds since it was published
 * @param {(ms: number) => Promise<void>} options.wait
 * @param {() => boolean} [options.stopped]
 */
export async function watch({ look, readers, domain, onSteps, now, wait, stopped = () => false }) {
  const seen = new Map(); // domain -> ms
  /** @type {{sessions: number, behind: number, ms: number} | null} */
  let reading = null;
  for (;;) {
    const [{ domains }, read] = await Promise.all([look(), reading?.behind === 0 ? reading : readers()]);
    if (stopped()) return;
    const ms = now();
    const late = ms >= WATCHED_MS;
    if (read && read !== reading) reading = { ...read, ms };
    const others = domains.filter((one) => one.domain !== domain);
    for (const one of others) if (one.held && !seen.has(one.domain)) seen.set(one.domain, ms);
    onSteps([
      ...readerStep(reading, late),
      ...others.map((one) => replicaStep(one, seen.get(one.domain) ?? null, late)),
    ]);
    const waiting = others.some(({ held }) => held === false) || (reading?.behind ?? 0) > 0;
    if (!waiting || late) return;
    await wait(LOOK_EVERY_MS);
  }
}

/** @returns {Step[]} */
function readerStep(reading, late) {
  if (!reading) return [];
  const { sessions, behind, ms } = reading;
  const all = `${sessions} ${sessions === 1 ? "session" : "sessions"}`;
  if (behind === 0) {
    return [
      {
        name: "Readers",
        state: "done",
        ms,
        says: sessions ? `written to ${all}, including this page` : "no readers",
      },
    ];
  }
  return [{ name: "Readers", state: late ? "late" : "wait", ms: null, says: `${behind} of ${all} behind` }];
}

/** @param {{domain: string, held: boolean | null, link?: string}} replica @param {number | null} ms @param {boolean} late @returns {Step} */
function replicaStep({ domain, held, link }, ms, late) {
  if (ms !== null) return { name: domain, state: "done", ms, says: "holds the event" };
  if (held === null) return { name: domain, state: "unknown", ms: null, says: "no direct link: unknown" };
  const says =
    link === "stopped" ? "the link is stopped" : late ? `not received after ${WATCHED_MS / 1000} s` : "on its way";
  return { name: domain, state: late ? "late" : "wait", ms: null, says };
}
