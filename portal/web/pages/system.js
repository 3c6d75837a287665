/**
 * Processes, stores, findings. Gateways are live from domain.admin; the rest is requested from the server while the page
 * is visible.
 */

import { byId, pageData } from "../elements.js";
import { bytes, count, duration, percent, plural, rate } from "../format.js";
import { keepCurrent } from "../listing.js";
import { startSystemPast } from "../system_past.js";
import { tellEnd } from "../domain_connection.js";
import { PacedPoll } from "../polling.js";
import { SessionEnded, Unanswered, getJson } from "../requests.js";
import { Table, html, nothing, render } from "../table.js";
import { stretch } from "../times.js";

const STATE_EVERY_MS = 5_000;
const SECOND_LOOK_MS = 1_500; // processor shares are between two looks
const FINDINGS_TIMEOUT_MS = 20_000; // the server bounds the checks itself, below this
const page = pageData();

/** Draw in an element, without what stood there while loading. */
function draw(content, element) {
  if (element.dataset.drawn === undefined) element.replaceChildren();
  element.dataset.drawn = "";
  element.classList.remove("loading");
  render(content, element);
}

function away(error) {
  if (error instanceof SessionEnded) tellEnd(error);
  byId("away").hidden = !error;
  byId("away").textContent = error ? `${error.message} The data shown is out of date. Retrying automatically.` : "";
}

// ---- /readyz: it answers 503 with the same document where a part is away ----

const READY = {
  redis: "Redis",
  database: "database",
  workers: "worker",
  forwarder: "forwarder",
  beat: "schedule",
  stored: "durable writes",
  gateway: "gateway",
};

async function askReady() {
  try {
    const response = await fetch("/readyz", { signal: AbortSignal.timeout(5_000) });
    return await response.json();
  } catch {
    throw new Unanswered();
  }
}

function showReady({ status, checks }) {
  const wrong = Object.values(checks).filter((says) => says !== "ok").length;
  draw(
    status === "ok"
      ? html`<span class="badge good">ready</span>`
      : html`<span class="badge bad">${plural(wrong, "component")} not available</span>`,
    byId("ready-said"),
  );
  draw(
    Object.entries(checks).map(
      ([part, says]) =>
        html`<li><span class="badge ${says === "ok" ? "good" : "bad"}">${READY[part] ?? part}</span>${says === "ok" ? nothing : html` <span>${says}</span>`}</li>`,
    ),
    byId("ready"),
  );
}

// ---- findings ----

const GRADES = { ok: "good", warn: "warn", fail: "bad" };
const ORDER = ["fail", "warn", "ok"];
const COUNTED = { ok: "passed", warn: "warnings", fail: "failed" };

function showFindings({ findings }) {
  const counts = ORDER.map((grade) => [grade, findings.filter((one) => one.grade === grade).length]);
  byId("findings-said").textContent = counts
    .filter(([, number]) => number)
    .map(([grade, number]) => `${number} ${COUNTED[grade]}`)
    .join(", ");
  const sorted = ORDER.flatMap((grade) => findings.filter((one) => one.grade === grade));
  draw(
    html`<ul class="doctor-list">${sorted.map(
      ({ subject, grade, says, do: advice }) => html`<li>
        <span class="badge ${GRADES[grade]}">${subject}</span>
        <span class="doctor-says">${says}${advice ? html`<span class="doctor-do">${advice}</span>` : nothing}</span></li>`,
    )}</ul>`,
    byId("findings"),
  );
}

async function lookForFindings() {
  const button = byId("look");
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  try {
    showFindings(await getJson(page.findingsUrl, FINDINGS_TIMEOUT_MS));
  } catch (error) {
    if (error instanceof SessionEnded) tellEnd(error);
    draw(
      html`<div class="broken"><strong>The checks did not respond</strong><span>${error.message} Check again later, or run <code>manage.py doctor</code> on the domain's machine.</span></div>`,
      byId("findings"),
    );
  } finally {
    button.removeAttribute("aria-busy");
  }
}

// ---- processes, queues, stores ----

/** @type {{at: number, cpu: Map<number, number>} | null} */
let before = null; // the look before; seconds by pid

/** Processor share of each process between two looks. */
function shares({ at, processes }) {
  const cpu = new Map(processes.filter(({ alive }) => alive).map(({ pid, cpu_s: used }) => [pid, used]));
  const passed = before ? at - before.at : 0;
  const found = new Map(
    [...cpu].map(([pid, used]) => {
      const earlier = before?.cpu.get(pid);
      return [pid, passed > 0 && earlier !== undefined ? (used - earlier) / passed : null];
    }),
  );
  if (!before || passed >= 1) before = { at, cpu };
  return found;
}

const processes = new Table(byId("processes"), {
  caption: "Processes started by the supervisor on this machine",
  key: ({ name }) => name,
  columns: [
    {
      name: "Process",
      header: true,
      cell: (row) =>
        html`${row.name} ${row.alive ? nothing : html`<span class="badge bad">exited</span>`}<span class="rp-sub number">pid ${row.pid}</span>`,
      by: ({ name }) => name,
    },
    {
      name: "CPU",
      number: true,
      width: "7rem",
      cell: (row) => (row.share === null ? html`<span class="muted">–</span>` : percent(row.share, 1)),
      by: ({ share }) => share,
    },
    {
      name: "CPU time",
      number: true,
      width: "8rem",
      cell: (row) => duration(row.cpu_s * 1000),
      by: (row) => row.cpu_s,
    },
    { name: "Memory", number: true, width: "8rem", cell: (row) => bytes(row.rss_bytes), by: (row) => row.rss_bytes },
    { name: "Threads", number: true, width: "7.5rem", cell: (row) => count(row.threads), by: ({ threads }) => threads },
    {
      name: "Runs for",
      number: true,
      width: "10rem",
      cell: (row) => (row.alive ? stretch((row.at - row.since) * 1000) : "–"),
      by: ({ since }) => since,
    },
  ],
  empty: html`<strong>No process table</strong><span>This gateway was not started by <code>make run</code>; check the process manager that runs it.</span>`,
});

function pairs(element, facts) {
  draw(
    facts.filter(Boolean).map(([name, value]) => html`<dt>${name}</dt><dd class="number">${value}</dd>`),
    byId(element),
  );
}

const broken = ({ problem }) => ["State", html`<span class="badge bad">${problem}</span>`];

function showState(state) {
  away(null);
  const share = shares(state);
  processes.show(state.processes.map((row) => ({ ...row, at: state.at, share: share.get(row.pid) ?? null })));
  byId("processes-said").textContent = state.state && state.state !== "running" ? state.state : "";
  const { redis, database, queues } = state;
  pairs(
    "queues",
    queues.length
      ? queues.map(({ name, by, waiting }) => [
          by ? html`${name}<span class="rp-sub">served by ${by}</span>` : name,
          plural(waiting, "task"),
        ])
      : [["Tasks", "unknown while Redis is not available"]],
  );
  pairs(
    "redis",
    redis.problem
      ? [["Where", redis.where], broken(redis)]
      : [
          ["Where", redis.where],
          ["Version", redis.version],
          [
            "Memory",
            html`${bytes(redis.used_bytes)}${redis.most_bytes ? html` of ${bytes(redis.most_bytes)}` : nothing}`,
          ],
          ["Peak", bytes(redis.peak_bytes)],
          ["Commands", rate(redis.ops_s)],
          ["Keys", count(redis.keys)],
          ["Clients", count(redis.clients)],
          [
            "Append-only file",
            redis.append_only ? html`on, last write ${redis.last_write}` : html`<span class="badge bad">off</span>`,
          ],
          ["Runs for", stretch(redis.up_s * 1000)],
        ],
  );
  pairs(
    "database",
    database.problem
      ? [["Where", database.where], broken(database)]
      : [
          ["Kind", database.kind === "sqlite" ? "SQLite" : "PostgreSQL"],
          ["Version", database.version],
          ["Size", bytes(database.bytes)],
          ["Location", html`<code class="small">${database.where}</code>`],
        ],
  );
}

// ---- gateways, live ----

const gateways = new Table(byId("gateways"), {
  caption: "Gateway processes and their current load",
  key: ({ gateway }) => gateway,
  columns: [
    {
      name: "Gateway",
      header: true,
      cell: ({ gateway }) => html`<span class="mono">${gateway}</span>`,
      by: ({ gateway }) => gateway,
    },
    {
      name: "Sessions",
      number: true,
      width: "8rem",
      cell: (row) => count(row.sessions),
      by: ({ sessions }) => sessions,
    },
    {
      name: "Events in",
      number: true,
      width: "8.5rem",
      cell: (row) => rate(row.events_in / row.interval_s),
      by: (row) => row.events_in / row.interval_s,
    },
    {
      name: "Deliveries",
      number: true,
      width: "8.5rem",
      cell: (row) => rate(row.deliveries / row.interval_s),
      by: (row) => row.deliveries / row.interval_s,
    },
    {
      name: "CPU",
      number: true,
      width: "6.5rem",
      cell: (row) => percent(row.cpu_s, row.interval_s),
      by: (row) => row.cpu_s / row.interval_s,
    },
    { name: "Memory", number: true, width: "8rem", cell: (row) => bytes(row.rss_bytes), by: (row) => row.rss_bytes },
    { name: "Loop lag", number: true, width: "8rem", cell: (row) => duration(row.lag_ms), by: (row) => row.lag_ms },
  ],
  sort: { column: 0 },
  empty: html`<strong>No samples yet</strong><span>Each gateway sends its first sample within ten seconds of its start.</span>`,
});

// ---- settings: written by the server, found here ----

function findSettings() {
  const text = byId("setting", HTMLInputElement).value.trim().toLowerCase();
  const chosen = byId("chosen", HTMLInputElement).checked && !text; // who looks for one means all of them
  let shown = 0;
  for (const row of byId("settings", HTMLTableElement).tBodies[0].rows) {
    row.hidden = (chosen && row.dataset.origin === "default") || !row.cells[0].textContent.toLowerCase().includes(text);
    shown += Number(!row.hidden);
  }
  byId("no-setting").hidden = shown > 0;
}

byId("setting").addEventListener("input", findSettings);
byId("chosen").addEventListener("change", findSettings);
byId("look").addEventListener("click", () => void lookForFindings());

/** While the gateway does not respond, the state of the components is unknown; the previous state is removed. */
function readyUnknown(error) {
  away(error);
  draw(html`<span class="badge warn">unknown</span>`, byId("ready-said"));
  draw(
    html`<li class="muted">The gateway does not respond, so the state of the components is unknown.</li>`,
    byId("ready"),
  );
}

const looks = [
  new PacedPoll(() => getJson(page.stateUrl), showState, away),
  new PacedPoll(askReady, showReady, readyUnknown),
];

function look() {
  if (document.hidden) return;
  for (const each of looks) each.soon();
}

look();
setTimeout(() => void looks[0].now(), SECOND_LOOK_MS);
setInterval(look, STATE_EVERY_MS);
document.addEventListener("visibilitychange", look);
findSettings();
void lookForFindings();
keepCurrent([], (state) => gateways.show(Object.values(state.gateways)));
startSystemPast(page.loadUrl);
