/**
 * States of administrative rendezvous points: applies an event by the effects that the catalogue states for its type (GET
 * /api/v1/admin/catalogue). The same as admin_rp/state.py, which documents the members of an effect; both are tested with
 * the same vectors (tests/admin_rp/vectors.json).
 *
 * Nothing is changed in place: what is on the way to a change is copied and the rest shared, so `before !== after` tells.
 */

export const DOMAIN = "domain";
export const RP = "rp";
export const OVERLAY = "overlay";

/**
 * @typedef {{op: "put" | "merge" | "remove", at: (string | string[])[], in?: "domain" | "rp" | "overlay", when?: Record<string, unknown>,
 *   each?: string, value?: unknown, if?: "present" | "absent", without?: string[], newer?: string, most?: number,
 *   by?: string}} Effect as admin_rp/state.py says
 */

/** Marks a value that cannot be read; differs from every JSON value. */
const MISSING = Symbol("missing");

/**
 * The state after `event`. Types that the catalogue does not have change nothing.
 * @template {object} S
 * @param {{types: Record<string, {effects: Effect[]}>}} catalogue
 * @param {"domain" | "rp" | "overlay"} which
 * @param {S} state
 * @param {{type: string, data?: unknown}} event a CloudEvent
 * @returns {S}
 */
export function apply(catalogue, which, state, event) {
  const effects = Object.hasOwn(catalogue.types, event.type) ? catalogue.types[event.type].effects : [];
  for (const effect of effects) {
    if ((effect.in ?? (which === OVERLAY ? null : which)) === which) state = done(effect, state, event);
  }
  return state;
}

function done(effect, state, event) {
  const data = event.data;
  for (const [path, value] of Object.entries(effect.when ?? {})) {
    if (!same(read(data, path.split(".")), value)) return state;
  }
  if (effect.each === undefined) return once(effect, state, event, data);
  const found = read(data, effect.each.slice(1).split("."));
  for (const item of Array.isArray(found) ? found : []) state = once(effect, state, event, { ...data, each: item });
  return state;
}

function once(effect, state, event, data) {
  const path = effect.at.map((segment) => segmentOf(segment, data));
  if (path.includes(null)) return state;
  const held = read(state, path);
  const there = held !== MISSING && held !== null;
  if (effect.if !== undefined && effect.if !== (there ? "present" : "absent")) return state;
  if (effect.op === "remove") return held === MISSING ? state : without(state, path);
  let value = valueOf(effect.value, event, data);
  if (value === MISSING) return state;
  if (effect.without) value = omit(value, effect.without);
  if (there && effect.newer !== undefined && older(effect.newer.split("."), value, held)) return state;
  if (effect.op === "merge" && there) value = { ...held, ...value };
  const changed = put(state, path, value);
  return effect.most === undefined ? changed : bounded(changed, path.slice(0, -1), effect.most, effect.by);
}

/** A name of a path; null if the data does not contain it. */
function segmentOf(segment, data) {
  if (Array.isArray(segment)) {
    const parts = segment.map((part) => segmentOf(part, data));
    return parts.includes(null) ? null : parts.join(" ");
  }
  if (!segment.startsWith("$")) return segment;
  const found = read(data, segment.slice(1).split("."));
  return typeof found === "string" ? found : null;
}

function valueOf(template, event, data) {
  if (typeof template === "string" && template.startsWith("$")) {
    return template === "$" ? data : read(data, template.slice(1).split("."));
  }
  if (typeof template === "string" && template.startsWith("@")) {
    const name = template.slice(1);
    return Object.hasOwn(event, name) ? event[name] : MISSING;
  }
  if (!isObject(template)) return template;
  const made = {};
  for (const [name, member] of Object.entries(template)) {
    const value = valueOf(member, event, data);
    if (value === MISSING) return MISSING;
    made[name] = value;
  }
  return made;
}

function read(value, path) {
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return MISSING;
    value = value[name];
  }
  return value;
}

/** Whether the value held has a greater one; numbers and RFC 3339 in UTC compare as they are. */
function older(path, value, held) {
  const mine = read(value, path);
  const theirs = read(held, path);
  if ([mine, theirs].some((one) => one === MISSING || one === null)) return false;
  return theirs > mine;
}

/** A copy with `value` at `path`; objects that are missing on the way are made. */
function put(state, path, value) {
  const [name, ...rest] = path;
  if (rest.length === 0) return { ...state, [name]: value };
  const inner = Object.hasOwn(state, name) && isObject(state[name]) ? state[name] : {};
  return { ...state, [name]: put(inner, rest, value) };
}

function without(state, path) {
  const [name, ...rest] = path;
  return rest.length ? { ...state, [name]: without(state[name], rest) } : omit(state, [name]);
}

function omit(object, names) {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** A copy whose object at `path` has at most `most` members: those whose member `by` is greatest, then by name. */
function bounded(state, path, most, by) {
  const rows = read(state, path);
  const names = Object.keys(rows);
  if (names.length <= most) return state;
  const rank = (name) => rows[name][by] || "";
  names.sort((a, b) => order(rank(a), rank(b)) || order(a, b));
  return put(state, path, omit(rows, names.slice(0, -most)));
}

function order(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function same(a, b) {
  return a === b || (isObject(a) && isObject(b) && JSON.stringify(a) === JSON.stringify(b));
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
