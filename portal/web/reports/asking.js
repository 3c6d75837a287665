/** Dialogs for creating and cancelling a report. */

import { ask } from "../dialog.js";
import { postForJson, request } from "../requests.js";
import { toast } from "../toast.js";
import { period } from "./words.js";

const HOUR_MS = 3_600_000;
const SPANS = {
  "the last hour": () => [new Date(Date.now() - HOUR_MS), new Date()],
  "the last 24 hours": () => [new Date(Date.now() - 24 * HOUR_MS), new Date()],
  "yesterday (UTC)": () => [midnight(-1), midnight(0)],
  "the last 7 days (UTC)": () => [midnight(-7), midnight(0)],
  "the last 30 days (UTC)": () => [midnight(-30), midnight(0)],
};

/**
 * Resolves to the run, or null.
 * @param {{job: string, title: string}[]} kinds
 * @param {string} chosen a job
 * @returns {Promise<{id: string, job: string} | null>}
 */
export async function askForReport(kinds, chosen) {
  const form = document.createElement("div");
  form.className = "report-form";
  const job = select(
    "Report",
    kinds.map(({ job: value, title }) => [value, title]),
    chosen,
  );
  const span = select(
    "Of",
    [...Object.keys(SPANS).map((name) => [name, name]), ["own", "a custom period"]],
    "the last 24 hours",
  );
  const from = moment("From");
  const to = moment("To");
  const fill = () => {
    const [begin, end] = SPANS[span.field.value]?.() ?? [];
    if (begin) [from.field.value, to.field.value] = [local(begin), local(end)];
  };
  span.field.addEventListener("change", fill);
  for (const { field } of [from, to]) field.addEventListener("input", () => (span.field.value = "own"));
  fill();
  form.append(job.box, span.box, from.box, to.box);
  const words = document.createElement("p");
  words.textContent = "Reports run one at a time, at low priority; a small report takes half a minute.";
  const says = document.createElement("div");
  says.append(words, form);
  /** @type {{id: string, job: string} | null} */
  let made = null;
  const answer = await ask({
    title: "Create a report",
    says,
    action: "Create",
    perform: async () => {
      const [begin, end] = [new Date(from.field.value), new Date(to.field.value)];
      if (Number.isNaN(begin.getTime()) || Number.isNaN(end.getTime())) {
        throw new Error("Enter the start and the end of the period.");
      }
      made = await postForJson("/api/v1/reports", {
        job: job.field.value,
        from: begin.toISOString(),
        to: end.toISOString(),
      });
    },
  });
  if (answer === null) return null;
  toast("The report is queued.");
  return made;
}

/** @param {{id: string, job: string, from: string, to: string}} run */
export async function askToCancel(run) {
  const answer = await ask({
    title: "Cancel this report?",
    says: `The ${run.job} report of ${period(run)} is not created. The previous report, if any, stays.`,
    action: "Cancel the report",
    danger: true,
    perform: () => request("DELETE", `/api/v1/reports/${run.id}`),
  });
  if (answer !== null) toast("The report is cancelled.");
}

function midnight(days) {
  const at = new Date();
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + days));
}

function local(at) {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

let made = 0;

function labelled(words, field) {
  const box = document.createElement("div");
  box.className = "field";
  const label = document.createElement("label");
  field.id = label.htmlFor = `report-field-${++made}`;
  label.textContent = words;
  box.append(label, field);
  return { box, field };
}

function select(words, options, chosen) {
  const field = document.createElement("select");
  for (const [value, text] of options) field.append(new Option(text, value, false, value === chosen));
  return labelled(words, field);
}

function moment(words) {
  const field = document.createElement("input");
  field.type = "datetime-local";
  return labelled(`${words} (your time)`, field);
}
