/** Switches of the planners, as tiles, and the dialogs that switch them. */

import { ask } from "../dialog.js";
import { percent, plural } from "../format.js";
import { request } from "../requests.js";
import { html, nothing } from "../table.js";
import { toast } from "../toast.js";
import { modeLook, modeWords, whomWords } from "./words.js";

const NAMES = { placement: "the planner of replicas", routes: "the planner of routes" };
const URLS = { placement: "/api/v1/plan", routes: "/api/v1/plan/routes" };

/**
 * The tiles.
 * @param {{plan: any, routes: any, invitations: any, mayOperate: boolean, changed: () => void}} about
 */
export function switchTiles({ plan, routes, invitations, mayOperate, changed }) {
  const { policy, recent } = invitations;
  const asked = mayOperate
    ? (planner, mode) =>
        html`<button type="button" class="button compact" @click=${() => void switchAsked(planner, mode, changed)}>Switch…<span class="visually-hidden"> ${NAMES[planner]}</span></button>`
    : () => nothing;
  const accepted = recent.filter(({ accepted: one }) => one).length;
  return html`
    ${tile("Replicas", badge(plan.mode), modeWords(plan.mode, "placement"), asked("placement", plan.bounds.mode))}
    ${routes ? tile("Routes", badge(routes.switch.mode_in_force), modeWords(routes.switch.mode_in_force, "routes"), asked("routes", routes.switch.mode)) : tile("Routes", html`<span class="muted">–</span>`, "The domain does not say. Switch with herald plan routes.")}
    ${tile("Invitations", html`<span class="badge ${policy.whom === "nobody" ? "off" : "good"}">${policy.whom === "nobody" ? "refused" : "accepted"}</span>`, `of ${whomWords(policy.whom)}; ${recent.length ? `${accepted} of the last ${recent.length} accepted` : "none received lately"}`)}
    ${tile("Pressure", plan.pressure === null ? html`<span class="muted">–</span>` : number(percent(plan.pressure, 1)), plan.pressure === null ? "not measured" : `${percent(plan.predicted, 1)} in 30 s by its trend`)}
    ${tile("Waiting for you", plan.open.filter(({ state }) => state === "proposed").length, plan.open.length ? `${plural(plan.open.length, "decision")} open` : "no decision is open")}`;
}

/** @param {string} name @param {unknown} value @param {unknown} note @param {unknown} [action] */
function tile(name, value, note, action = nothing) {
  return html`<div class="tile"><span class="tile-name">${name}</span><span class="tile-value">${value}</span><span class="tile-note">${note}</span>${action === nothing ? nothing : html`<span class="tile-action">${action}</span>`}</div>`;
}

function number({ value, unit }) {
  return html`${value}<span class="unit">${unit}</span>`;
}

const badge = (mode) => html`<span class="badge ${modeLook(mode)}">${mode}</span>`;

/**
 * Ask for the mode of a planner, and set it.
 * @param {"placement" | "routes"} planner @param {string | null} mode its switch; null: as the domain, or the setting
 * @param {() => void} changed @param {{rp: string, label: string} | null} [of] an RP; null: of the domain
 */
export async function switchAsked(planner, mode, changed, of = null) {
  const says = document.createElement("fieldset");
  says.className = "planning-modes";
  const legend = document.createElement("legend");
  legend.textContent = of ? `At ${of.label}, for the links of this domain.` : "For the whole domain.";
  says.append(legend);
  const inherited = of ? "As the domain is switched." : "As the setting of the domain states.";
  for (const [value, words] of [
    ["off", `${modeWords("off", planner)}${of ? "" : " Off for the domain is off for every rendezvous point."}`],
    ["advise", modeWords("advise", planner)],
    ["apply", modeWords("apply", planner)],
    ["", inherited],
  ]) {
    says.append(choice(value, words, value === (mode ?? "")));
  }
  const chosen = () => says.querySelector("input:checked")?.getAttribute("value") || null;
  const url = of
    ? `${URLS[planner]}/${planner === "placement" ? "rps/" : ""}${encodeURIComponent(of.rp)}`
    : URLS[planner];
  const done = await ask({
    title: `Switch ${NAMES[planner]}?`,
    says,
    action: "Switch",
    perform: () => request("PATCH", url, { mode: chosen() }),
  });
  if (done === null) return;
  toast("Switched. It is in the audit.");
  changed();
}

function choice(value, words, checked) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "radio";
  input.name = "mode";
  input.value = value;
  input.checked = checked;
  const text = document.createElement("span");
  const name = document.createElement("strong");
  name.textContent = value || "inherit";
  text.append(name, ` ${words}`);
  label.append(input, text);
  return label;
}
