/** On every page: times in the reader's zone, countdowns, copy buttons, look and zone, alarms in the menu. */

import { startBadge } from "../alarm_badge.js";
import { findAll, need } from "../elements.js";
import { startTimes, zone } from "../times.js";

const COPIED_MS = 2_000;
const LOOK_KEY = "herald-look"; // pages/theme.js reads both before anything is drawn
const TIMES_KEY = "herald-times";

function startCopyButtons() {
  if (!navigator.clipboard) return; // only on secure origins: without it the buttons stay hidden
  for (const button of findAll(document, "[data-copy]")) button.hidden = false;
  document.addEventListener("click", async ({ target }) => {
    const button = target instanceof Element && target.closest("[data-copy]");
    if (!(button instanceof HTMLElement) || button.dataset.label) return;
    button.dataset.label = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy ?? "");
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => {
      button.textContent = button.dataset.label ?? "";
      delete button.dataset.label;
    }, COPIED_MS);
  });
}

/**
 * A choice of the menu that this browser keeps: an attribute of <html>, none for the first value.
 * @param {string} id of the fieldset @param {string} key where it is kept @param {string} name of the attribute
 */
function startChoice(id, key, name) {
  const choice = document.getElementById(id);
  if (!choice) return;
  const { dataset } = document.documentElement;
  const standard = need(choice, "input", HTMLInputElement).value;
  choice.hidden = false;
  need(choice, `[value="${dataset[name] ?? standard}"]`, HTMLInputElement).checked = true;
  choice.addEventListener("change", ({ target }) => {
    const { value } = /** @type {HTMLInputElement} */ (target);
    if (value === standard) delete dataset[name];
    else dataset[name] = value;
    try {
      if (value === standard) localStorage.removeItem(key);
      else localStorage.setItem(key, value);
    } catch {
      // It holds for this page then.
    }
    tellZone();
    document.dispatchEvent(new Event("herald-look")); // for what is drawn on a canvas, and times
  });
}

function tellZone() {
  const said = document.getElementById("zone-said");
  if (said) said.textContent = zone() ? "UTC" : "your time zone";
}

/** Search by Ctrl-K or the button in the header; its script is loaded when it is first used. */
function startFinding() {
  const button = document.getElementById("find");
  if (!button) return; // who is not logged in
  const open = () => void import("../finding.js").then(({ find }) => find());
  button.hidden = false;
  button.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
}

startTimes();
startCopyButtons();
startChoice("look", LOOK_KEY, "theme");
startChoice("times", TIMES_KEY, "times");
tellZone();
startBadge();
startFinding();
