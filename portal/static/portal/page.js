/** On every page: times in the reader's zone, countdowns, copy buttons. */

import { startTimes } from "./times.js";

const COPIED_MS = 2_000;

function startCopyButtons() {
  if (!navigator.clipboard) return; // only on secure origins: without it the buttons stay hidden
  for (const button of document.querySelectorAll("[data-copy]")) {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      setTimeout(() => (button.textContent = label), COPIED_MS);
    });
  }
}

startTimes();
startCopyButtons();
