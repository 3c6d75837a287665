/** Bytes as people read them: in rows of hexadecimal numbers, beside what of them is printable. Pure. */

/**
 * @param {Uint8Array} bytes
 * @param {{width?: number, most?: number}} [options] bytes of a row; bytes shown at most
 */
export function hexdump(bytes, { width = 16, most = bytes.length } = {}) {
  const rows = [];
  for (let start = 0; start < Math.min(bytes.length, most); start += width) {
    const row = [...bytes.subarray(start, Math.min(start + width, most))];
    const numbers = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
    rows.push(`${start.toString(16).padStart(6, "0")}  ${numbers.padEnd(3 * width - 1)}  ${text}`);
  }
  return rows.join("\n");
}

/** @param {string} text base64 with the standard alphabet. Throws where it is none. */
export function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
