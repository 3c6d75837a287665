/**
 * Errors of the client; all are HeraldError. Problem: the domain refused an operation; `code` is stable
 * (docs/protocol.md lists all codes). Closed: the domain closed the connection for good; another connection would be
 * closed in the same way. ClientClosed: the program itself closed the client during the operation.
 */

const PROBLEM_PREFIX = "urn:herald:problem:";

/** Base of all errors that the client rejects with or throws deliberately. */
export class HeraldError extends Error {
  constructor(message) {
    super(message);
    this.name = this.constructor.name;
  }
}

/**
 * A member of a document if it has the right type; a domain may send anything.
 * @param {unknown} value
 */
function textOf(value) {
  return typeof value === "string" ? value : "";
}

/** A problem document, or the error frame with the same content. Members of a wrong type are left out. */
export class Problem extends HeraldError {
  /** @param {{type?: string, title?: string, status?: number, detail?: string, retry_after_s?: number, [extension: string]: unknown}} document */
  constructor(document) {
    super(textOf(document.detail) || textOf(document.title) || "The domain refused the operation.");
    this.type = textOf(document.type) || "about:blank";
    this.title = textOf(document.title);
    this.status = typeof document.status === "number" ? document.status : 0;
    this.detail = textOf(document.detail);
    const after = document.retry_after_s;
    this.retryAfterS = typeof after === "number" && after >= 0 ? after : null;
    this.document = document;
  }

  /** Return the last part of `type`, such as not-found; empty for problems that are not the domain's. */
  get code() {
    return this.type.startsWith(PROBLEM_PREFIX) ? this.type.slice(PROBLEM_PREFIX.length) : "";
  }

  /** Return whether the same request may succeed later without any change. */
  get passing() {
    return PASSING_CODES.has(this.code) || PASSING_STATUS.has(this.status);
  }
}

/** The connection has ended for good. `code` is the WebSocket close code. */
export class Closed extends HeraldError {
  /**
   * @param {number} code
   * @param {string} reason
   */
  constructor(code, reason) {
    const meaning = CLOSE_MEANINGS[code] ?? "The domain closed the connection for good.";
    super(reason && reason !== meaning ? `${meaning} (${reason})` : meaning);
    this.code = code;
    this.reason = reason;
  }
}

/** The client was closed by its own program. */
export class ClientClosed extends HeraldError {
  constructor() {
    super("The client was closed.");
  }
}

/** Problems that pass by themselves: the same request is retried later. Every other one is final. */
const PASSING_CODES = new Set(["unavailable", "rate-limited", "timeout", "ack-unavailable"]);
const PASSING_STATUS = new Set([408, 429, 502, 503, 504]); // of a problem that this client does not know

export const CLOSE_TOKEN_EXPIRED = 4100;
/** Close codes about one reading; the connection's other readings continue. */
export const CLOSE_OF_ONE = new Set([4102, 4103]);
const CLOSE_MEANINGS = {
  1002: "The domain found a protocol violation.",
  1003: "The domain does not accept such frames.",
  1007: "The domain found a malformed frame.",
  1008: "The domain's rules do not allow this.",
  1009: "A frame was too large for the domain.",
  4100: "The token has expired, or is not valid here.",
  4101: "The token has been revoked.",
  4102: "The permission for this was withdrawn.",
  4103: "The rendezvous point has ended.",
  4104: "The domain found a protocol violation.",
  4105: "An operator of the domain has disconnected this client.",
};
const TERMINAL_STANDARD = new Set([1002, 1003, 1007, 1008, 1009]);

/**
 * Return whether a close code means that reconnecting cannot help (4100-4199 and some standard codes).
 * @param {number} code
 */
export function isTerminal(code) {
  return (code >= 4100 && code < 4200) || TERMINAL_STANDARD.has(code);
}
