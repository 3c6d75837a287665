/** Requests of a page's script to its own domain. */

/** The console session has ended: nothing helps but to log in again. */
export class SessionEnded extends Error {
  constructor() {
    super("Your session has ended.");
    this.name = "SessionEnded";
  }
}

async function answered(response) {
  if (response.status === 401) throw new SessionEnded();
  if (!response.ok) throw new Error(`The domain answered ${response.status}.`);
  return response.json();
}

/**
 * @param {string} url
 * @param {number} timeoutMs
 */
export async function getJson(url, timeoutMs) {
  return answered(await fetch(url, { signal: AbortSignal.timeout(timeoutMs), headers: { Accept: "application/json" } }));
}

/**
 * POST without a body, with the page's CSRF token.
 * @param {string} url
 */
export async function postForJson(url) {
  const csrf = document.querySelector("meta[name=csrf]").content;
  return answered(await fetch(url, { method: "POST", headers: { "X-CSRFToken": csrf, Accept: "application/json" } }));
}
