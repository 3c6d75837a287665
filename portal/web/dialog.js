/**
 * Questions before an action, in a native <dialog>: Escape and Cancel answer no, the focus returns to where it was.
 *
 *     const reason = await ask({
 *       title: "Suspend b.example?",
 *       says: "Nothing is sent to it, and nothing of it is taken, until it is resumed.",
 *       action: "Suspend", danger: true,
 *       reason: { label: "Reason", hint: "Recorded in the audit.", required: true },
 *     });
 *     if (reason === null) return;      // not wanted
 *
 * With `perform` the dialog stays open while it works, and shows the domain's refusal where the reader looks:
 *
 *     await ask({ title, action: "Rotate", perform: (reason) => request("POST", url, { reason }) });
 */

import { SessionEnded } from "./requests.js";
import { tellEnd } from "./domain_connection.js";

const REASON_CHARS_MAX = 255;
let fields = 0;

/**
 * Ask; resolves to what was typed as the reason ("" without one), null where the answer is no.
 * @param {{title: string, says?: string | Node, action: string, danger?: boolean,
 *   reason?: {label?: string, hint?: string, required?: boolean, value?: string},
 *   type?: {label: string, text: string},
 *   perform?: (reason: string) => Promise<unknown>}} question
 *   `type`: for what cannot be undone, the reader types `text` before the action can be pressed.
 */
export function ask(question) {
  const dialog = build(question);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? (dialog.querySelector("[name=reason]")?.value.trim() ?? "") : null);
    });
  });
}

/** @param {Parameters<typeof ask>[0]} question */
function build({ title, says = "", action, danger = false, reason, type, perform }) {
  const id = `dialog-${++fields}`;
  const dialog = element("dialog", { "aria-labelledby": id });
  const form = element("form", { method: "dialog" });
  const words = element("div");
  words.append(element("h2", { id }, title));
  if (says) words.append(typeof says === "string" ? element("p", {}, says) : says);
  const problem = element("p", { class: "error-list", role: "alert", hidden: "" });
  const cancel = element("button", { class: "button", type: "button" }, "Cancel");
  const go = element("button", { class: `button ${danger ? "danger" : "primary"}` }, action);
  form.append(words);
  if (reason) form.append(field("reason", { label: "Reason", maxlength: REASON_CHARS_MAX, ...reason }));
  if (type) {
    form.append(
      field("typed", { label: type.label, required: true, pattern: escaped(type.text), autocomplete: "off" }),
    );
  }
  const actions = element("div", { class: "actions" });
  actions.append(cancel, go);
  form.append(problem, actions);
  dialog.append(form);
  cancel.addEventListener("click", () => dialog.close("no"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (perform) void work(dialog, { go, problem, perform });
    else dialog.close("yes");
  });
  return dialog;
}

async function work(dialog, { go, problem, perform }) {
  if (go.getAttribute("aria-busy") === "true") return;
  go.setAttribute("aria-busy", "true");
  problem.hidden = true;
  try {
    await perform(dialog.querySelector("[name=reason]")?.value.trim() ?? "");
    dialog.close("yes");
  } catch (error) {
    if (error instanceof SessionEnded) tellEnd(error);
    problem.textContent = error.message;
    problem.hidden = false;
  } finally {
    go.removeAttribute("aria-busy");
  }
}

/**
 * A labelled input for dialogs: for `says`, when a dialog needs more than a reason.
 * @param {string} name @param {{label: string, hint?: string, value?: string, required?: boolean, [attribute: string]: unknown}} about
 */
export function field(name, { label, hint, value = "", required = false, ...attributes }) {
  const box = element("div", { class: "field" });
  const id = `dialog-${++fields}`;
  const input = element("input", { id, name, value, ...(required && { required: "" }), ...attributes });
  box.append(element("label", { for: id }, label), input);
  if (hint) {
    input.setAttribute("aria-describedby", `${id}-hint`);
    box.append(element("p", { class: "hint", id: `${id}-hint` }, hint));
  }
  return box;
}

function element(name, attributes = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

/** @param {string} text what a pattern attribute is to match to the letter */
function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
