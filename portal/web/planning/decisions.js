/** Decisions about replicas: the list with inputs and reasons, approval and rejection; the dry run of the planner. */

import { act } from "../acting.js";
import { ask } from "../dialog.js";
import { percent, plural } from "../format.js";
import { request } from "../requests.js";
import { html, nothing } from "../table.js";
import { toast } from "../toast.js";
import { decisionReason, decisionState, inputWords, modeLook } from "./words.js";

const URL = "/api/v1/plan/decisions";

/**
 * Columns of the list.
 * @param {{linkTo: (rp: string) => unknown, mayOperate: boolean, changed: () => void}} options
 */
export function decisionColumns({ linkTo, mayOperate, changed }) {
  return [
    {
      name: "Decision",
      header: true,
      width: "13rem",
      cell: (row) => html`${changes(row)}<span class="rp-sub">at ${linkTo(row.rp)}</span>`,
    },
    { name: "Why", cell: (row) => html`${row.why}${inputs(row)}` },
    { name: "State", width: "13rem", cell: state },
    {
      name: "Decided",
      width: "7.5rem",
      cell: (row) =>
        html`<time datetime=${row.created_at} data-age></time><span class="rp-sub">number ${row.id}</span>`,
    },
    ...(mayOperate ? [{ name: "Actions", width: "7rem", cell: (row) => actions(row, changed) }] : []),
  ];
}

/** What is added and retired, as tags. */
function changes({ adds, retires }) {
  return html`<span class="planning-changes">${adds.map((name) => html`<span class="tag accent">add ${name}</span> `)}${retires.map((name) => html`<span class="tag">retire ${name}</span> `)}</span>`;
}

function inputs({ reason, inputs: of }) {
  const named = Object.entries(of);
  return html`<span class="rp-sub">for ${decisionReason(reason)}</span>
    ${named.length ? html`<details class="more small"><summary>${plural(named.length, "input")}</summary><dl class="planning-inputs">${named.map(([name, value]) => html`<div><dt>${name.replaceAll("_", " ")}</dt><dd class="number">${inputWords(name, value)}</dd></div>`)}</dl></details>` : nothing}`;
}

function state({ state: name, detail, decided_by: by, progress, changed_at: at }) {
  const [look, words] = decisionState(name);
  const done = Object.entries(progress);
  const told = done.some(([, one]) => one.detail && detail.includes(one.detail));
  return html`<span class="badge ${look}">${words}</span> <span class="muted small"><time datetime=${at} data-age></time></span>
    ${by ? html`<span class="rp-sub">by ${by}</span>` : nothing}
    ${done.map(([domain, one]) => html`<span class="rp-sub">${domain}: ${one.state}${one.detail ? `, ${one.detail}` : ""}</span>`)}
    ${detail && !told ? html`<span class="rp-sub">${detail}</span>` : nothing}`;
}

function actions(row, changed) {
  const approve = ({ currentTarget }) =>
    act(currentTarget, () => request("POST", `${URL}/${row.id}/approve`, {}), "It is carried out within seconds.").then(
      changed,
    );
  const may = row.state === "proposed" || row.state === "approved";
  return html`<div class="row-actions">${row.state === "proposed" ? html`<button type="button" class="button compact" @click=${approve}>Approve<span class="visually-hidden"> decision ${row.id}</span></button>` : nothing}
    ${may ? html`<button type="button" class="button compact" @click=${() => void reject(row, changed)}>Reject…<span class="visually-hidden"> decision ${row.id}</span></button>` : nothing}</div>`;
}

async function reject(row, changed) {
  const note = await ask({
    title: `Reject decision ${row.id}?`,
    says: "It is not carried out. The planner may propose it again while its reasons last.",
    action: "Reject",
    reason: { label: "Note", hint: "Optional. Shown with the decision." },
    perform: (text) => request("POST", `${URL}/${row.id}/reject`, { note: text }),
  });
  if (note === null) return;
  toast("Rejected.");
  changed();
}

/**
 * A dry run of the planner of replicas.
 * @param {any} run of GET /api/v1/plan/preview @param {{linkTo: (rp: string) => unknown, close: () => void}} options
 */
export function nextShown(run, { linkTo, close }) {
  const { at, pressure, predicted, steps, shortfalls, unmeasured, rps, mode } = run;
  return html`<div class="card-head"><h2 id="next-title">Dry run: what it would do next</h2><button type="button" class="button quiet compact" @click=${close}>Close<span class="visually-hidden"> the dry run</span></button></div>
    <p>${plural(rps, "rendezvous point")}, as of <time datetime=${at} data-clock></time>, at a pressure of ${percent(pressure, 1)}, ${percent(predicted, 1)} in 30 s. Nothing was recorded or changed. ${mode === "apply" ? "The planner does this within seconds, unless things change." : mode === "off" ? "The planner is off: it does none of this." : "The planner proposes this to you."}</p>
    ${steps.length ? html`<ul class="plain-list planning-steps">${steps.map((one) => html`<li>${changes(one)} at ${linkTo(one.rp)} ${one.mode === mode ? nothing : html`<span class="badge ${modeLook(one.mode)}">${one.mode} there</span>`}<span class="rp-sub">${one.why}</span>${inputs(one)}</li>`)}</ul>` : html`<p class="planning-nothing"><strong>Nothing to do.</strong> ${unmeasured.length ? "Delays are measured first." : "Loads, histories and readers are as wanted, or the budget of changes is used."}</p>`}
    ${unmeasured.length ? html`<p class="muted small">It would measure the delay to ${unmeasured.join(", ")} before it chooses.</p>` : nothing}
    ${shortfalls.map((one) => html`<p class="notice warning space-above">${linkTo(one.rp)}: ${one.why}</p>`)}`;
}
