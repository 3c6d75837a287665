/** Short words at the edge of the screen about what the reader did: "The lease is renewed." Read out by screen readers. */
import { byId } from "./elements.js";

const SHOWN_MS = 6_000;
const TOASTS_MAX = 4;

/**
 * @param {string} text one sentence
 * @param {"good" | "bad"} [kind] bad ones stay until they are closed
 */
export function toast(text, kind = "good") {
  const toasts = byId("toasts");
  const made = document.createElement("div");
  made.className = `toast ${kind}`;
  const words = document.createElement("span");
  words.textContent = text;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button quiet compact";
  close.textContent = "Close";
  close.addEventListener("click", () => made.remove());
  made.append(words, close);
  toasts.append(made);
  while (toasts.childElementCount > TOASTS_MAX) toasts.firstElementChild?.remove();
  if (kind === "good") setTimeout(() => made.remove(), SHOWN_MS);
}
