/**
 * Rendezvous points with a target reliability: planned and measured beside the target, as numbers and on a scale of nines; the
 * dry run of one of them.
 */

import { svg } from "lit-html";

import { count, plural } from "../format.js";
import { Table, html, nothing } from "../table.js";
import { modeLook, ninesPlace, planState, shareWords } from "./words.js";

const NINES = 5; // length of the scale: 99.999 %

/**
 * @param {HTMLElement} element
 * @param {{linkTo: (rp: string) => unknown, mayOperate: boolean, onRun: (item: any) => void, onSwitch: (item: any) => void}} options
 */
export function reliabilityTable(element, { linkTo, mayOperate, onRun, onSwitch }) {
  return new Table(element, {
    caption: "Rendezvous points with a target reliability",
    key: ({ rp }) => rp,
    empty: html`<strong>No target reliabilities</strong><span>State how surely the events of a rendezvous point are to arrive: <code>herald rp change RP --reliability 0.999</code>.</span>`,
    sort: { column: 0 },
    columns: [
      {
        name: "Rendezvous point",
        header: true,
        by: ({ rp }) => rp,
        cell: (row) =>
          html`${linkTo(row.rp)}<span class="rp-sub">${plural(row.participants, "other participant")}</span>`,
      },
      { name: "Plan", width: "12rem", by: ({ state }) => state, cell: plan },
      {
        name: "Target",
        width: "5.5rem",
        number: true,
        by: ({ target }) => target,
        cell: ({ target }) => shareWords(target),
      },
      {
        name: "Planned",
        width: "5.5rem",
        number: true,
        by: ({ planned }) => planned,
        cell: ({ planned }) => shareWords(planned),
      },
      {
        name: "Measured",
        width: "6rem",
        number: true,
        by: ({ measured }) => measured,
        cell: (row) => html`<span title=${`of ${count(row.events)} events`}>${shareWords(row.measured)}</span>`,
      },
      { name: "Scale", width: "10.5rem", cell: scale },
      {
        name: "Actions",
        width: "6.5rem",
        cell: (
          row,
        ) => html`<div class="row-actions"><button type="button" class="button compact" @click=${() => onRun(row)}>Dry run<span class="visually-hidden"> of ${row.rp}</span></button>
          ${mayOperate ? html`<button type="button" class="button compact" @click=${() => onSwitch(row)}>Switch…<span class="visually-hidden"> routes of ${row.rp}</span></button>` : nothing}</div>`,
      },
    ],
  });
}

function plan({ state, mode_in_force: mode, reason, planned_at: at, missed, links, links_known: known }) {
  const [look, words, about] = planState(state);
  const [worst] = Object.entries(missed);
  const used = known ? `${links} of ${plural(known, "known link")}. ` : "";
  return html`<span class="badge ${look}" title=${about}>${words}</span> ${mode === "apply" ? nothing : html`<span class="badge ${modeLook(mode)}">${mode}</span>`}
    <span class="rp-sub">${used}${worst ? `${worst[0]}: ${worst[1]}` : reason} ${at && !worst ? html`<time datetime=${at} data-age></time>` : nothing}</span>`;
}

/** Planned (dot) and measured (ring) on a scale of nines, with a line at the target. */
function scale({ target, planned, measured }) {
  const x = (share) => `${(8 + 84 * ninesPlace(share, NINES)).toFixed(2)}%`;
  return html`<svg class="nines" aria-hidden="true" width="100%" height="30">
    ${[0, 1, 2, 3, 4, 5].map((nines) => svg`<line class="nines-tick" x1=${x(1 - 10 ** -nines)} x2=${x(1 - 10 ** -nines)} y1="9" y2="17"/>`)}
    <line class="nines-axis" x1="8%" x2="92%" y1="13" y2="13"/>
    <line class="nines-target" x1=${x(target)} x2=${x(target)} y1="3" y2="23"/>
    ${planned === null ? nothing : svg`<circle class=${`nines-planned ${planned < target ? "bad" : "good"}`} cx=${x(planned)} cy="13" r="5"/>`}
    ${measured === null ? nothing : svg`<circle class="nines-measured" cx=${x(measured)} cy="13" r="7.5"/>`}
  </svg>`;
}

/** Key of the scale. */
export function scaleKey() {
  return html`<p class="nines-key small muted"><span><svg aria-hidden="true" width="10" height="20"><line class="nines-target" x1="5" x2="5" y1="0" y2="20"/></svg> target</span>
    <span><svg aria-hidden="true" width="14" height="20"><circle class="nines-planned good" cx="7" cy="10" r="5"/></svg> planned</span>
    <span><svg aria-hidden="true" width="20" height="20"><circle class="nines-measured" cx="10" cy="10" r="7.5"/></svg> measured</span>
    <span>scale: 0, 90, 99, 99.9, 99.99, 99.999\u202f% in time</span></p>`;
}

/**
 * The dry run of one rendezvous point.
 * @param {any} run of GET /api/v1/plan/routes/RP @param {{label: string, close: () => void, again: (target: number) => void}} about
 */
export function previewShown(run, { label, close, again }) {
  const { target, met, receivers, links, origin } = run;
  const changed = links.filter((one) => one.planned !== one.in_force);
  const submit = (event) => {
    event.preventDefault();
    again(Number(new FormData(event.currentTarget).get("target")) / 100);
  };
  return html`<div class="card-head"><h2 id="routes-preview-title">Dry run: ${label}</h2><button type="button" class="button quiet compact" @click=${close}>Close<span class="visually-hidden"> the dry run</span></button></div>
    <p><span class="badge ${met ? "good" : "bad"}">${met ? "target met" : "target missed"}</span> With ${plural(links.filter((one) => one.planned).length, "link")} for the events of ${origin}. Nothing was changed.
      ${run.mode_in_force === "apply" ? (changed.length ? html`Differences from the plan in force are marked.` : html`It is the plan in force.`) : html`No plan is in force: the planner is switched to ${run.mode_in_force}.`}</p>
    <form class="planning-target" @submit=${submit}><label for="preview-target">Another target, %</label>
      <input id="preview-target" name="target" type="number" min="1" max="99.9999" step="any" required .value=${String(Number((target * 100).toPrecision(8)))}>
      <button class="button compact">Run again</button></form>
    <div class="planning-run"><ul class="plain-list">${receivers.map((one) => html`<li><strong>${one.domain}</strong> <span class="number">${shareWords(one.planned)}</span>${one.in_force === null ? nothing : html` <span class="muted small">${shareWords(one.in_force)} in force</span>`}${one.missed ? html`<span class="rp-sub">${one.missed}</span>` : nothing}</li>`)}</ul>
    <ul class="plain-list">${links.filter((one) => one.planned || one.in_force).map((one) => html`<li>${linkTag(one, run.mode_in_force)} ${one.ends.join(" – ")} <span class="muted small number">${shareWords(one.delivery)}</span></li>`)}</ul></div>`;
}

function linkTag({ planned, in_force: there }, mode) {
  if (mode !== "apply") return html`<span class="tag">planned</span>`;
  if (planned && there) return html`<span class="tag">stays</span>`;
  return planned ? html`<span class="tag accent">added</span>` : html`<span class="tag">left out</span>`;
}
