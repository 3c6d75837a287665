/**
 * Reports: the latest of a kind in charts and tables, a comparison with another, and the runs. Live from domain.admin.
 */

import { byId, need, pageData } from "../elements.js";
import { html, nothing, render } from "lit-html";

import { openDomain } from "../live.js";
import { Plot } from "../plot.js";
import { getJson } from "../requests.js";
import { RpLabels } from "../rp_labels.js";
import { toast } from "../toast.js";
import { askForReport } from "../reports/asking.js";
import { headlines, movers } from "../reports/compare.js";
import { pictures, rpsNamed } from "../reports/pictures.js";
import { Runs, drawUnderWay, underWay } from "../reports/runs.js";
import { Tables } from "../reports/tables.js";
import { change, period, plain, shown, spoken, unitBeside } from "../reports/words.js";

const RUNS_LISTED = 100;
const page = pageData();
const mayRun = "mayRun" in page;
const kinds = [.../** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("nav.tabs a"))].map(
  (link) => ({
    job: new URL(link.href).searchParams.get("job") ?? "",
    title: link.textContent.trim(),
  }),
);

const runs = new Map(); // of this kind, by id: as the domain listed them, then as its events say
const labels = new RpLabels(page.labelsUrl, () => draw());
const nameOf = (rp) => labels.of(rp);
const table = new Runs(byId("runs"), (run) => void choose(run.id, null));
/** @type {any} */
let report = null; // what is shown: GET /api/v1/reports/ID
/** @type {any} */
let against = null;
/** @type {Tables | null} */
let tables = null;
let plots = [];
let box = document.createElement("div"); // what the report is drawn into
let listed = false; // whether the list of runs was loaded
/** @type {string | null} */
let wanted = null; // the id of a run that the reader has asked for: shown when it is done

// ---- what is shown ----

const done = () =>
  [...runs.values()]
    .filter(({ state }) => state === "done")
    .sort((a, b) => b.to.localeCompare(a.to) || Number(b.id) - Number(a.id));

async function choose(id, other = against?.id ?? null) {
  const address = new URL(location.href);
  address.searchParams.set("job", page.job);
  address.searchParams.set("run", id);
  if (other) address.searchParams.set("against", other);
  else address.searchParams.delete("against");
  history.replaceState(history.state, "", address);
  await show(id, other);
}

async function show(id, other) {
  try {
    const [one, two] = await Promise.all([
      getJson(`/api/v1/reports/${id}`),
      other ? getJson(`/api/v1/reports/${other}`) : null,
    ]);
    report = one.report ? one : null;
    against = two?.report && two.job === one.job ? two : null;
    if (!one.report) {
      broken(one.state === "done" ? "The output of this run no longer exists." : `This run is ${one.state}.`);
      return;
    }
  } catch (error) {
    broken(error.message);
    return;
  }
  fillChoice();
  void labels.ask([...rpsNamed(report.report), ...(against ? rpsNamed(against.report) : [])]);
  for (const { plot } of plots) plot.destroy();
  plots = [];
  tables = null;
  anew();
  draw();
}

/** An empty box for another report: what is drawn into it belongs to that one alone. */
function anew() {
  box = document.createElement("div");
  box.className = "stack";
  byId("report").classList.remove("loading");
  byId("report").replaceChildren(box);
}

function broken(sentence) {
  report = null;
  anew();
  render(html`<div class="card broken"><strong>${sentence}</strong></div>`, box);
}

function draw() {
  if (!report) return;
  const { report: made } = report;
  const cards = pictures(made, nameOf);
  render(
    html`${headline(made)}
      ${against ? differences(made) : nothing}
      ${made.input.skipped_segments || made.input.late_segments ? notes(made.input) : nothing}
      <div class="report-pictures">${cards.map(
        (card, index) => html`<section class="card ${card.wide ? "wide" : ""}" aria-labelledby="picture-${index}">
        <h2 id="picture-${index}">${card.title}</h2>
        ${card.about ? html`<p class="muted small report-about">${card.about}</p>` : nothing}
        ${card.plot ? html`<div class="report-plot" data-plot=${index}></div>` : card.body}
      </section>`,
      )}</div>
      <section class="card flush report-tables" aria-labelledby="tables-title"></section>`,
    box,
  );
  if (plots.length === 0) plots = cards.flatMap((card, index) => (card.plot ? [plotted(card.plot, index)] : []));
  if (tables) tables.again();
  else tables = new Tables(need(box, ".report-tables"), report.id, made.tables, nameOf);
}

function plotted({ options, times, columns }, index) {
  const plot = new Plot(need(box, `[data-plot="${index}"]`), { ...options, height: 232 });
  plot.show(times, columns);
  return { plot };
}

function headline(made) {
  const sides = headlines(made, against?.report ?? { headline: {} });
  return html`<section class="tiles report-tiles" aria-label="The report in numbers">${sides.map(
    ({
      name,
      unit,
      now,
      before,
    }) => html`<div class="tile" data-number=${name} title=${plain(made.headline[name].about)}>
    <span class="tile-name"><span>${spoken(name)}</span>${unitBeside(unit) !== spoken(name) ? html`<span class="report-unit">${unitBeside(unit)}</span>` : nothing}</span>
    <span class="tile-value">${shown(now, unit)}</span>
    <span class="tile-note">${against ? html`against ${shown(before, unit)}${change(now, before) ? html`, <strong>${change(now, before)}</strong>` : nothing}` : plain(made.headline[name].about)}</span>
  </div>`,
  )}</section>`;
}

function differences(made) {
  const lists = movers(made, against.report);
  return html`<section class="card" aria-labelledby="differences-title" id="differences">
    <h2 id="differences-title">Largest changes</h2>
    <p class="muted small report-about">Compared with ${period(against)}. A dash marks a value that is not among the top rows of that report.</p>
    ${
      lists.length === 0
        ? html`<p class="empty">The top rows do not differ.</p>`
        : html`<div class="report-movers">${lists.map(
            ({
              list,
              column,
              unit,
              rows,
            }) => html`<div class="table-scroll" tabindex="0" role="region" aria-label=${spoken(list)}><table>
      <caption>${spoken(list)}, ${spoken(column)}</caption>
      <thead><tr><th scope="col">Name</th><th scope="col" class="right">This report</th><th scope="col" class="right">Compared</th><th scope="col" class="right">Change</th></tr></thead>
      <tbody>${rows.map(
        ({
          key,
          row,
          now,
          before,
        }) => html`<tr><th scope="row">${row.rp ? html`<a class="rp-link" href="/rps/${encodeURIComponent(row.rp)}">${nameOf(row.rp)}</a>` : key.trim() || "(none)"}</th>
        <td class="right number">${shown(now, unit)}</td><td class="right number">${shown(before, unit)}</td><td class="right number">${change(now, before)}</td></tr>`,
      )}</tbody>
    </table></div>`,
          )}</div>`
    }
  </section>`;
}

function notes(input) {
  return html`<div class="notice ${input.skipped_segments ? "warning" : ""}">
    ${input.late_segments ? html`<p>${input.late_segments} segments arrived late; their records are included.</p>` : nothing}
    ${
      input.skipped_segments
        ? html`<details class="more"><summary>${input.skipped_segments} segments could not be read; their records are not included</summary>
      <ul class="report-sentences">${input.skipped.map(({ segment, reason }) => html`<li><code>${segment}</code>: ${reason}</li>`)}</ul></details>`
        : nothing
    }
  </div>`;
}

// ---- choosing ----

function fillChoice() {
  const all = done();
  const option = (run, chosen) => new Option(period(run), run.id, false, run.id === chosen);
  byId("run").replaceChildren(...all.map((run) => option(run, report?.id)));
  byId("against").replaceChildren(
    new Option("nothing", "", false, !against),
    ...all.filter(({ id }) => id !== report?.id).map((run) => option(run, against?.id)),
  );
  byId("choice").hidden = all.length === 0;
  const { took_s: took, records, segments, digest } = report ? { ...report.report, ...report.report.input } : {};
  byId("made").textContent = report
    ? `Run ${report.id}: ${records.toLocaleString()} records of ${segments.toLocaleString()} segments, processed in ${Math.round(took)} s.`
    : "";
  byId("made").title = digest ? `Digest of the segments: ${digest}` : "";
}

const runChoice = byId("run", HTMLSelectElement);
runChoice.addEventListener("change", () => void choose(runChoice.value));
const againstChoice = byId("against", HTMLSelectElement);
againstChoice.addEventListener("change", () => void choose(report.id, againstChoice.value || null));
byId("make")?.addEventListener("click", async () => {
  const made = await askForReport(kinds, page.job);
  if (made && made.job === page.job) wanted = made.id;
});

// ---- what moves ----

/** @returns {Promise<boolean>} whether the list of runs was loaded */
async function listRuns() {
  try {
    const { items, engine } = await getJson(`/api/v1/reports?job=${page.job}&limit=${RUNS_LISTED}`);
    for (const run of items) take(run);
    byId("engine").hidden = engine.state !== "off";
    byId("engine").textContent =
      engine.state === "off" ? `No reports are created here. ${engine.detail} Earlier reports are shown.` : "";
    return true;
  } catch (error) {
    byId("away").hidden = false;
    byId("away").textContent = error.message;
    return false;
  }
}

/** Show the report that the address names, or the newest. */
async function begin() {
  listed = await listRuns();
  table.show([...runs.values()]);
  const query = new URLSearchParams(location.search);
  const first = query.get("run") ?? done()[0]?.id;
  if (first) await show(first, query.get("against"));
  else if (listed) nothingYet();
  else notRead();
}

function take(run) {
  const known = runs.get(run.id);
  if (run.job === page.job && (!known || known.changed_at <= run.changed_at)) runs.set(run.id, run);
  if (runs.size > 2 * RUNS_LISTED) runs.delete(Math.min(...[...runs.keys()].map(Number)).toString());
}

function nothingYet() {
  anew();
  render(
    html`<div class="card empty"><strong>No ${page.job} report yet</strong>
    <span>The first report is created ten minutes after the end of the first hour or day that has records. ${mayRun ? "You can also create one now." : ""}</span></div>`,
    box,
  );
}

function notRead() {
  anew();
  render(
    html`<div class="card empty"><strong>The reports could not be read</strong>
    <span>They are shown when the domain responds again.</span></div>`,
    box,
  );
}

function onChange(state, events, { fresh }) {
  if (!listed && fresh) void begin();
  byId("away").hidden = true;
  for (const run of Object.values(state.reports)) take(run);
  drawUnderWay(byId("under-way"), underWay(state.reports), mayRun);
  table.show([...runs.values()]);
  if (fresh) return;
  const ended = events.map(({ data }) => data?.run).filter((run) => run?.job === page.job);
  for (const run of ended) ending(run);
}

function ending(run) {
  if (run.state === "done") {
    byId("said").textContent = `The ${run.job} report of ${period(run)} is ready.`;
    if (run.id === wanted || !report) {
      wanted = null;
      toast(`The ${run.job} report of ${period(run)} is ready.`);
      void choose(run.id, null);
    } else fillChoice();
  } else if (run.state === "failed" && run.id === wanted) {
    wanted = null;
    toast(`The ${run.job} report could not be created. ${run.reason}`, "bad");
  }
}

await begin();
openDomain({
  onChange,
  onState: (state, error) => {
    byId("away").hidden = state === "live";
    byId("away").textContent = error?.message ?? "The domain does not respond. The data shown is out of date.";
  },
});
