/** Requests of a page's script to its own domain: authenticated by the session's cookie and the page's CSRF token. */

const TIMEOUT_MS = 15_000;

/** The console session has ended: nothing helps but to log in again. */
export class SessionEnded extends Error {
  constructor() {
    super("Your session has ended.");
    this.name = "SessionEnded";
  }
}

/** The domain refused: `message` is its sentence, `code` its stable code (docs/protocol.md), `status` the HTTP status. */
export class Refused extends Error {
  /** @param {number} status @param {{type?: string, title?: string, detail?: string, retry_after_s?: number}} problem */
  constructor(status, problem) {
    super(problem.detail || problem.title || `The domain responded with status ${status}.`);
    this.name = "Refused";
    this.status = status;
    this.title = problem.title ?? "";
    this.code = (problem.type ?? "").split(":").at(-1);
    this.retryAfterS = problem.retry_after_s ?? null;
    this.problem = problem;
  }
}

/** Nobody answered: the domain or the network is away. */
export class Unanswered extends Error {
  constructor() {
    super("The domain does not respond.");
    this.name = "Unanswered";
  }
}

/**
 * Ask the domain. Resolves to the answer's JSON, null where it has none; rejects with SessionEnded, Refused, Unanswered.
 *
 *     const { rps } = await request("GET", "/api/v1/rps?limit=50");
 *     await request("POST", `/api/v1/rps/${id}/renew`, { lease_s: 3600 });
 *
 * @param {string} method
 * @param {string} url
 * @param {unknown} [body] sent as JSON; a URLSearchParams as a form
 * @param {{timeoutMs?: number, headers?: Record<string, string>}} [options]
 */
export async function request(method, url, body, options) {
  const response = await answered(method, url, body, options);
  return response.status === 204 ? null : response.json();
}

/**
 * Read a resource with its entity tag, for a change with If-Match. Rejects as `request`.
 *
 * @param {string} url
 * @returns {Promise<{document: any, etag: string}>}
 */
export async function getTagged(url) {
  const response = await answered("GET", url);
  return { document: await response.json(), etag: response.headers.get("ETag") ?? "" };
}

/** @param {string} method @param {string} url @param {unknown} [body] @param {{timeoutMs?: number, headers?: Record<string, string>}} [options] */
async function answered(method, url, body, { timeoutMs = TIMEOUT_MS, headers = {} } = {}) {
  const sent = { Accept: "application/json", ...headers };
  const form = body instanceof URLSearchParams; // the browser states its type
  if (method !== "GET") sent["X-CSRFToken"] = csrfToken();
  if (body !== undefined && !form) sent["Content-Type"] = "application/json";
  let response;
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    response = await fetch(url, {
      method,
      headers: sent,
      body: body === undefined || form ? body : JSON.stringify(body),
      signal,
    });
  } catch {
    throw new Unanswered();
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401) throw new SessionEnded();
  throw new Refused(response.status, problem);
}

/** @param {string} url @param {number} [timeoutMs] */
export function getJson(url, timeoutMs) {
  return request("GET", url, undefined, { timeoutMs });
}

/** @param {string} url @param {unknown} [body] */
export function postForJson(url, body) {
  return request("POST", url, body);
}

function csrfToken() {
  return /** @type {HTMLMetaElement | null} */ (document.querySelector("meta[name=csrf]"))?.content ?? "";
}
