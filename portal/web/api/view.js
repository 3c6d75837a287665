/**
 * Draws a description of an API (descriptions.js): groups of entries, each opened when it is needed, so that a document of a
 * hundred operations is there at once. Entries are linked by their ids.
 */

import { html, nothing, render } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";

import { componentName, inner, members, resolved, restrictions, typeName } from "./schemas.js";

const NESTED_MAX = 6; // members of members; deeper ones are named only

/**
 * Draw `description` into `root`; entries without all `words` are left out.
 * @param {HTMLElement} root
 * @param {import("./descriptions.js").Description} description
 * @param {any} document
 * @param {string[]} words
 */
export function draw(root, description, document, words) {
  const fits = (entry) => {
    const text = `${entry.kind} ${entry.address} ${entry.title} ${entry.id} ${entry.about}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const shown = description.groups.filter(({ entries }) => entries.some(fits));
  const groups = repeat(
    shown,
    ({ id }) => id, // an element that was opened is never used for another entry
    (group) => groupView(group, fits, document),
  );
  render(shown.length ? groups : html`<p>No entry has all of these words.</p>`, root);
}

function groupView({ id, title, about, entries }, fits, document) {
  return html`<section class="api-group" aria-labelledby=${id}>
    <h2 id=${id}>${title}</h2>
    ${about ? html`<p class="muted">${inline(about)}</p>` : nothing}
    ${repeat(
      entries.filter(fits),
      (entry) => entry.id,
      (entry) => entryView(entry, document),
    )}
  </section>`;
}

function entryView(entry, document) {
  const { id, kind, address, title } = entry;
  return html`<details class="api-entry card" id=${id} @toggle=${(event) => fill(event, () => body(entry, document))}>
    <summary>
      <span class="api-kind" data-kind=${kind}>${kind.toUpperCase()}</span>
      <code class="api-address">${address}</code>
      <span class="api-title">${inline(title)}</span>
    </summary>
    <div class="api-body"></div>
  </details>`;
}

/** Draw what a `details` holds when it is opened for the first time. */
function fill({ target }, content) {
  const place = target.lastElementChild;
  if (target.open && !place.hasChildNodes()) render(content(), place);
}

function body({ id, about, parts, command }, document) {
  return html`
    ${about ? html`<p>${inline(about)}</p>` : nothing}
    ${command ? copied(command) : nothing} ${parts.map((part) => partView(part, document))}
    <p class="small muted">Operation <a href="#${id}"><code>${id}</code></a></p>
  `;
}

function partView({ title, about, parameters = [], bodies = [] }, document) {
  return html`<section class="api-part">
    <h3>${inline(title)}</h3>
    ${about ? html`<p class="muted">${inline(about)}</p>` : nothing}
    ${parameters.length ? html`<ul class="api-members">${parameters.map((one) => parameterView(one, document))}</ul>` : nothing}
    ${bodies.map((one) => bodyView(one, document))}
  </section>`;
}

function parameterView({ name, place, required, about, schema }, document) {
  return html`<li>
    <code class="api-name">${name}</code> <span class="muted">${place}, ${typeName(schema, document)}</span>
    ${required ? html`<span class="api-required">required</span>` : nothing}
    ${details(about, schema, document)}
  </li>`;
}

function bodyView({ type, schema, examples }, document) {
  const shown = inner(schema, document);
  return html`<p class="small"><code>${type}</code> <span class="muted">${schema ? typeName(schema, document) : ""}</span></p>
    ${shown ? membersView(shown, document, 0) : nothing}
    ${examples.map(
      ({ name, value }) => html`<p class="small muted">Example${name ? `: ${name}` : ""}</p>
        ${copied(typeof value === "string" ? value : JSON.stringify(value, null, 2))}`,
    )}`;
}

function membersView(schema, document, depth) {
  const rows = Object.entries(members(schema, document));
  return html`<ul class="api-members">
    ${rows.map(([name, member]) => memberView(name, member, document, depth))}
  </ul>`;
}

function memberView(name, { schema, required }, document, depth) {
  const below = depth < NESTED_MAX ? inner(schema, document) : null;
  return html`<li>
    <code class="api-name">${name}</code> <span class="muted">${typeName(schema, document)}</span>
    ${required ? html`<span class="api-required">required</span>` : nothing}
    ${details(schema.description ?? resolved(schema, document).description ?? "", schema, document)}
    ${
      below
        ? html`<details class="api-nested" @toggle=${(event) => fill(event, () => membersView(below, document, depth + 1))}>
          <summary class="small">Members${componentName(below) ? html` of ${componentName(below)}` : nothing}</summary>
          <div></div>
        </details>`
        : nothing
    }
  </li>`;
}

function details(about, schema, document) {
  const limits = restrictions(schema, document);
  return html`${about ? html`<span class="api-about">${inline(about)}</span>` : nothing}
  ${limits.length ? html`<span class="api-about small muted">${limits.join("; ")}</span>` : nothing}`;
}

function copied(text) {
  return html`<div class="command">
    <pre tabindex="0">${text}</pre>
    <button type="button" class="copy" data-copy=${text} ?hidden=${!navigator.clipboard}>Copy</button>
  </div>`;
}

/** Text whose parts in backticks are code. */
function inline(text) {
  return text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}
