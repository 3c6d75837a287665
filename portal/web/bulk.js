/** The same act on many objects: a few requests at a time, each answered for itself, and what failed stated with its reason. */

import { Refused, SessionEnded } from "./requests.js";

const AT_ONCE = 4;
const LONGEST_WAIT_S = 30;
export const NAMES_SHOWN = 8;

/**
 * Perform an act on each item. A request that is refused because there were too many (429) is repeated after the time that the
 * domain states. Rejects with SessionEnded only.
 *
 * @template T
 * @param {T[]} items
 * @param {(item: T) => Promise<unknown>} perform
 * @param {(done: number) => void} [onProgress] called after each
 * @returns {Promise<{done: T[], failed: {item: T, message: string}[]}>}
 */
export async function performOnEach(items, perform, onProgress = () => {}) {
  const waiting = [...items];
  /** @type {T[]} */
  const done = [];
  /** @type {{item: T, message: string}[]} */
  const failed = [];
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      try {
        await patiently(() => perform(/** @type {T} */ (item)));
        done.push(item);
      } catch (error) {
        if (error instanceof SessionEnded) throw error;
        failed.push({ item, message: error.message });
      }
      onProgress(done.length + failed.length);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work));
  return { done, failed };
}

/** @param {() => Promise<unknown>} attempt */
async function patiently(attempt) {
  try {
    await attempt();
  } catch (error) {
    if (!(error instanceof Refused && error.status === 429)) throw error;
    const seconds = Math.min(error.retryAfterS ?? 1, LONGEST_WAIT_S);
    await new Promise((resume) => setTimeout(resume, seconds * 1000));
    await attempt();
  }
}

/**
 * Everything that a list of the REST interface has, page by page, up to `most`. Rejects as `getJson`.
 * @param {(cursor: string) => Promise<{items: any[], next: string | null}>} ask a page
 * @param {number} most
 * @returns {Promise<{items: any[], whole: boolean}>} `whole`: whether there are no more
 */
export async function everything(ask, most) {
  /** @type {any[]} */
  const items = [];
  let next = "";
  do {
    const page = await ask(next);
    items.push(...page.items);
    next = page.next ?? "";
  } while (next && items.length < most);
  return { items: items.slice(0, most), whole: !next && items.length <= most };
}

/** "3 of 12 failed. weather/a: it is a replica." @param {{name: string, message: string}[]} failed @param {number} all */
export function failureWords(failed, all) {
  const [{ name, message }] = failed;
  return all === 1 ? message : `${failed.length} of ${all} failed and stay selected. ${name}: ${message}`;
}

/** "a, b and 3 more" of many names. @param {string[]} names */
export function namesWords(names) {
  const shown = names.slice(0, NAMES_SHOWN);
  const more = names.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}
