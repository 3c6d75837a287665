/** Immediate actions of row buttons: busy while they work, then a toast. Actions that need a confirmation: dialog.js. */

import { SessionEnded } from "./requests.js";
import { tellEnd } from "./domain_connection.js";
import { toast } from "./toast.js";

/**
 * @param {HTMLElement} button
 * @param {() => Promise<unknown>} perform
 * @param {string | ((answer: any) => string)} done one sentence; empty: the page shows what was done
 */
export async function act(button, perform, done) {
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  try {
    const answer = await perform();
    const said = typeof done === "function" ? done(answer) : done;
    if (said) toast(said);
  } catch (error) {
    if (error instanceof SessionEnded) tellEnd(error);
    toast(error.message, "bad");
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** The toast for a renewed lease. @param {{granted_s: number}} lease @param {number} askedS */
export function renewed({ granted_s: granted }, askedS) {
  return granted < askedS
    ? "The lease is renewed for the longest time that this domain grants."
    : "The lease is renewed.";
}
