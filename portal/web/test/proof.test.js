/** Proofs of origin, checked as the page does: a true one is verified, and every single lie in one is found. */

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";

import { check } from "../timescale/proof.js";

const RP = "a".repeat(26);
const ORIGIN = "a.example";
const SEALED_MS = Date.UTC(2026, 10, 21);
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const sha = (...parts) =>
  createHash("sha256")
    .update(Buffer.concat(parts.map((part) => Buffer.from(part))))
    .digest();

function keyPair() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const { x } = publicKey.export({ format: "jwk" });
  return { x, kid: sha(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).toString("base64url"), privateKey };
}

function packed(value) {
  if (typeof value === "string") {
    return Buffer.concat([Buffer.from([0xd9, Buffer.byteLength(value)]), Buffer.from(value)]);
  }
  if (Buffer.isBuffer(value)) return Buffer.concat([Buffer.from([0xc4, value.length]), value]);
  const number = Buffer.alloc(9, 0xcf);
  number.writeBigUInt64BE(BigInt(value), 1);
  return value < 0x80 ? Buffer.from([value]) : number;
}

/** The proof of event `index` of `count` sealed ones, as a domain answers it. */
function proofOf(index, count, key = keyPair(), said = {}) {
  const events = Array.from({ length: count }, (_, n) => Buffer.from(JSON.stringify({ n })));
  let level = events.map((event) => sha([0], event));
  const path = [];
  for (let place = index; level.length > 1; place >>= 1) {
    if ((place ^ 1) < level.length) path.push(level[place ^ 1]);
    level = level.flatMap((_, n) =>
      n % 2 ? [] : [n + 1 < level.length ? sha([1], level[n], level[n + 1]) : level[n]],
    );
  }
  const seal = {
    version: 1,
    rp: RP,
    origin: ORIGIN,
    epoch: "abcd",
    first: 101,
    last: 100 + count,
    root: level[0],
    previous: Buffer.alloc(0),
    at: SEALED_MS,
    ...said,
  };
  const payload = Buffer.concat([Buffer.from([0x99]), ...Object.values(seal).map(packed)]);
  const document = Buffer.from(
    JSON.stringify({ domain: ORIGIN, keys: [{ kid: key.kid, x: key.x, nbf: SEALED_MS / 1000 - 10, exp: null }] }),
  );
  return {
    event: base64(events[index]),
    leaf_index: index,
    path: path.map(base64),
    seal: {
      payload: base64(payload),
      kid: key.kid,
      signature: base64(sign(null, Buffer.concat([Buffer.from("herald seal v1\0"), payload]), key.privateKey)),
    },
    document: {
      payload: base64(document),
      kids: [key.kid],
      signature: base64(sign(null, Buffer.concat([Buffer.from("herald domain v1\0"), document]), key.privateKey)),
    },
  };
}

const about = (proof) => ({
  rp: RP,
  bytes: Uint8Array.from(Buffer.from(proof.event, "base64")),
  sequence: 101 + proof.leaf_index,
  origin: ORIGIN,
});

test("a true proof is verified, whatever the event's place in the tree", async () => {
  for (const [index, count] of [
    [0, 1],
    [0, 2],
    [1, 2],
    [2, 3],
    [4, 5],
    [6, 7],
    [3, 8],
    [999, 1000],
  ]) {
    const proof = proofOf(index, count);
    const { verdict, steps, fingerprint } = await check(proof, about(proof));
    assert.equal(verdict, "verified", `${index} of ${count}: ${steps.at(-1)?.says}`);
    assert.deepEqual(
      steps.map(({ name, by }) => `${name} ${by}`),
      ["Bytes page", "Seal page", "Hash page", "Signature page", "Domain page"],
    );
    assert.equal(fingerprint, proof.seal.kid);
  }
});

const turned = (text) => {
  const bytes = Buffer.from(text, "base64");
  bytes[bytes.length >> 1] ^= 1;
  return base64(bytes);
};
/** @type {Record<string, [tell: (proof: any) => unknown, found: RegExp]>} */
const LIES = {
  "other bytes than those shown": [(proof) => (proof.event = turned(proof.event)), /other bytes/],
  "a hash of the path": [(proof) => (proof.path[1] = turned(proof.path[1])), /does not lead to the sealed root/],
  "a path that is too short": [(proof) => proof.path.pop(), /does not lead/],
  "a path that is too long": [(proof) => proof.path.push(proof.path[0]), /does not lead/],
  "the seal's signature": [
    (proof) => (proof.seal.signature = turned(proof.seal.signature)),
    /signature of the seal is not valid/,
  ],
  "the document's signature": [
    (proof) => (proof.document.signature = turned(proof.document.signature)),
    /not signed by the domain's first key/,
  ],
  "a key that nobody lists": [(proof) => (proof.seal.kid = "x"), /does not list/],
  "no seal": [(proof) => delete proof.seal, /not a proof that this page supports/],
  "a seal that is cut off": [
    (proof) => (proof.seal.payload = base64(Buffer.from(proof.seal.payload, "base64").subarray(0, 40))),
    /seal/,
  ],
  "something else": [(proof) => (proof.event = "*"), /not a proof/],
};
for (const [lie, [tell, found]] of Object.entries(LIES)) {
  test(`a lie is found: ${lie}`, async () => {
    const proof = proofOf(2, 5);
    const event = about(proof);
    tell(proof);
    const { verdict, steps } = await check(proof, event);
    assert.equal(verdict, "refuted");
    assert.equal(steps.at(-1)?.by, null);
    assert.match(steps.at(-1)?.says ?? "", found);
  });
}

test("a seal of something else proves nothing, though it is signed", async () => {
  /** @type {[said: object, found: RegExp][]} */
  const cases = [
    [{ rp: "b".repeat(26) }, /belongs to b/],
    [{ origin: "m.example" }, /by m\.example/],
    [{ first: 102, last: 106 }, /event 104 of the feed/],
    [{ version: 2 }, /does not support the format/],
    [{ last: 2_000 }, /does not support the format/],
    [{ at: SEALED_MS - 20_000 }, /outside the window/],
    [{ root: Buffer.alloc(32) }, /does not lead/],
  ];
  for (const [said, found] of cases) {
    const proof = proofOf(2, 5, keyPair(), said);
    const { verdict, steps } = await check(proof, about(proof));
    assert.equal(verdict, "refuted", JSON.stringify(said));
    assert.match(steps.at(-1)?.says ?? "", found);
  }
});

test("a key that the document names by another's thumbprint is refused", async () => {
  const proof = proofOf(0, 1, { ...keyPair(), kid: "made-up" });
  const { verdict, steps } = await check(proof, about(proof));
  assert.equal(verdict, "refuted");
  assert.match(steps.at(-1)?.says ?? "", /thumbprint/);
});

test("a browser without Ed25519 checks the hashes and says that the rest is the domain's word", async () => {
  const proof = proofOf(2, 5);
  const without = /** @type {any} */ ({
    digest: (name, bytes) => crypto.subtle.digest(name, bytes),
    importKey: async () => {
      throw new DOMException("no such algorithm", "NotSupportedError");
    },
  });
  const { verdict, steps } = await check(proof, about(proof), without);
  assert.equal(verdict, "partly");
  assert.deepEqual(
    steps.map(({ by }) => by),
    ["page", "page", "page", "domain", "domain"],
  );
  proof.path[0] = turned(proof.path[0]);
  assert.equal((await check(proof, about(proof), without)).verdict, "refuted");
});

test("a page that came without encryption checks nothing, and says so", async () => {
  const proof = proofOf(2, 5);
  const { verdict, steps } = await check(proof, about(proof), null);
  assert.equal(verdict, "partly");
  assert.deepEqual(
    steps.map(({ by }) => by),
    ["page", "page", "domain", "domain", "domain"],
  );
});
