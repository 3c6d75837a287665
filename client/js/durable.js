/**
 * Durable subscriptions over REST: made, described and ended here, read with `client.attach`. Loaded when it is first used.
 */

import { HeraldError, Problem } from "./errors.js";
import { randomId } from "./events.js";

const ATTEMPTS = 4; // of a request that can be repeated: all but the last wait for the next
const RETRY_MS = 250; // before the second attempt; doubled for each further one
const RETRY_MAX_MS = 10_000; // of a wait that the domain asks for
const ANSWER_MS = 30_000;

/**
 * Create a durable subscription, once, however often the request has to be repeated. Rejects with Problem (refused) or
 * HeraldError (no answer).
 *
 * @param {string} base the domain's address
 * @param {string | undefined} token
 * @param {string} rp
 * @param {import("./herald.d.ts").DurableOptions} [options]
 */
export function create(base, token, rp, { leaseS, history, from = "now", signal } = {}) {
  const body = {
    from,
    deliver: { mode: "pull" },
    ...(leaseS === undefined ? {} : { lease_s: leaseS }),
    ...(history === undefined ? {} : { history: historyMembers(history) }),
  };
  const path = `rps/${encodeURIComponent(withSlash(rp))}/subscriptions`;
  return ask(base, token, "POST", path, { body, signal, headers: { "Idempotency-Key": randomId() } });
}

/** End a durable subscription; its unread events are lost. One that is gone already is no error. */
export async function remove(base, token, id, { signal } = NO_OPTIONS) {
  try {
    await ask(base, token, "DELETE", `subscriptions/${encodeURIComponent(id)}`, { signal });
  } catch (error) {
    if (!(error instanceof Problem) || !["not-found", "gone"].includes(error.code)) throw error;
  }
}

/** @type {{signal?: AbortSignal}} */
const NO_OPTIONS = {};

/** @param {NonNullable<import("./herald.d.ts").DurableOptions["history"]>} history */
function historyMembers({ maxEvents, maxBytes, maxAgeS }) {
  const members = { max_events: maxEvents, max_bytes: maxBytes, max_age_s: maxAgeS };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** A name ends in a slash before what follows it in a path; an id does not. */
function withSlash(rp) {
  return /^([a-z2-7]{26}(\.admin)?|domain\.admin)$/.test(rp) || rp.endsWith("/") ? rp : `${rp}/`;
}

/** @param {{body?: object, headers?: Record<string, string>, signal?: AbortSignal}} options */
async function ask(base, token, method, path, options) {
  const { body, headers = {}, signal } = options;
  const url = new URL(`api/v1/${path}`, base);
  const sent = {
    method,
    headers: {
      ...headers,
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
      ...(body ? { "Content-Type": "application/json" } : {}),
    },
    body: body ? JSON.stringify(body) : undefined,
  };
  for (let attempt = 1; ; attempt++) {
    let error;
    try {
      const limit = AbortSignal.timeout(ANSWER_MS);
      const answer = await fetch(url, { ...sent, signal: signal ? AbortSignal.any([signal, limit]) : limit });
      const document = answer.status === 204 ? null : await answer.json().catch(() => ({}));
      if (answer.ok) return document;
      error = new Problem({ status: answer.status, title: answer.statusText, ...document });
    } catch (cause) {
      signal?.throwIfAborted();
      error = new HeraldError(`The domain does not answer: ${cause.message}`);
    }
    const final = error instanceof Problem && !error.passing;
    if (final || attempt === ATTEMPTS) throw error;
    const asked = error instanceof Problem && error.retryAfterS !== null ? error.retryAfterS * 1000 : 0;
    await pause(Math.min(RETRY_MAX_MS, Math.max(asked, RETRY_MS * 2 ** (attempt - 1))), signal);
  }
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms);
    function done() {
      signal?.removeEventListener("abort", stop);
      resolve(undefined);
    }
    function stop() {
      clearTimeout(timer);
      reject(signal.reason);
    }
    signal?.addEventListener("abort", stop, { once: true });
  });
}
