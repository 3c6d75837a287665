/**
 * Use of each limit; without a limit there is no bar. Reloaded when the load changes; connections are read from the
 * gateways' samples.
 */

import { bytes, count, percent } from "../format.js";
import { byId, findAll, need } from "../elements.js";
import { keepCurrent } from "../listing.js";
import { SessionEnded, getJson } from "../requests.js";
import { tellEnd } from "../domain_connection.js";
import { PacedPoll } from "../polling.js";

const LIMITS_URL = "/api/v1/limits";
const CHANGES = /^io\.herald\.(load\.sampled|rp\.|subscription\.|replica\.)/;
const problem = byId("away");
const rows = new Map(findAll(document, "[data-limit]").map((element) => [element.dataset.limit, element]));

/** One bar: used of most, in the limit's unit. */
function show(name, { unit, limit, used, remaining }) {
  const row = rows.get(name);
  if (!row) return;
  const amount = unit.startsWith("bytes") ? bytes : count;
  const meter = row.querySelector("meter");
  const gone = limit === null ? 0 : 1 - remaining / (used + remaining || 1);
  row.classList.remove("loading");
  need(row, "[data-used]").textContent = String(amount(used));
  need(row, "[data-share]").textContent = limit === null ? "" : String(percent(gone, 1));
  if (meter) meter.value = gone;
}

function shown({ limits, domain }) {
  for (const state of [...limits, ...(domain ?? [])]) show(state.name, state);
  problem.hidden = true;
}

function failed(error) {
  if (error instanceof SessionEnded) tellEnd(error);
  problem.textContent = `${error.message} The data shown is out of date.`;
  problem.hidden = false;
}

function showConnections({ gateways }) {
  const row = rows.get("domain-sessions");
  if (!row) return;
  const each = Object.values(gateways);
  const used = each.reduce((total, { sessions }) => total + sessions, 0);
  const most = Number(row.dataset.most) * Math.max(1, each.length);
  show("domain-sessions", { unit: "connections", limit: most, used, remaining: Math.max(0, most - used) });
}

const look = new PacedPoll(() => getJson(LIMITS_URL), shown, failed);
look.soon();
keepCurrent([], (state, events) => {
  showConnections(state);
  const changes = events.filter(({ type }) => CHANGES.test(type)).length;
  if (changes) look.soon(changes);
});
