/** Words and shares of self-administration. Pure. */

/** State of a decision: look of its badge, words. @type {Record<string, [string, string]>} */
const STATES = {
  proposed: ["warn", "proposed"],
  approved: ["", "approved"],
  working: ["", "under way"],
  done: ["good", "done"],
  failed: ["bad", "failed"],
  rejected: ["off", "rejected"],
  expired: ["off", "expired"],
  abandoned: ["bad", "abandoned"],
};

/** @type {Record<string, string>} */
const REASONS = {
  load: "load",
  idle: "low load",
  failing: "a replica fails",
  histories: "independent histories",
  readers: "placement report",
};

/** State of a plan of routes: look of its badge, words, what it means. @type {Record<string, [string, string, string]>} */
const PLANS = {
  met: ["good", "met", "The planned links meet the target at every participant."],
  missed: ["bad", "missed", "No choice of links meets the target."],
  unknown: ["warn", "unknown", "Not enough is known of the links yet."],
  none: ["off", "no plan", "Nothing is planned."],
};

/** Mode of a planner: look of its badge, and what it does. @type {Record<string, [string, string, string]>} */
const MODES = {
  off: ["off", "Nothing is planned.", "Nothing is planned."],
  advise: ["warn", "Steps are proposed; people approve them.", "Plans are shown, without effect."],
  apply: ["good", "Steps are carried out by themselves.", "Events go by the planned links."],
};

/** @type {Record<string, string>} */
const WHOM = {
  "trusted-peers": "peers trusted with host",
  peers: "all active peers",
  named: "named domains",
  nobody: "nobody",
};

const own = (table, name, otherwise) => (Object.hasOwn(table, name) ? table[name] : otherwise);

/** @param {string} state of a decision @returns {[string, string]} */
export const decisionState = (state) => own(STATES, state, ["", state]);

/** @param {string} reason of a decision */
export const decisionReason = (reason) => own(REASONS, reason, reason);

/** @param {string} state of a plan of routes @returns {[string, string, string]} */
export const planState = (state) => own(PLANS, state, ["", state, ""]);

/** Look of a mode's badge. @param {string} mode */
export const modeLook = (mode) => own(MODES, mode, [""])[0];

/** What a mode does. @param {string} mode @param {"placement" | "routes"} planner */
export const modeWords = (mode, planner) => own(MODES, mode, ["", "", ""])[planner === "routes" ? 2 : 1];

/** Whose invitations are accepted. @param {string} whom */
export const whomWords = (whom) => own(WHOM, whom, whom);

const DECIMALS_MAX = 6;

/** A share near 1 with as many digits as tell it from 1, rounded down: 99.93 %. @param {number | null} share */
export function shareWords(share) {
  if (share === null || !Number.isFinite(share)) return "–";
  if (share >= 1) return "100\u202f%";
  const decimals = Math.min(DECIMALS_MAX, Math.max(0, Math.ceil(-Math.log10(1 - share) - 1e-9) - 1));
  const scale = 10 ** decimals;
  return `${Number((Math.floor(share * 100 * scale + 1e-6) / scale).toFixed(decimals))}\u202f%`;
}

/** Place of a share on a scale of nines, from 0 (nothing arrives) to 1 (`most` nines and more). @param {number} share @param {number} most */
export function ninesPlace(share, most) {
  if (share >= 1) return 1;
  return Math.min(1, Math.max(0, -Math.log10(1 - share) / most));
}

const PERCENTS = new Set(["pressure", "predicted"]);

/** An input of a decision as people read it. @param {string} name @param {number | string} value */
export function inputWords(name, value) {
  if (typeof value !== "number") return value;
  if (PERCENTS.has(name)) return `${Math.round(value * 100)}\u202f%`;
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3)));
}

/** The state of a drain in words. @param {string} state */
export function drainWords(state) {
  const words = { none: "This domain does not drain.", draining: "under way", done: "handed over" };
  return own(words, state, state);
}

/** What a drain does with something: look of its badge, words. @param {string} fate @returns {[string, string]} */
export function fateWords(fate) {
  /** @type {Record<string, [string, string]>} */
  const words = {
    "handed-over": ["good", "handed over"],
    waits: ["warn", "waits"],
    ends: ["bad", "ends"],
    paused: ["warn", "paused"],
  };
  return own(words, fate, ["", fate]);
}
