/**
 * A policy as rows of the editor: what a person chooses and types, beside the document that is saved. Pure.
 *
 * `rowsOf(document)` and `documentOf(rows)` are each other's inverse for every document that the domain accepts: a test that the
 * rows have no fields for is kept as JSON. What is typed wrong is stated per row by `faultsOf`; everything else about a policy
 * is checked by the domain, whose sentence begins with the rule that it is about (`ruleOf`).
 */

/** @typedef {{claim: string, test: string, value: string, end: string}} Condition `end` is the upper end of a range */
/** @typedef {{key: number, kind: string, name: string, jwks: string, conditions: Condition[], allow: string[]}} Row `name` of a
 *   peer, or address of an OIDC issuer */

export const OPERATIONS = ["describe", "publish", "subscribe", "history", "administer", "replicate"];
const READING = ["describe", "subscribe", "history"];
const USING = ["describe", "publish", "subscribe", "history"];
const PEER = "peer:";

/** Kinds of issuers: what the rule is about, and the label of the field with its name. */
export const KINDS = {
  domain: { says: "Tokens of this domain" },
  peer: { says: "Tokens of a peer", field: "Peer", example: "b.example" },
  oidc: { says: "Tokens of an OIDC issuer", field: "Issuer", example: "https://id.example.org" },
  anyone: { says: "Anyone, with or without a token" },
};

/** Tests of a claim, in words that continue its name. `takes`: the fields of the operand. */
export const TESTS = {
  is: { says: "is", takes: "text" },
  "is-number": { says: "is the integer", takes: "text" },
  "is-true": { says: "is true", takes: "" },
  "is-false": { says: "is false", takes: "" },
  in: { says: "is one of", takes: "lines" },
  prefix: { says: "begins with", takes: "text" },
  range: { says: "is a number between", takes: "range" },
  audience: { says: "contains", takes: "text" },
  present: { says: "is present", takes: "" },
  missing: { says: "is missing", takes: "" },
  json: { says: "as JSON", takes: "text" },
};

let keys = 0;

/** @param {Partial<Row>} [stated] @returns {Row} */
export function row(stated = {}) {
  return { key: ++keys, kind: "domain", name: "", jwks: "", conditions: [], allow: [], ...stated };
}

/** @param {Partial<Condition>} [stated] @returns {Condition} */
export function condition(stated = {}) {
  return { claim: "sub", test: "is", value: "", end: "", ...stated };
}

/** Rules to begin with. @type {Record<string, {says: string, make: () => Row}>} */
export const PRESETS = {
  domain: { says: "This domain: read and publish", make: () => row({ allow: [...USING] }) },
  peer: {
    says: "A peer: read, publish and replicate",
    make: () => row({ kind: "peer", allow: [...USING, "replicate"] }),
  },
  subject: {
    says: "One subject: publish",
    make: () => row({ conditions: [condition()], allow: ["describe", "publish"] }),
  },
  everybody: { says: "Everybody: read only", make: () => row({ kind: "anyone", allow: [...READING] }) },
  deny: { says: "One subject: nothing", make: () => row({ conditions: [condition()] }) },
};

/** @param {any[]} document a policy that the domain has accepted @returns {Row[]} */
export function rowsOf(document) {
  return document.map(({ issuer, jwks = "", claims = {}, allow }) =>
    row({
      ...issuerOf(issuer),
      jwks,
      allow: [...allow],
      conditions: Object.entries(claims).map(([claim, tested]) => ({ claim, ...operandOf(tested) })),
    }),
  );
}

function issuerOf(issuer) {
  if (issuer === "domain" || issuer === "anyone") return { kind: issuer, name: "" };
  if (issuer.startsWith(PEER)) return { kind: "peer", name: issuer.slice(PEER.length) };
  return { kind: "oidc", name: issuer };
}

/** @returns {Omit<Condition, "claim">} */
function operandOf(tested) {
  const plain = (name, text = "", end = "") => ({ test: name, value: text, end });
  const tests = Object.entries(tested);
  if (tests.length !== 1) return plain("json", JSON.stringify(tested));
  const [[test, value]] = tests;
  if (test === "equals") {
    if (typeof value === "boolean") return plain(value ? "is-true" : "is-false");
    if (typeof value === "number") return plain("is-number", String(value));
    if (value && fits(value)) return plain("is", value);
  }
  if (test === "in" && value.length && value.every(isLine)) return plain("in", value.join("\n"));
  if ((test === "prefix" || test === "audience") && fits(value)) return plain(test, value);
  if (test === "exists") return plain(value ? "present" : "missing");
  if (test === "range") return plain("range", numberText(value.min), numberText(value.max));
  return plain("json", JSON.stringify(tested));
}

/** Whether a field of one line holds the text. @param {string} text */
function fits(text) {
  return !/[\r\n]/.test(text);
}

function isLine(value) {
  return typeof value === "string" && value !== "" && value === value.trim() && fits(value);
}

function numberText(value) {
  return value === undefined ? "" : String(value);
}

/** @param {Row[]} rows without faults @returns {any[]} */
export function documentOf(rows) {
  return rows.map(({ kind, name, jwks, conditions, allow }) => ({
    issuer: { peer: `${PEER}${name.trim()}`, oidc: name.trim() }[kind] ?? kind,
    ...(kind === "oidc" && jwks.trim() && { jwks: jwks.trim() }),
    ...(conditions.length && {
      claims: Object.fromEntries(conditions.map((one) => [one.claim.trim(), testOf(one)])),
    }),
    allow: OPERATIONS.filter((operation) => allow.includes(operation)),
  }));
}

function testOf({ test, value, end }) {
  if (test === "is") return { equals: value };
  if (test === "is-number") return { equals: Number(value) };
  if (test === "is-true" || test === "is-false") return { equals: test === "is-true" };
  if (test === "in") return { in: lines(value) };
  if (test === "present" || test === "missing") return { exists: test === "present" };
  if (test === "json") return JSON.parse(value);
  if (test !== "range") return { [test]: value };
  return { range: { ...(value.trim() && { min: Number(value) }), ...(end.trim() && { max: Number(end) }) } };
}

function lines(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** What is missing or wrong, by the key of its row: one sentence each. @param {Row[]} rows @returns {Map<number, string>} */
export function faultsOf(rows) {
  const found = new Map();
  for (const one of rows) {
    const fault = faultOf(one);
    if (fault) found.set(one.key, fault);
  }
  return found;
}

/** @param {Row} row */
function faultOf({ kind, name, conditions }) {
  if (kind === "peer" && !name.trim()) return "Enter the name of the peer.";
  if (kind === "oidc" && !name.trim()) return "Enter the address of the issuer, such as https://id.example.org.";
  const claims = new Set();
  for (const one of conditions) {
    const claim = one.claim.trim();
    if (!claim) return "Enter the name of the claim.";
    if (claims.has(claim)) return `Only one condition can be about the claim ${claim}; another rule can admit others.`;
    claims.add(claim);
    const fault = operandFault(one);
    if (fault) return `Claim ${claim}: ${fault}`;
  }
  return "";
}

/** @param {Condition} condition */
function operandFault({ test, value, end }) {
  if (test === "is" && !value) return "enter the text that it must be.";
  if (test === "audience" && !value) return "enter the text that it must be or contain.";
  if (test === "is-number" && !/^-?\d+$/.test(value.trim())) return "enter an integer.";
  if (test === "in" && !lines(value).length) return "enter at least one text, one per line.";
  if (test === "range") {
    const ends = [value, end].filter((one) => one.trim());
    if (!ends.length) return "enter at least one end of the range.";
    if (!ends.every((one) => Number.isFinite(Number(one)))) return "the ends of a range are numbers.";
  }
  if (test === "json") {
    try {
      JSON.parse(value);
    } catch {
      return 'enter a test as JSON, such as {"equals": "ann"}.';
    }
  }
  return "";
}

/** What to think twice about before saving, per row; empty for none. @param {Row} row */
export function doubtOf({ kind, allow }) {
  if (kind === "anyone" && allow.includes("administer")) {
    return "Everybody with a token could change and delete this rendezvous point.";
  }
  return "";
}

/** Rules that never decide because a rule before them matches all of their bearers: key -> number of that rule. @param {Row[]} rows */
export function shadowsOf(rows) {
  const found = new Map();
  rows.forEach((one, index) => {
    const before = rows.findIndex(
      (other, place) =>
        place < index &&
        !other.conditions.length &&
        (other.kind === "anyone" || (other.kind === one.kind && other.name.trim() === one.name.trim())),
    );
    if (before >= 0) found.set(one.key, before + 1);
  });
  return found;
}

/** The place of the rule that a sentence of the domain is about, from 0; -1 for none. @param {string} sentence */
export function ruleOf(sentence) {
  const found = /policy rule (\d+)/.exec(sentence);
  return found ? Number(found[1]) - 1 : -1;
}
