/**
 * Checks the proof of one event in the browser: that a domain published exactly these bytes at this place of its feed.
 *
 *     const { verdict, steps } = await check(proof, { rp, bytes });
 *
 * The same as client/herald/proofs.py does: the event's hash leads by the Merkle path (RFC 9162) to the sealed root; the
 * seal is signed by a key of the origin's domain document within its window; that document is signed by the domain's first
 * key, whose id is the domain's fingerprint. Hashes are SHA-256 of SubtleCrypto, signatures its Ed25519. A browser that has
 * no Ed25519, or no SubtleCrypto (pages over http), leaves those steps to the domain that answered, and it is said so.
 */

import { fromBase64 } from "./hexdump.js";

const SEAL_CONTEXT = "herald seal v1\0";
const DOMAIN_CONTEXT = "herald domain v1\0";
const SEAL_MEMBERS = ["version", "rp", "origin", "epoch", "first", "last", "root", "previous", "sealedAt"];
const RUN_EVENTS_MAX = 1_000;
const PATH_MAX = 16;
const HASH_BYTES = 32;
const SIGNATURE_BYTES = 64;
const KEYS_MAX = 32;

/** Result of a step; the text is one sentence. */
class Wrong extends Error {}

/**
 * @param {any} proof the answer of GET /api/v1/rps/RP/proof
 * @param {{rp: string, bytes: Uint8Array, sequence: number, origin: string | null}} event as the page shows it
 * @param {SubtleCrypto | null} [subtle] null where the browser has none
 * @returns {Promise<{verdict: "verified" | "partly" | "refuted", steps: {name: string, by: "page" | "domain" | null, says: string}[],
 *   seal: object | null, fingerprint: string | null}>} `by`: who checked the step; null: it failed, and no later one was looked at
 */
export async function check(proof, event, subtle = globalThis.crypto?.subtle) {
  const steps = [];
  /** @type {{seal: any, fingerprint: any}} set by the steps, one after the other */
  const found = { seal: null, fingerprint: null };
  let unchecked = 0;
  const step = async (name, says, checked) => {
    try {
      const by = (await checked()) ?? "page";
      if (by === "domain") unchecked++;
      steps.push({ name, by, says: by === "domain" ? UNABLE : says() });
    } catch (error) {
      steps.push({
        name,
        by: null,
        says: error instanceof Wrong ? error.message : "The response is not a proof that this page supports.",
      });
      throw error;
    }
  };
  try {
    await step(
      "Bytes",
      () => `The proof covers the ${event.bytes.length} bytes shown here.`,
      () => sameBytes(proof, event),
    );
    await step(
      "Seal",
      () => sealText(found.seal),
      () => {
        found.seal = sealOf(proof, event);
      },
    );
    await step(
      "Hash",
      () => pathText(proof),
      () => rootReached(proof, found.seal, event.bytes, subtle),
    );
    await step(
      "Signature",
      () => `Signed by ${found.seal.origin} with its key ${proof.seal.kid}.`,
      () => sealSigned(proof, found.seal, subtle),
    );
    await step(
      "Domain",
      () => `The domain document is signed by the key ${found.fingerprint}.`,
      async () => {
        const { first, by } = await documentSigned(proof, found.seal, subtle);
        found.fingerprint = first;
        return by;
      },
    );
  } catch {
    return { verdict: "refuted", steps, ...found };
  }
  return { verdict: unchecked ? "partly" : "verified", steps, ...found };
}

const UNABLE = "This browser cannot verify this step; the domain that responded has verified it.";

function sealText({ origin, rp, first, last, sealedAt }) {
  return `${origin} sealed its events ${first} to ${last} at ${rp} on ${new Date(sealedAt).toISOString()}.`;
}

function pathText({ path }) {
  return path.length
    ? `${path.length} hashes lead from the event to the sealed root.`
    : "The event's hash is the sealed root.";
}

// ---- the steps ----

function sameBytes(proof, { bytes }) {
  const claimed = fromBase64(proof.event);
  if (!equal(claimed, bytes)) throw new Wrong("The proof covers other bytes than those shown here.");
}

function sealOf({ seal: statement, leaf_index: index }, { rp, sequence, origin }) {
  const values = messagePackArray(fromBase64(statement.payload));
  const seal = Object.fromEntries(SEAL_MEMBERS.map((name, place) => [name, values[place]]));
  const count = seal.last - seal.first + 1;
  const numbers = [seal.first, seal.last, seal.sealedAt, index].every((one) => Number.isSafeInteger(one) && one >= 0);
  const known = values.length === SEAL_MEMBERS.length && seal.version === 1 && seal.root instanceof Uint8Array;
  if (!known || !numbers || seal.root.length !== HASH_BYTES || count < 1 || count > RUN_EVENTS_MAX) {
    throw new Wrong("This page does not support the format of the seal.");
  }
  if (seal.rp !== rp) throw new Wrong(`The seal belongs to ${seal.rp}.`);
  if (origin !== null && seal.origin !== origin) {
    throw new Wrong(`The seal was issued by ${seal.origin}, not by ${origin}.`);
  }
  if (seal.first + index !== sequence || index >= count) {
    throw new Wrong(`The seal covers event ${seal.first + index} of the feed.`);
  }
  return seal;
}

async function rootReached({ path, leaf_index: leaf }, seal, bytes, subtle) {
  if (!subtle) return "domain";
  if (!Array.isArray(path) || path.length > PATH_MAX) throw new Wrong("The proof has no path of hashes.");
  const wrong = new Wrong("The event differs from the sealed one: its hash does not lead to the sealed root.");
  let current = await hash(subtle, [0], bytes);
  let index = leaf;
  let last = seal.last - seal.first;
  for (const neighbour of path.map(fromBase64)) {
    if (last === 0 || neighbour.length !== HASH_BYTES) throw wrong;
    if (index & 1 || index === last) {
      current = await hash(subtle, [1], neighbour, current);
      while (!(index & 1) && index) [index, last] = [index >> 1, last >> 1];
    } else {
      current = await hash(subtle, [1], current, neighbour);
    }
    [index, last] = [index >> 1, last >> 1];
  }
  if (last !== 0 || !equal(current, seal.root)) throw wrong;
  return "page";
}

async function sealSigned({ seal: statement, document }, seal, subtle) {
  const key = keysOf(document, seal.origin).find(({ kid }) => kid === statement.kid);
  if (!key) throw new Wrong(`The seal is signed by a key that ${seal.origin} does not list.`);
  const begun = seal.sealedAt >= (key.nbf ?? NaN) * 1000;
  const ended = key.exp !== null && key.exp !== undefined && seal.sealedAt >= (key.exp + 1) * 1000;
  if (!begun || ended) throw new Wrong("The seal was made outside the window of the key that signed it.");
  const payload = fromBase64(statement.payload);
  return signed(
    subtle,
    SEAL_CONTEXT,
    payload,
    fromBase64(statement.signature),
    key.x,
    "The signature of the seal is not valid.",
  );
}

/** By the document's first key, which vouches for the others. */
async function documentSigned({ document }, seal, subtle) {
  const keys = keysOf(document, seal.origin);
  for (const { kid, x } of subtle ? keys : []) {
    if ((await thumbprint(subtle, x)) !== kid) {
      throw new Wrong("The domain document lists a key that is not named by its thumbprint.");
    }
  }
  const [first] = keys;
  const place = document.kids.indexOf(first.kid);
  const wrong = "The domain document is not signed by the domain's first key.";
  if (place < 0) throw new Wrong(wrong);
  const signature = fromBase64(document.signature).subarray(place * SIGNATURE_BYTES, (place + 1) * SIGNATURE_BYTES);
  const by = await signed(subtle, DOMAIN_CONTEXT, fromBase64(document.payload), signature, first.x, wrong);
  return { first: first.kid, by };
}

function keysOf(document, origin) {
  const { domain, keys } = JSON.parse(new TextDecoder().decode(fromBase64(document.payload)));
  if (domain !== origin) throw new Wrong(`The domain document is not that of ${origin}.`);
  if (!Array.isArray(keys) || keys.length < 1 || keys.length > KEYS_MAX) {
    throw new Wrong("The domain document lists no keys.");
  }
  return keys;
}

// ---- cryptography, bytes ----

async function signed(subtle, context, payload, signature, x, wrong) {
  if (!subtle) return "domain";
  let key;
  try {
    key = await subtle.importKey("raw", fromBase64(standard(x)), { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (error.name === "NotSupportedError") return "domain";
    throw new Wrong(wrong);
  }
  const said = joined([new TextEncoder().encode(context), payload]);
  if (!(await subtle.verify({ name: "Ed25519" }, key, signature, said))) throw new Wrong(wrong);
  return "page";
}

/** RFC 7638. */
async function thumbprint(subtle, x) {
  const digest = await hash(subtle, new TextEncoder().encode(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`));
  return btoa(String.fromCharCode(...digest))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

function standard(base64url) {
  return base64url.replaceAll("-", "+").replaceAll("_", "/");
}

async function hash(subtle, ...parts) {
  return new Uint8Array(await subtle.digest("SHA-256", joined(parts)));
}

function joined(parts) {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let place = 0;
  for (const part of parts) {
    all.set(part, place);
    place += part.length;
  }
  return all;
}

function equal(one, other) {
  return one.length === other.length && one.every((byte, place) => byte === other[place]);
}

/** A short MessagePack array of numbers from 0, texts and bytes, which is all that a seal holds. */
function messagePackArray(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let place = 1;
  const taken = (size) => {
    place += size;
    return data.subarray(place - size, place);
  };
  const number = (size) => {
    const value = size === 8 ? Number(view.getBigUint64(place)) : view[`getUint${8 * size}`](place);
    place += size;
    return value;
  };
  const text = (size) => new TextDecoder("utf-8", { fatal: true }).decode(taken(size));
  const value = () => {
    const kind = data[place++];
    if (kind < 0x80) return kind;
    if ((kind & 0xe0) === 0xa0) return text(kind & 0x1f);
    if (kind >= 0xcc && kind <= 0xcf) return number(1 << (kind - 0xcc));
    if (kind === 0xc4 || kind === 0xc5) return taken(number(kind - 0xc3));
    if (kind === 0xd9 || kind === 0xda) return text(number(kind - 0xd8));
    throw new Wrong("The seal has members of an unsupported type.");
  };
  if ((data[0] & 0xf0) !== 0x90) throw new Wrong("The seal is not a MessagePack array.");
  const values = Array.from({ length: data[0] & 0x0f }, value);
  if (place !== data.length) throw new Wrong("The seal is truncated or has trailing bytes.");
  return values;
}
