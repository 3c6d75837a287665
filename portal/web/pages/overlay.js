/** The overlay: the map of its domains, the directory as a list, one domain in detail. Live from domain.admin; the domain that is open is in the address. */

import { byId, find, pageData } from "../elements.js";
import { count, duration, plural } from "../format.js";
import { Listing, keepCurrent } from "../listing.js";
import { pathTree } from "../event_path.js";
import { found, join, leave } from "../overlay/actions.js";
import { drawFigures, drawHealth, drawTrouble } from "../overlay/health.js";
import { OverlayHistory } from "../overlay/history.js";
import { OverlayMap, keyOf } from "../overlay/map.js";
import { DomainPanel, drawLinks } from "../overlay/panel.js";
import { capacityOf, levelOf, reasonOf, zoneOf } from "../overlay/words.js";
import { PacedPoll } from "../polling.js";
import { getJson } from "../requests.js";
import { html, nothing, render } from "../table.js";

/** @import { EventPath, Overlay, OverlayDomain, OverlayLink } from "../shapes.d.ts" */

const ALL_DRAWN_MAX = 300; // domains of a federation whose zones are not folded
const LOOK_EVERY_MS = 10_000; // figures and times change without an event
const DOTS_MAX = 1_000; // domains drawn of a zone that is open
const PAGE = 200;
const OVERLAY = "io.herald.overlay.";
const page = pageData();
const hrefOf = (name) => `${page.listUrl}/${encodeURIComponent(name)}`;

/** @type {Overlay | null} */
let overlay = null;
/** @type {OverlayLink[]} */
let links = [];
/** @type {{of: string, items: OverlayDomain[]}} the domains drawn, and of which zone and number they are */
let dots = { of: "", items: [] };

/** @type {EventPath | null} the path of the event that the address names */
let path = null;
/** @type {import("../overlay/health.js").Traffic} */
let traffic = null;

const past = new OverlayHistory(byId("history"), {
  url: page.historyUrl,
  onLast: ({ events, copies }) => {
    traffic = { events, copies };
    draw();
  },
});
const panel = new DomainPanel(byId("panel"), domainLink);
const map = new OverlayMap(byId("map"), { hrefOf, onOpen: open, onZone: openZone });
const state = new PacedPoll(
  () => Promise.all([getJson("/api/v1/overlay"), getJson("/api/v1/overlay/links")]),
  ([about, { items }]) => {
    overlay = about;
    links = items;
    byId("away").hidden = true;
    draw();
    void loadDots();
    if (panel.name) void panel.refresh();
  },
  (error) => {
    byId("away").textContent = overlay ? `${error.message} The data shown is out of date.` : error.message;
    byId("away").hidden = false;
  },
);

const listing = new Listing({
  url: "/api/v1/overlay/domains",
  concerns: ({ type }) => type === `${OVERLAY}directory.changed`,
  table: {
    caption: "Domains of the overlay",
    key: (row) => row.name,
    columns: [
      { name: "Domain", header: true, cell: (row) => domainLink(row.name), by: (row) => row.name },
      { name: "Link", width: "12rem", cell: (row) => linkWords(row.name) },
      {
        name: "Round trip",
        width: "7rem",
        number: true,
        wideOnly: true,
        cell: (row) => (row.rtt_ms === null ? html`<span class="muted">–</span>` : duration(row.rtt_ms)),
        by: (row) => row.rtt_ms,
      },
      {
        name: "Zone",
        width: "9rem",
        cell: (row) => row.zone || html`<span class="muted">–</span>`,
        by: (row) => row.zone,
      },
      {
        name: "Capacity",
        width: "8rem",
        wideOnly: true,
        cell: (row) => capacityOf(row.capacity),
        by: (row) => row.capacity,
      },
      {
        name: "Sponsor",
        wideOnly: true,
        cell: (row) => (row.sponsor ? domainLink(row.sponsor) : "Founder"),
        by: (row) => row.sponsor,
      },
    ],
    empty: html`<strong>No domains yet</strong><span>The directory fills within seconds of joining.</span>`,
  },
});

function domainLink(name) {
  return html`<a class="rp-link" href=${hrefOf(name)} aria-current=${panel.name === name ? "true" : nothing} @click=${(
    event,
  ) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(name);
  }}>${name}</a>`;
}

function linkWords(name) {
  if (name === overlay?.domain) return html`<span class="badge off">This domain</span>`;
  const link = links.find(({ peer, up }) => up && peer === name);
  return link
    ? html`<span class=${`overlay-badge ${levelOf(link)}`}>${reasonOf(link)}</span>`
    : html`<span class="muted">–</span>`;
}

// ---- which domain and which zone are open ----

function open(name) {
  if (name === panel.name) return;
  history.pushState(null, "", `${name ? hrefOf(name) : page.listUrl}${location.search}`);
  turnTo(name);
  if (name) byId("panel").focus({ preventScroll: innerWidth > 1200 });
}

function turnTo(name) {
  document.title = document.title.replace(/^.*? · /, `${name || "Overlay"} · `);
  byId("overlay").classList.toggle("one", Boolean(name));
  panel.open(name);
  draw();
}

function openZone(name) {
  byId("zone", HTMLSelectElement).value = name ?? "";
  byId("zone").dispatchEvent(new Event("change", { bubbles: true }));
}

/** The zone of the filter; null for all. */
function zone() {
  const chosen = new URLSearchParams(location.search).get("zone");
  return chosen === null || !overlay?.zones.some((one) => one.zone === chosen) ? null : chosen;
}

panel.onClose = () => {
  const was = panel.name;
  open("");
  find(byId("map"), `[href="${CSS.escape(hrefOf(was))}"]`, SVGElement)?.focus();
};
addEventListener("popstate", () => {
  turnTo(nameOfAddress());
  void loadDots();
});
byId("listing-filters").addEventListener("change", () => queueMicrotask(() => void loadDots()));
byId("listing-clear").addEventListener("click", () => queueMicrotask(() => void loadDots()));
byId("panel").addEventListener("keydown", ({ key }) => key === "Escape" && panel.onClose());
for (const [id, act] of Object.entries({ join, "join-first": join, "found-first": found, leave })) {
  byId(id)?.addEventListener("click", async () => {
    if (await act()) state.soon();
  });
}

function nameOfAddress() {
  return decodeURIComponent(location.pathname.slice(page.listUrl.length + 1));
}

// ---- drawing ----

function draw() {
  if (!overlay) return;
  const { joined, running, domains, zones } = overlay;
  byId("overlay").classList.remove("loading");
  byId("overlay").classList.toggle("without", !joined);
  byId("none").hidden = joined;
  byId("stopped").hidden = !joined || running;
  const leaving = document.getElementById("leave");
  if (leaving) leaving.hidden = !joined;
  const standing = links.filter(({ up }) => up).length;
  setText(
    byId("summary"),
    joined
      ? `${count(domains)} ${domains === 1 ? "domain" : "domains"}, ${plural(standing, "link")}`
      : "This domain takes part in no overlay",
  );
  if (!joined) return;
  fillZones(zones);
  past.begin();
  const up = links.filter((link) => link.up);
  const hops = path?.hops ?? [];
  map.show({ own: overlay.domain, zones, links, domains: drawn(), zone: zone(), selected: panel.name, hops });
  render(keyOf(links), byId("map-key"));
  drawHealth(overlay, up, traffic, byId("health"));
  drawTrouble(overlay, up, domainLink, byId("trouble"));
  drawFigures(overlay, byId("figures"));
  drawLinks(links, byId("links"), domainLink);
  listing.redraw();
}

/** The domains to draw: those that are loaded, and those that an event passed. */
function drawn() {
  const there = new Set(dots.items.map(({ name }) => name));
  const passed = new Set((path?.hops ?? []).flatMap(({ source, target }) => [source, target]));
  const more = (path?.domains ?? []).filter(
    ({ domain, zone: of }) => of !== null && passed.has(domain) && !there.has(domain),
  );
  return [
    ...dots.items,
    ...more.map(({ domain, zone: of }) => ({ name: domain, zone: of ?? "", convicted_at: null, suspected: false })),
  ];
}

/** Load and show the path of the event that the address names, if it names one. */
async function loadPath() {
  const asked = new URLSearchParams(location.search);
  const [rp, feed, sequence] = ["rp", "feed", "sequence"].map((name) => asked.get(name));
  const card = byId("path-card");
  if (!rp || !feed || !sequence) return;
  const close = () => {
    path = null;
    card.hidden = true;
    history.replaceState(null, "", location.pathname);
    draw();
  };
  const show = (content) => {
    card.hidden = false;
    render(
      html`<div class="card-head"><h2 id="path-title">Path of event ${sequence}</h2><button type="button" class="button quiet compact" @click=${close}>Close<span class="visually-hidden"> the path</span></button></div>${content}`,
      card,
    );
  };
  show(html`<div><p class="skeleton">Asking the domains on the way</p></div>`);
  try {
    path = await getJson(
      `/api/v1/rps/${encodeURIComponent(rp)}/path?${new URLSearchParams({ feed, sequence, ask: "true" })}`,
    );
    show(html`<div>${pathTree(/** @type {EventPath} */ (path), { own: overlay?.domain ?? "", linkTo: domainLink })}
      <p class="muted small space-above">As stated by the domains on the way; not proved.</p></div>`);
    draw();
  } catch (error) {
    if (!["Refused", "Unanswered", "SessionEnded"].includes(error.name)) throw error; // our own mistake
    show(html`<div><p class="notice warning" role="alert">${error.message}</p></div>`);
  }
}

function fillZones(zones) {
  const select = byId("zone", HTMLSelectElement);
  const named = zones.filter(({ zone: name }) => name).sort((a, b) => a.zone.localeCompare(b.zone));
  const wanted = ["", ...named.map(({ zone: name }) => name)];
  if (wanted.join() === [...select.options].map(({ value }) => value).join()) return;
  const chosen = new URLSearchParams(location.search).get("zone") ?? "";
  select.replaceChildren(new Option("All zones", ""), ...named.map(({ zone: name }) => new Option(zoneOf(name), name)));
  select.value = wanted.includes(chosen) ? chosen : "";
}

/** Load the domains that the map draws: all of a small federation, or those of the zone that is open. */
async function loadDots() {
  if (!overlay?.joined) return;
  const open_ = zone();
  const of = `${open_} ${overlay.domains}`;
  if (open_ === null && overlay.domains > ALL_DRAWN_MAX) {
    dots = { of, items: [] };
  } else if (dots.of !== of) {
    try {
      const items = await pages(open_);
      if (zone() !== open_) return;
      dots = { of, items };
    } catch {
      return; // the list says what is wrong
    }
  }
  draw();
}

async function pages(of) {
  /** @type {OverlayDomain[]} */
  const items = [];
  let cursor = "";
  do {
    const query = new URLSearchParams({
      limit: String(PAGE),
      ...(of !== null && { zone: of }),
      ...(cursor && { cursor }),
    });
    const answer = await getJson(`/api/v1/overlay/domains?${query}`);
    items.push(...answer.items);
    cursor = answer.next ?? "";
  } while (cursor && items.length < DOTS_MAX);
  return items;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

keepCurrent([listing], (_, events) => {
  const changes = events.filter(({ type }) => type.startsWith(OVERLAY)).length;
  if (changes || events.length === 0) state.soon(Math.max(1, changes)); // none: a new snapshot
});
turnTo(nameOfAddress());
void state.now().then(loadPath);
setInterval(() => !document.hidden && state.soon(), LOOK_EVERY_MS);
