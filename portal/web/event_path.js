/**
 * The path of one event: the hops between domains as a tree from its origin, and what is known of each domain (GET /api/v1/rps/{id}/path).
 *
 *     render(pathTree(path, { own: "a.example", linkTo: (name) => name }), element);
 */

import { duration } from "./format.js";
import { html, nothing } from "./table.js";

/** @import { EventHop, EventPath, PathDomain } from "./shapes.d.ts" */

/** @typedef {{domain: string, hop: EventHop | null, children: PathNode[]}} PathNode */

/**
 * Make a tree of the hops. A domain stands once: below the sender that it states itself, else below the first that others state.
 * @param {EventPath} path
 * @returns {PathNode[]} the origin; more where the hops known are not connected
 */
export function treeOf({ hops, domains, route, origin }) {
  /** @type {Map<string, EventHop>} */
  const best = new Map();
  for (const hop of hops) {
    const held = best.get(hop.target);
    const firstHand = hop.stated_by.includes(hop.target);
    const better = !held || (firstHand && !held.stated_by.includes(hop.target));
    if (hop.target !== origin && better) best.set(hop.target, hop);
  }
  const names = new Set([...route, ...hops.flatMap(({ source, target }) => [source, target])]);
  for (const { domain, route: way } of domains) if (way) names.add(domain);
  const placed = new Set();
  /** @param {string} domain @returns {PathNode} */
  const node = (domain) => {
    placed.add(domain);
    const below = [...best.values()].filter(({ source, target }) => source === domain && !placed.has(target));
    return {
      domain,
      hop: best.get(domain) ?? null,
      children: below.filter(({ target }) => !placed.has(target)).map(({ target }) => node(target)),
    };
  };
  const roots = [...names].filter((name) => !best.has(name)).map(node);
  for (const name of names) if (!placed.has(name)) roots.push(node(name)); // a cycle, by contradicting words
  return roots;
}

/**
 * @param {EventPath} path
 * @param {{own: string, linkTo: (name: string) => unknown}} options
 */
export function pathTree(path, { own, linkTo }) {
  const about = new Map(path.domains.map((one) => [one.domain, one]));
  const first = about.get(path.origin ?? "")?.stored_at ?? null;
  const items = (nodes) => nodes.map((one) => item(one, about.get(one.domain), { own, linkTo, first, items }));
  const tree = treeOf(path);
  const shown = new Set();
  const walk = (nodes) => nodes.forEach(({ domain, children }) => (shown.add(domain), walk(children)));
  walk(tree);
  const rest = path.domains.filter(({ domain }) => !shown.has(domain));
  return html`<ul class="event-path" aria-label="Path of the event">${items(tree)}</ul>
    ${
      rest.length
        ? html`<h4 class="event-path-rest">Way unknown</h4><ul class="event-path-others">${rest.map(
            (one) => html`<li>${linkTo(one.domain)} <span class="muted small">${known(one)}</span></li>`,
          )}</ul>`
        : nothing
    }`;
}

/** @param {PathNode} node @param {PathDomain | undefined} about */
function item({ domain, hop, children }, about, { own, linkTo, first, items }) {
  const says = [];
  if (domain === own) says.push("this domain");
  if (about?.role === "home") says.push("home");
  const took = hop?.at && first ? Date.parse(hop.at) - Date.parse(first) : null;
  if (took !== null && took >= 0) says.push(`after ${duration(took)}`);
  if (hop && !hop.stated_by.includes(domain)) says.push(`as ${hop.stated_by.join(", ")} states`);
  if (about?.detail) says.push(about.detail);
  return html`<li>${linkTo(domain)} <span class="muted small">${says.join("; ")}</span>${
    children.length ? html`<ul>${items(children)}</ul>` : nothing
  }</li>`;
}

/** @param {PathDomain} about */
function known({ held, answered, detail, known_from: from }) {
  if (answered === false) return detail || "It did not answer.";
  if (held === false) return "has not received it";
  if (from.length) return `holds it, as ${from.join(", ")} states`;
  return held ? "holds it" : "unknown here";
}
