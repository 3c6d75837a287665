/**
 * The map of the overlay: this domain in the middle, a disc for each zone, a line to each domain with which a link stands.
 * Zones of a large federation are folded: they show the linked domains only, until the reader opens one.
 *
 *     const map = new OverlayMap(element, { hrefOf: (name) => `/overlay/${name}`, onOpen: (name) => …, onZone: (zone) => … });
 *     map.show({ own, zones, links, domains, zone, selected });
 */

import { svg } from "lit-html";
import { count, duration, plural } from "../format.js";
import { html, nothing, render } from "../table.js";
import { paceOf } from "./health.js";
import { OWN_RADIUS, dotRadius, placeInside, placeZones } from "./layout.js";
import { levelOf, reasonOf, zoneOf } from "./words.js";

/** @import { OverlayDomain, OverlayLink, OverlayZone } from "../shapes.d.ts" */

/** Domains drawn with their names: where more are drawn, a name is in the dot's title only. */
const NAMED_MAX = 8;
const NAME_CHARS = 18;
const SIGNS = { anchor: "◆", chosen: "●", accepted: "○", none: "" };

/** @typedef {Pick<OverlayDomain, "name" | "zone" | "convicted_at" | "suspected">} DrawnDomain */

/**
 * @typedef {{own: string, zones: OverlayZone[], links: OverlayLink[], domains: DrawnDomain[], zone: string | null,
 *   selected: string, hops: {source: string, target: string}[]}} Shown
 *   `domains`: those that are drawn besides the linked ones; `zone`: the one that is open, null for none; `hops`: the path of an event.
 */

export class OverlayMap {
  #element;
  #hrefOf;
  #onOpen;
  #onZone;
  #size = { width: 0, height: 0 };
  #places = { key: "", zones: new Map() };
  /** @type {Shown | null} */
  #last = null;
  #drawn = false;

  /**
   * @param {HTMLElement} element whose size the map takes
   * @param {{hrefOf: (name: string) => string, onOpen: (name: string) => void, onZone: (zone: string | null) => void}} options
   */
  constructor(element, { hrefOf, onOpen, onZone }) {
    this.#element = element;
    this.#hrefOf = hrefOf;
    this.#onOpen = onOpen;
    this.#onZone = onZone;
    new ResizeObserver(([{ contentRect }]) => {
      this.#size = { width: Math.round(contentRect.width), height: Math.round(contentRect.height) };
      if (this.#last) this.show(this.#last);
    }).observe(element);
  }

  /** @param {Shown} shown */
  show(shown) {
    this.#last = shown;
    const { width, height } = this.#size;
    if (!width || !height) return;
    if (!this.#drawn) this.#element.replaceChildren(); // what stood there while loading
    this.#drawn = true;
    const zones = shown.zone === null ? shown.zones : shown.zones.filter(({ zone }) => zone === shown.zone);
    const key = `${width} ${height} ${zones.map(({ zone, domains }) => `${zone}:${domains}`).join(" ")}`;
    if (this.#places.key !== key) this.#places = { key, zones: this.#discs(zones, shown.zone !== null) };
    const dots = this.#dots(shown);
    const centre = this.#centre(shown.zone !== null);
    const named = dots.length <= NAMED_MAX;
    const places = new Map([[shown.own, { ...centre, r: OWN_RADIUS }]]);
    for (const { name, at, r } of dots) places.set(name, { ...at, r });
    render(
      html`<svg class="map" viewBox="0 0 ${width} ${height}" width=${width} height=${height} role="group" aria-label="Map of the overlay; the lists have the same data">
          ${zones.map((zone) => this.#zone(zone, shown))}
          ${dots.filter(({ level }) => level !== "none").map(({ level, pace, at }) => svg`<line class=${`overlay-line ${level} ${pace}`} aria-hidden="true" x1=${centre.x} y1=${centre.y} x2=${at.x} y2=${at.y}></line>`)}
          ${hopLines(shown.hops, places)}
          ${own(shown.own, centre)}
          ${dots.map((dot) => this.#dot(dot, named, shown.selected === dot.name))}
          ${named ? dots.map(besides) : nothing}
        </svg>
        ${shown.zone === null ? nothing : html`<button type="button" class="button compact overlay-back" @click=${() => this.#onZone(null)}>All zones</button>`}`,
      this.#element,
    );
  }

  /** Where this domain is drawn: in the middle, or beside the zone that is open. */
  #centre(open) {
    const { width, height } = this.#size;
    return { x: open ? OWN_RADIUS + 40 : width / 2, y: open ? height - OWN_RADIUS - 34 : height / 2 };
  }

  #discs(zones, open) {
    const { width, height } = this.#size;
    if (!open) return placeZones(zones, width, height);
    return new Map(
      zones.map(({ zone }) => [zone, { x: width / 2, y: height / 2, r: Math.min(width, height) / 2 - 44 }]),
    );
  }

  /** The domains to draw, each with its place in the disc of its zone. */
  #dots({ own: mine, links, domains, zone: open }) {
    const linked = new Map(links.filter(({ up }) => up).map((link) => [link.peer, link]));
    const drawn = new Map(
      domains.map(({ name, zone, convicted_at: at, suspected }) => [
        name,
        { name, zone, convicted: at !== null, suspected },
      ]),
    );
    for (const { peer, zone, suspected } of linked.values()) {
      if (!drawn.has(peer)) drawn.set(peer, { name: peer, zone, convicted: false, suspected });
    }
    drawn.delete(mine);
    const byZone = Map.groupBy(
      [...drawn.values()].sort((a, b) => a.name.localeCompare(b.name)),
      ({ zone }) => zone,
    );
    return [...byZone].flatMap(([zone, members]) => {
      const disc = this.#places.zones.get(zone);
      if (!disc || (open !== null && zone !== open)) return [];
      const r = dotRadius(disc, members.length);
      return members.map((member, index) => ({
        ...member,
        link: linked.get(member.name),
        level: levelOf(linked.get(member.name)),
        pace: linked.has(member.name) ? paceOf(linked.get(member.name)) : "",
        at: placeInside(disc, index, members.length),
        r: linked.has(member.name) ? Math.max(5, r) : r,
      }));
    });
  }

  /** @param {OverlayZone} zone @param {Shown} shown */
  #zone({ zone, domains }, shown) {
    const disc = this.#places.zones.get(zone);
    if (!disc) return nothing;
    const label = `${zoneOf(zone)}, ${plural(domains, "domain")}`;
    const below = disc.y > this.#size.height / 2 || shown.zone !== null;
    const words = svg`<circle class="disc" cx=${disc.x} cy=${disc.y} r=${disc.r}></circle>
      <text class="name" x=${disc.x} y=${below ? disc.y + disc.r + 16 : disc.y - disc.r - 20}>${zoneOf(zone)}</text>
      <text class="note" x=${disc.x} y=${below ? disc.y + disc.r + 31 : disc.y - disc.r - 6}>${plural(domains, "domain")}</text>`;
    if (shown.zone !== null) return svg`<g class="overlay-zone open">${words}</g>`;
    return svg`<a class="overlay-zone" href=${`?zone=${encodeURIComponent(zone)}`} aria-label=${label} @click=${this.#taking(() => this.#onZone(zone))}>${words}<title>${label}</title></a>`;
  }

  #dot({ name, link, level, convicted, suspected, at, r }, named, selected) {
    const words = [convicted ? "Contradicted itself" : link ? reasonOf(link) : "No link with this domain"];
    if (suspected) words.push("suspected");
    if (typeof link?.rtt_ms === "number") words.push(String(duration(link.rtt_ms)));
    const says = words.join(", ");
    return svg`<a class=${`overlay-dot ${convicted ? "bad" : level} ${suspected ? "suspected" : ""} ${selected ? "selected" : ""}`} href=${this.#hrefOf(name)}
        aria-label=${`${name}, ${says}`} aria-current=${selected ? "true" : nothing} @click=${this.#taking(() => this.#onOpen(name))}>
      <circle class="halo" cx=${at.x} cy=${at.y} r=${r + 4}></circle>
      ${level === "anchor" ? svg`<path class="disc" d=${`M${at.x} ${at.y - r - 2}l${r + 2} ${r + 2}l${-r - 2} ${r + 2}l${-r - 2} ${-r - 2}z`}></path>` : svg`<circle class="disc" cx=${at.x} cy=${at.y} r=${r}></circle>`}
      ${named && name.length <= NAME_CHARS ? svg`<text class="note" x=${at.x} y=${at.y + r + 14}>${name}</text>` : nothing}
      <title>${name}: ${says}</title>
    </a>`;
  }

  #taking(act) {
    return (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      act();
    };
  }
}

function own(name, { x, y }) {
  return svg`<g class="map-own" role="img" aria-label=${`${name}: this domain`}>
    <circle class="disc" cx=${x} cy=${y} r=${OWN_RADIUS}></circle>
    <text class="unit" x=${x} y=${y} dy="0.36em">this</text>
  </g>`;
}

/** Words below a dot beside its name: a name that is cut, and the round-trip time. The dot says both to those who do not see them. */
function besides({ name, link, at, r }) {
  const text = (words, y) => svg`<text class="note" aria-hidden="true" x=${at.x} y=${at.y + r + y}>${words}</text>`;
  return [
    name.length > NAME_CHARS ? text(`${name.slice(0, NAME_CHARS - 1)}…`, 14) : nothing,
    typeof link?.rtt_ms === "number" ? text(String(duration(link.rtt_ms)), 28) : nothing,
  ];
}

/** The hops of an event between domains that are drawn, each a bow with an arrow at its end. */
function hopLines(hops, places) {
  return hops.flatMap(({ source, target }) => {
    const from = places.get(source);
    const to = places.get(target);
    if (!from || !to) return [];
    const across = { x: (from.x + to.x) / 2 + (to.y - from.y) * 0.12, y: (from.y + to.y) / 2 - (to.x - from.x) * 0.12 };
    const angle = Math.atan2(to.y - across.y, to.x - across.x);
    const end = { x: to.x - (to.r + 3) * Math.cos(angle), y: to.y - (to.r + 3) * Math.sin(angle) };
    const corner = (turn) => `${end.x - 10 * Math.cos(angle + turn)} ${end.y - 10 * Math.sin(angle + turn)}`;
    return svg`<g aria-hidden="true"><path class="overlay-hop" d=${`M${from.x} ${from.y}Q${across.x} ${across.y} ${end.x} ${end.y}`}></path>
      <path class="overlay-arrow" d=${`M${end.x} ${end.y}L${corner(0.45)} ${corner(-0.45)}z`}></path></g>`;
  });
}

/** The key of the map, and what it counts. @param {OverlayLink[]} links */
export function keyOf(links) {
  const standing = links.filter(({ up }) => up);
  const of = (level) => standing.filter((link) => levelOf(link) === level).length;
  return html`${[
    ["anchor", "approved peer"],
    ["chosen", "chosen by this domain"],
    ["accepted", "chosen by the other"],
  ].map(
    ([level, words]) =>
      html`<li class=${level}><span aria-hidden="true">${SIGNS[level]}</span> ${count(of(level))} ${words}</li>`,
  )}${standing.some((link) => paceOf(link) === "slow") ? html`<li class="warn"><span aria-hidden="true">┄</span> slow</li>` : nothing}<li class="bad"><span aria-hidden="true">✕</span> contradicted itself</li>`;
}
