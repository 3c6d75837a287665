/** Runs of reports: the one that is being made, those that wait, and all of one kind as a table. Live from the domain's state. */

import { count, duration } from "../format.js";
import { Table, html, nothing, render } from "../table.js";
import { askToCancel } from "./asking.js";
import { period } from "./words.js";

/** @import { ReportRunData } from "../shapes.d.ts" */

const BADGES = { done: "good", failed: "bad", running: "", queued: "", superseded: "" };
const WAITING_SHOWN = 5;

/** Those under way, of all kinds, the running one first. @param {Record<string, ReportRunData>} runs of the state */
export function underWay(runs) {
  const open = Object.values(runs).filter(({ state }) => state === "running" || state === "queued");
  return open.sort((a, b) => (a.state === "running" ? -1 : b.state === "running" ? 1 : Number(a.id) - Number(b.id)));
}

/** @param {HTMLElement} element @param {ReportRunData[]} open what `underWay` gave @param {boolean} mayRun */
export function drawUnderWay(element, open, mayRun) {
  const shown = open.slice(0, WAITING_SHOWN);
  render(
    open.length === 0
      ? nothing
      : html`<section class="card flush" aria-labelledby="under-way-title">
          <div class="card-head"><h2 id="under-way-title">In progress</h2><span class="muted small">${open.length > shown.length ? `${count(open.length - shown.length)} more queued` : ""}</span></div>
          <ul class="report-under-way">${shown.map(
            (run) => html`<li data-run=${run.id}>
            <span><strong>${title(run.job)}</strong> <span class="muted">${period(run)}</span></span>
            ${run.state === "running" ? progress(run) : html`<span class="muted small">${waits(run)}</span>`}
            ${mayRun ? html`<button type="button" class="button compact" @click=${() => void askToCancel(run)}>Cancel</button>` : nothing}
          </li>`,
          )}</ul>
        </section>`,
    element,
  );
}

function progress({ job, stage, done, total }) {
  const share = total > 0 ? done / total : null;
  return html`<span class="report-progress"><progress max="1" .value=${share ?? 0} aria-label="Progress of ${job}: ${stage}"></progress>
    <span class="small muted number">${stage}${total > 0 ? ` ${done}/${total}` : ""}</span></span>`;
}

function waits({ reason, next_try_at: at }) {
  if (!reason) return "waits its turn";
  return html`<span class="report-reason" title=${reason}>failed, next try ${Date.parse(at) > Date.now() ? html`<time datetime=${at} data-countdown></time>` : "soon"}: ${reason}</span>`;
}

/** The table of all runs of one kind. */
export class Runs {
  #table;

  /** @param {HTMLElement} element @param {(run: ReportRunData) => void} open called with a run to show */
  constructor(element, open) {
    this.#table = new Table(element, {
      caption: "Runs of this report, newest first",
      key: (run) => run.id,
      rowsMax: 50,
      sort: { column: 0, descending: true },
      columns: [
        {
          name: "Run",
          number: true,
          width: "5rem",
          wideOnly: true,
          cell: (run) => run.id,
          by: (run) => Number(run.id),
        },
        {
          name: "Period",
          header: true,
          by: (run) => run.from,
          cell: (run) =>
            run.state === "done"
              ? html`<button type="button" class="link" @click=${() => open(run)}>${period(run)}</button>`
              : period(run),
        },
        {
          name: "State",
          width: "8rem",
          cell: (run) => html`<span class="badge ${BADGES[run.state]}">${run.state}</span>`,
          by: (run) => run.state,
        },
        {
          name: "Made",
          width: "10rem",
          wideOnly: true,
          cell: (run) => (run.ended_at ? html`<time datetime=${run.ended_at} data-age></time>` : "–"),
          by: (run) => run.ended_at,
        },
        {
          name: "Took",
          number: true,
          width: "6rem",
          wideOnly: true,
          cell: (run) => took(run),
          by: (run) => length(run),
        },
        {
          name: "By",
          width: "9rem",
          wideOnly: true,
          cell: (run) => (run.cadence === "asked" ? run.by : run.cadence),
          by: (run) => run.by,
        },
        { name: "Reason", wideOnly: true, cell: (run) => run.reason || "", by: (run) => run.reason },
      ],
      empty: html`<strong>No run yet</strong><span>Hourly and daily reports are created some minutes after the end of the period.</span>`,
    });
  }

  /** @param {ReportRunData[]} runs */
  show(runs) {
    this.#table.show(runs);
  }
}

function length({ started_at: begin, ended_at: end }) {
  return begin && end ? Date.parse(end) - Date.parse(begin) : null;
}

function took(run) {
  const ms = length(run);
  return ms === null ? "–" : duration(ms);
}

function title(job) {
  return job[0].toUpperCase() + job.slice(1);
}
