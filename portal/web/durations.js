/** Stretches of time that people state: "10 minutes" rather than 600 s, and the field to state them with. */

import { find, need } from "./elements.js";

const UNITS_S = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 };
let made = 0;

/** A stretch in the largest unit that states it wholly: {value: 10, unit: "minutes"}. @param {number} seconds */
function stated(seconds) {
  const fitting = Object.entries(UNITS_S).filter(([, length]) => seconds >= length && seconds % length === 0);
  const [unit, length] = fitting.at(-1) ?? ["seconds", 1];
  return { value: seconds / length, unit };
}

/** "90 seconds", "1 day". @param {number} seconds */
export function durationText(seconds) {
  const { value, unit } = stated(seconds);
  return `${value} ${value === 1 ? unit.slice(0, -1) : unit}`;
}

/**
 * A labelled number with its unit. Its value in seconds: `typedSeconds(box, name)`.
 * @param {string} name @param {{label: string, hint?: string, seconds?: number}} about
 */
export function durationField(name, { label, hint = "", seconds }) {
  const { value, unit } = seconds === undefined ? { value: "", unit: "seconds" } : stated(seconds);
  const select = document.createElement("select");
  select.name = `${name}-unit`;
  select.setAttribute("aria-label", `Unit of: ${label}`);
  select.append(...Object.keys(UNITS_S).map((one) => new Option(one, one, false, one === unit)));
  return numberField(name, { label, hint, value, unit: select });
}

/**
 * A labelled number with what it counts.
 * @param {string} name @param {{label: string, hint?: string, value?: number | string, unit: string | HTMLElement}} about
 */
export function numberField(name, { label, hint = "", value = "", unit }) {
  const box = document.createElement("div");
  const input = document.createElement("input");
  const title = document.createElement("label");
  const line = document.createElement("div");
  box.className = "field";
  line.className = "with-unit";
  input.id = title.htmlFor = `duration-${++made}`;
  input.type = "number";
  input.name = name;
  input.value = String(value);
  title.textContent = label;
  const counted = typeof unit === "string" ? document.createElement("span") : unit;
  if (typeof unit === "string") counted.textContent = unit;
  line.append(input, counted);
  box.append(title, line);
  if (hint) {
    const said = document.createElement("p");
    said.className = "hint";
    said.id = `${input.id}-hint`;
    said.textContent = hint;
    input.setAttribute("aria-describedby", said.id);
    box.append(said);
  }
  return box;
}

/**
 * Value of a field, in seconds or in its own unit; undefined where it is empty.
 * @param {ParentNode} box @param {string} name
 */
export function typedNumber(box, name) {
  const { value } = need(box, `[name="${name}"]`, HTMLInputElement);
  if (value === "") return undefined;
  const unit = find(box, `[name="${name}-unit"]`, HTMLSelectElement);
  return Number(value) * (unit ? UNITS_S[unit.value] : 1);
}
