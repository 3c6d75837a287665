/**
 * The map: this domain in the middle with its gateways, peers around it, a line to each. Colour, dashes and a sign of a
 * line show the state of delivery; a bow per direction shows traffic by its thickness.
 *
 *     const map = new FederationMap(element, { hrefOf: (name) => `/federation/${name}`, onOpen: (name) => … });
 *     map.show(rows, { own, gateways, selected });
 */

import { svg } from "lit-html";
import { count, plural, rate } from "../format.js";
import { html, nothing, render } from "../table.js";
import { GATEWAY_RADIUS, OWN_RADIUS, PEER_RADIUS, place, ring } from "./layout.js";

/** @import { JudgedPeer } from "./health.js" */

const PEERS_MAX = 48; // drawn, where there is room; those that ask for attention first. The table has all of them
const ROOM = 17_000; // px² that a peer with its words needs
const BOW = 16; // how far a flow's bow is from the line, px
const FLOW_MAX = 9;
const NAME_CHARS = 20;
const NAME_CHARS_NARROW = 13;
const NARROW = 520; // px: a phone's map

export class FederationMap {
  #element;
  #hrefOf;
  #onOpen;
  #size = { width: 0, height: 0 };
  #places = { key: "", peers: new Map() };
  /** @type {Parameters<FederationMap["show"]> | null} */
  #last = null;
  #drawn = false;

  /** @param {HTMLElement} element whose size the map takes */
  constructor(element, { hrefOf, onOpen }) {
    this.#element = element;
    this.#hrefOf = hrefOf;
    this.#onOpen = onOpen;
    new ResizeObserver(([{ contentRect }]) => {
      this.#size = { width: Math.round(contentRect.width), height: Math.round(contentRect.height) };
      if (this.#last) this.show(...this.#last);
    }).observe(element);
  }

  /**
   * @param {JudgedPeer[]} rows
   * @param {{own: string, gateways: {gateway: string, sessions: number}[], selected: string}} about
   */
  show(rows, about) {
    const first = !this.#last;
    this.#last = [rows, about];
    const { width, height } = this.#size;
    if (!width || !height) return;
    if (first || !this.#drawn) this.#element.replaceChildren(); // what stood there while loading
    this.#drawn = true;
    const shown = rows.slice(0, Math.min(PEERS_MAX, Math.floor((width * height) / ROOM)));
    const names = shown.map(({ name }) => name).sort();
    const key = `${width} ${height} ${names.join(" ")}`;
    if (this.#places.key !== key) this.#places = { key, peers: place(names, width, height) };
    const centre = { x: width / 2, y: height / 2 };
    const at = (name) => this.#places.peers.get(name);
    const drawn = [...shown].sort((a, b) => a.name.localeCompare(b.name)); // the order of Tab does not change with health
    render(
      html`<svg class="map" viewBox="0 0 ${width} ${height}" width=${width} height=${height} role="group" aria-label="Map of the federation; the table below has the same data">
        ${drawn.map((row) => line(row, centre, at(row.name)))}
        ${own(
          about,
          centre,
          ring(
            about.gateways.map(({ gateway }) => gateway),
            width,
            height,
          ),
          drawn.map((row) => at(row.name)),
          width < NARROW,
        )}
        ${drawn.map((row) => this.#peer(row, at(row.name), about.selected === row.name))}
      </svg>
      ${rows.length > shown.length ? html`<p class="map-more small muted">${plural(rows.length - shown.length, "more peer")} in the table</p>` : nothing}`,
      this.#element,
    );
  }

  #peer(row, { x, y }, selected) {
    const { name, health, rates, delivery } = row;
    const { width, height } = this.#size;
    const [nameY, noteY] =
      y < height / 2 ? [y - PEER_RADIUS - 10, y - PEER_RADIUS - 26] : [y + PEER_RADIUS + 19, y + PEER_RADIUS + 35]; // away from the line
    const flow = rates.sent + rates.taken;
    const note =
      delivery.backlog > 0
        ? `${count(delivery.backlog)} waiting`
        : flow > 0
          ? `${rate(flow)}`
          : health.level === "good"
            ? ""
            : health.word;
    const short = shortened(name, width < NARROW);
    const label = [`${short} ${note}`.trim(), short === name ? "" : name, health.word, health.sentence]
      .filter(Boolean)
      .join(", "); // begins as what is seen
    const open = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      this.#onOpen(name);
    };
    return svg`<a class=${`map-peer ${health.level} ${selected ? "selected" : ""}`} href=${this.#hrefOf(name)} @click=${open}
        aria-label=${label} aria-current=${selected ? "true" : nothing}>
      <circle class="halo" cx=${x} cy=${y} r=${PEER_RADIUS + 6}></circle>
      <circle class="disc" cx=${x} cy=${y} r=${PEER_RADIUS}></circle>
      <text class="sign" x=${x} y=${y} dy="0.36em">${health.sign}</text>
      <text class="name" x=${x} y=${nameY}>${short}</text>
      <text class="note" x=${x} y=${noteY}>${note}</text>
      <title>${name}: ${health.sentence}</title>
    </a>`;
  }
}

function own({ own: name, gateways }, { x, y }, places, peers, narrow) {
  const straight = (side) =>
    peers.some((to) => Math.sign(to.y - y) === side && Math.abs(to.x - x) < Math.abs(to.y - y) / 2);
  const below = !straight(1) || straight(-1); // where no line runs through the name
  const nameY = y + (OWN_RADIUS + 2 * GATEWAY_RADIUS) * (below ? 1 : -1) + (below ? 24 : -14);
  const sessions = gateways.reduce((sum, one) => sum + one.sessions, 0);
  return svg`<g class="map-own" role="img" aria-label=${`${name}: this domain, ${plural(gateways.length, "gateway")}, ${plural(sessions, "session")}`}>
    <circle class="ring" cx=${x} cy=${y} r=${OWN_RADIUS + GATEWAY_RADIUS + 5}></circle>
    <circle class="disc" cx=${x} cy=${y} r=${OWN_RADIUS}></circle>
    <text class="number" x=${x} y=${y} dy="0.05em">${count(sessions)}</text>
    <text class="unit" x=${x} y=${y + 15}>${sessions === 1 ? "session" : "sessions"}</text>
    ${gateways.map(({ gateway, sessions: mine }) => {
      const at = places.get(gateway);
      return svg`<g class="gateway"><title>Gateway ${gateway}: ${plural(mine, "session")}</title>
        <circle cx=${at.x} cy=${at.y} r=${GATEWAY_RADIUS}></circle><text x=${at.x} y=${at.y} dy="0.36em">${mine < 1000 ? mine : "…"}</text></g>`;
    })}
    ${narrow ? nothing : svg`<text class="name" x=${x} y=${nameY}>${shortened(name)}</text>`}
  </g>`;
}

function line(row, from, to) {
  const { health, rates } = row;
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const along = { x: (to.x - from.x) / length, y: (to.y - from.y) / length };
  const begin = point(from, along, OWN_RADIUS + 2 * GATEWAY_RADIUS + 6);
  const end = point(to, along, -(PEER_RADIUS + 4));
  const middle = { x: (begin.x + end.x) / 2, y: (begin.y + end.y) / 2 };
  const bow = (side) => `${middle.x - along.y * BOW * side} ${middle.y + along.x * BOW * side}`;
  return svg`<g class=${`map-link ${health.level}`} aria-hidden="true">
    <line class="base" x1=${begin.x} y1=${begin.y} x2=${end.x} y2=${end.y}></line>
    ${rates.sent > 0 ? svg`<path class="flow out" stroke-width=${thickness(rates.sent)} d="M${begin.x} ${begin.y} Q${bow(1)} ${end.x} ${end.y}"></path>` : nothing}
    ${rates.taken > 0 ? svg`<path class="flow in" stroke-width=${thickness(rates.taken)} d="M${end.x} ${end.y} Q${bow(-1)} ${begin.x} ${begin.y}"></path>` : nothing}
    ${health.level === "good" ? nothing : svg`<circle class="mark-ground" cx=${middle.x} cy=${middle.y} r="10"></circle><text class="mark" x=${middle.x} y=${middle.y} dy="0.36em">${health.sign}</text>`}
  </g>`;
}

function point({ x, y }, along, distance) {
  return { x: x + along.x * distance, y: y + along.y * distance };
}

/** 1 event/s and 10,000 are both to be seen: the thickness grows with the logarithm. */
function thickness(perSecond) {
  return Math.min(2 + 1.6 * Math.log10(1 + perSecond), FLOW_MAX).toFixed(1);
}

function shortened(name, narrow = false) {
  const most = narrow ? NAME_CHARS_NARROW : NAME_CHARS;
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}
