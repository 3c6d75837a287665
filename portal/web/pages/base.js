/** On every page: times in the reader's zone, countdowns, copy buttons, the look. */

import { findAll, need } from "../elements.js";
import { startTimes } from "../times.js";

const COPIED_MS = 2_000;
const LOOK_KEY = "herald-look"; // pages/theme.js reads it before anything is drawn

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

function startLook() {
  const choice = document.getElementById("look");
  if (!choice) return;
  const root = document.documentElement;
  choice.hidden = false;
  need(choice, `[value="${root.dataset.theme ?? "system"}"]`, HTMLInputElement).checked = true;
  choice.addEventListener("change", ({ target }) => {
    const { value } = /** @type {HTMLInputElement} */ (target);
    if (value === "system") delete root.dataset.theme;
    else root.dataset.theme = value;
    try {
      if (value === "system") localStorage.removeItem(LOOK_KEY);
      else localStorage.setItem(LOOK_KEY, value);
    } catch {
      // It holds for this page then.
    }
    document.dispatchEvent(new Event("herald-look")); // for what is drawn on a canvas
  });
}

startTimes();
startCopyButtons();
startLook();
