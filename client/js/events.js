/** CloudEvents 1.0 as the client sends them: any value that is not a CloudEvent is wrapped, with an id of its own. */

/**
 * Return a random id of 128 bits. Not crypto.randomUUID, which browsers offer on secure origins only.
 * @returns {string}
 */
export function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {unknown} value */
function isCloudEvent(value) {
  return typeof value === "object" && value !== null && "specversion" in value;
}

/** @param {Uint8Array} bytes */
function base64(bytes) {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** @param {unknown} data */
function dataMembers(data) {
  if (typeof data === "string") return { datacontenttype: "text/plain", data };
  if (data instanceof ArrayBuffer) return dataMembers(new Uint8Array(data));
  if (ArrayBuffer.isView(data)) {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    return { datacontenttype: "application/octet-stream", data_base64: base64(bytes) };
  }
  if (data === undefined) return {};
  return { datacontenttype: "application/json", data };
}

/**
 * Return the event to send for a value: a CloudEvent (an object with `specversion`), completed where an id, source or
 * type is missing; or any other value, which becomes the event's data. The id is set here, once: however often the
 * event is sent, the domain stores it once.
 *
 * @param {unknown} dataOrEvent a CloudEvent, or a JSON value, text or bytes
 * @param {{source: string, type: string}} defaults
 * @param {{id?: string, time?: string}} [stamp]
 */
export function toEvent(dataOrEvent, defaults, stamp = {}) {
  const fresh = { id: stamp.id ?? randomId(), source: defaults.source, type: defaults.type };
  if (isCloudEvent(dataOrEvent)) return { ...fresh, .../** @type {object} */ (dataOrEvent) };
  const time = stamp.time ?? new Date().toISOString();
  return { specversion: "1.0", ...fresh, time, ...dataMembers(dataOrEvent) };
}
