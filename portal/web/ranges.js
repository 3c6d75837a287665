/** The range of time that plots show: one choice for all pages, which this browser keeps. */

import { momentText } from "./times.js";

const KEY = "herald-range";
const STANDARD = "1h";

/** Names as of portal/console/load_history.py, lengths in seconds, words on buttons and in sentences. */
export const RANGES = {
  "15m": { seconds: 900, short: "15 min", words: "last 15 minutes" },
  "1h": { seconds: 3600, short: "1 h", words: "last hour" },
  "6h": { seconds: 6 * 3600, short: "6 h", words: "last 6 hours" },
  "24h": { seconds: 86_400, short: "24 h", words: "last 24 hours" },
  "7d": { seconds: 7 * 86_400, short: "7 d", words: "last 7 days" },
};

/** The range that is chosen. @returns {keyof typeof RANGES} */
export function chosenRange() {
  let name;
  try {
    name = localStorage.getItem(KEY);
  } catch {
    // It holds for this page then.
  }
  return /** @type {any} */ (name && Object.hasOwn(RANGES, name) ? name : STANDARD);
}

/**
 * Fill `box` with the choice; `onChange` is called with the name of another range.
 * @param {HTMLElement} box @param {(name: keyof typeof RANGES) => void} onChange
 */
export function startRange(box, onChange) {
  const choices = document.createElement("div");
  choices.className = "choices";
  choices.setAttribute("role", "radiogroup");
  choices.setAttribute("aria-label", "Range of time");
  for (const [name, { short }] of Object.entries(RANGES)) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const words = document.createElement("span");
    input.type = "radio";
    input.name = "range";
    input.value = name;
    input.checked = name === chosenRange();
    words.textContent = short;
    label.append(input, words);
    choices.append(label);
  }
  choices.addEventListener("change", ({ target }) => {
    const { value } = /** @type {HTMLInputElement} */ (target);
    try {
      localStorage.setItem(KEY, value);
    } catch {
      // It holds for this page then.
    }
    onChange(/** @type {any} */ (value));
  });
  box.replaceChildren(choices);
}

/**
 * Where the data begins later than the range: samples are kept in a bounded history.
 * @param {keyof typeof RANGES} name @param {number[]} times of the steps, seconds since 1970 @param {number} now seconds since 1970
 */
export function beginsLater(name, times, now) {
  const [first] = times;
  const { seconds } = RANGES[name];
  if (first === undefined || first <= now - seconds + Math.max(60, seconds / 50)) return "";
  return `Data begins ${momentText(first * 1000)}.`;
}
