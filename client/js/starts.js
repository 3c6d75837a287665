/** Where reading begins: a word, a cursor, or a time, as the domain reads it. */

import { Problem } from "./errors.js";

const TIME = "time:";
const UNSUPPORTED =
  "This domain does not support a start by time: its version is older. Begin at earliest, last or a cursor.";

/** Return a start as it is sent: a Date, or a text as it is. Throws RangeError for a Date that is none. */
export function startText(start) {
  return start instanceof Date ? TIME + start.toISOString() : start;
}

/** Return the error of a domain about a start; where the domain knows no times, it says that. */
export function explained(error, start) {
  if (error.code !== "invalid-cursor" || !start?.startsWith(TIME)) return error;
  return new Problem({ ...error.document, detail: UNSUPPORTED });
}
