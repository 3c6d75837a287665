/**
 * Self-administration: the decisions of this domain's planners with their inputs and reasons, dry runs, what limits them, switches.
 * Live from domain.admin; loads and measurements are asked for at intervals, as no event reports them.
 */

import { act } from "../acting.js";
import { byId, pageData } from "../elements.js";
import { Listing, keepCurrent } from "../listing.js";
import { Part } from "../planning/card.js";
import { decisionColumns, nextShown } from "../planning/decisions.js";
import { drainShown, homeProofs, homeTable } from "../planning/homes.js";
import { invitationTable, limitsShown } from "../planning/limits.js";
import { loadBars } from "../planning/loads.js";
import { previewShown, reliabilityTable, scaleKey } from "../planning/reliability.js";
import { switchAsked, switchTiles } from "../planning/switches.js";
import { SessionEnded, getJson } from "../requests.js";
import { RpLabels } from "../rp_labels.js";
import { breakable, html, render } from "../table.js";
import { fillTimes } from "../times.js";

const LOOKED_MS = 10_000;
const PLAN = "/api/v1/plan";
const TOLD = {
  placement: "io.herald.placement.",
  routes: ["io.herald.routes.", "io.herald.reliability."],
  homes: ["io.herald.rp.moved", "io.herald.replica.", "io.herald.rp.changed"],
  drain: ["io.herald.domain.draining", "io.herald.rp.moved"],
};
const page = pageData();
const mayOperate = "operates" in page;

const labels = new RpLabels(page.labelsUrl, () => {
  for (const one of [limits, routes, drain, homes, invitations]) one.redraw();
  decisions.redraw();
});

/** A link to the page of an RP, by its name; its replicas are shown there. */
function linkTo(rp) {
  return html`<a class="rp-link" href=${`/rps/${rp}#replicas`}>${breakable(labels.of(rp))}</a>`;
}

const stale = new Set();
const onStale = (why, part) => {
  if (why) stale.add(part);
  else stale.delete(part);
  const away = byId("away");
  away.hidden = stale.size === 0;
  if (why) away.textContent = `${why} Part of the data shown is out of date.`;
};

const refreshAll = () => {
  for (const one of parts) one.refresh();
  decisions.refresh();
};

/** The planner of routes; null where the domain cannot say: its plans are in Redis, and the other switches are not. */
async function routesIfKnown() {
  try {
    return await getJson(`${PLAN}/routes`);
  } catch (error) {
    if (error instanceof SessionEnded) throw error;
    return null;
  }
}

const switches = new Part(
  "switches",
  () => Promise.all([getJson(PLAN), routesIfKnown(), getJson(`${PLAN}/invitations`)]),
  ([plan, targets, asked], body) =>
    render(switchTiles({ plan, routes: targets, invitations: asked, mayOperate, changed: refreshAll }), body),
  onStale,
);
const loads = new Part("loads", `${PLAN}/loads`, (answer, body) => render(loadBars(answer), body), onStale);
const limits = new Part(
  "limits",
  () => Promise.all([getJson(PLAN), getJson(`${PLAN}/invitations`)]),
  ([plan, asked], body) => {
    void labels.ask([...plan.shortfalls, ...plan.budgets].map(({ rp }) => rp));
    render(limitsShown({ plan, invitations: asked, linkTo }), body);
  },
  onStale,
);

/** A box for a table within a part's body, made once. */
function boxIn(body) {
  const box = document.createElement("div");
  body.append(box);
  return box;
}

/** @type {import("../table.js").Table | null} */
let targetTable = null;
/** @type {HTMLElement | null} */
let keyBox = null;
const routes = new Part(
  "routes",
  `${PLAN}/routes`,
  ({ items }, body) => {
    void labels.ask(items.map(({ rp }) => rp));
    targetTable ??= reliabilityTable(boxIn(body), {
      linkTo,
      mayOperate,
      onRun: ({ rp }) => void runRoutes(rp),
      onSwitch: ({ rp, mode }) => void switchAsked("routes", mode, refreshAll, { rp, label: labels.of(rp) }),
    });
    keyBox ??= boxIn(body);
    targetTable.show(items);
    render(items.length ? scaleKey() : html``, keyBox);
  },
  onStale,
);
/** @type {any} what a drain would do, once it was asked for */
let forecast = null;

function onForecast({ currentTarget }) {
  const perform = async () => {
    forecast = await getJson("/api/v1/drain/preview");
    drain.redraw();
  };
  return void act(currentTarget, perform, "");
}

const drain = new Part(
  "drain",
  "/api/v1/drain",
  (answer, body) => {
    void labels.ask(answer.refusals.map(({ rp }) => rp).filter((rp) => !rp.startsWith("sub_")));
    render(drainShown(answer, { linkTo, forecast, onForecast }), body);
  },
  onStale,
);
/** @type {import("../table.js").Table | null} */
let movedTable = null;
/** @type {HTMLElement | null} */
let proofBox = null;
const homes = new Part(
  "homes",
  `${PLAN}/homes`,
  ({ items, proofs }, body) => {
    void labels.ask([...items, ...proofs].map(({ rp }) => rp));
    movedTable ??= homeTable(boxIn(body), linkTo);
    movedTable.show(items);
    proofBox ??= boxIn(body);
    render(homeProofs(proofs, linkTo), proofBox);
  },
  onStale,
);
/** @type {import("../table.js").Table | null} */
let askedTable = null;
const invitations = new Part(
  "invitations",
  `${PLAN}/invitations`,
  ({ recent }, body) => {
    void labels.ask(recent.map(({ rp }) => rp));
    askedTable ??= invitationTable(boxIn(body), (rp) => labels.of(rp));
    askedTable.show(recent);
  },
  onStale,
);
const parts = [switches, loads, limits, routes, drain, homes, invitations];

const decisions = new Listing({
  url: `${PLAN}/decisions`,
  concerns: ({ type }) => type.startsWith(TOLD.placement),
  onShown: ({ items }) => void labels.ask(items.map(({ rp }) => rp)),
  table: {
    caption: "Decisions about replicas, newest first",
    key: ({ id }) => id,
    empty: html`<strong>No decisions yet</strong><span>The planner acts when load, readers or histories call for it. A dry run shows what it would do now.</span>`,
    columns: decisionColumns({ linkTo, mayOperate, changed: refreshAll }),
  },
});

// ---- dry runs ----

const nextBox = byId("next");
byId("dry-run").addEventListener(
  "click",
  ({ currentTarget }) => void runNext(/** @type {HTMLElement} */ (currentTarget)),
);

function runNext(button) {
  const close = () => {
    nextBox.hidden = true;
    button.focus();
  };
  const perform = async () => {
    const run = await getJson(`${PLAN}/preview`);
    void labels.ask([...run.steps, ...run.shortfalls].map(({ rp }) => rp));
    nextBox.hidden = false;
    render(nextShown(run, { linkTo, close }), nextBox);
    fillTimes(nextBox);
    nextBox.focus();
  };
  return act(button, perform, "");
}

const runBox = byId("routes-preview");

/** @param {string} rp @param {number} [target] another one than its own */
function runRoutes(rp, target) {
  const close = () => {
    runBox.hidden = true;
    byId("routes").scrollIntoView({ block: "nearest" });
  };
  const query = target === undefined ? "" : `?target=${target}`;
  const perform = async () => {
    const run = await getJson(`${PLAN}/routes/${encodeURIComponent(rp)}${query}`);
    const again = (other) => void runRoutes(rp, other);
    runBox.hidden = false;
    render(previewShown(run, { label: labels.of(rp), close, again }), runBox);
    runBox.focus();
  };
  return act(byId("routes"), perform, "");
}

// ---- live ----

keepCurrent([decisions], (_, events) => {
  if (events.length === 0) {
    for (const one of parts) one.refresh(); // a new snapshot
    return;
  }
  const told = (starts) => events.some(({ type }) => [starts].flat().some((start) => type.startsWith(start)));
  if (told(TOLD.placement)) for (const one of [switches, limits, loads, invitations]) one.refresh();
  if (told(TOLD.routes)) for (const one of [switches, routes]) one.refresh();
  if (told(TOLD.homes)) homes.refresh();
  if (told(TOLD.drain)) drain.refresh();
});
setInterval(() => {
  if (document.hidden) return;
  for (const one of parts) one.refresh();
}, LOOKED_MS);
