/** The list beside the axis: the events that are seen there, the newest first, for who reads rather than looks. */

import { html, render } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import { bytes, count } from "../format.js";
import { momentText } from "../times.js";
import { between } from "./clusters.js";

/** @import { LaneReader } from "./reader.js" */

const ROWS_MAX = 150;

/** The events of all lanes within the scale, the newest first: {reader, event}. */
export function seen(readers, scale) {
  const all = readers.flatMap((reader) =>
    between(reader.lane.events, scale.from, scale.to).map((event) => ({ reader, event })),
  );
  return all.sort((a, b) => b.event.at - a.event.at || b.event.offset - a.event.offset);
}

/** Reason for an empty list: no events in view, or a history that could not be read. */
function nothingSeen(readers) {
  const unread = readers.find(({ state }) => state === "away" || state === "broken");
  if (!unread) {
    return html`<div class="empty"><strong>No events in this period</strong><span>Move or zoom out; Fit shows all events held.</span></div>`;
  }
  const next = unread.state === "away" ? "Retrying automatically." : "Remove it, or check whether you may read it.";
  return html`<div class="broken"><strong>The history could not be read</strong><span>${unread.says} ${next}</span></div>`;
}

/**
 * @param {HTMLElement} element
 * @param {{readers: LaneReader[], scale: import("./scale.js").Scale, selected: {reader: LaneReader, offset: number} | null,
 *   colour: (type: string) => number, select: (reader: LaneReader, offset: number) => void}} shown
 */
export function drawRows(element, { readers, scale, selected, colour, select }) {
  const all = seen(readers, scale);
  const rows = all.slice(0, ROWS_MAX);
  const several = readers.length > 1;
  render(
    all.length === 0
      ? nothingSeen(readers)
      : html`<ol class="ts-rows">
            ${repeat(
              rows,
              ({ reader, event }) => `${reader.rp}:${event.offset}`,
              (row) => one(row, { several, selected, colour, select }),
            )}
          </ol>
          ${all.length > rows.length ? html`<p class="empty small">${count(all.length - rows.length)} more in this period: zoom in to list them.</p>` : ""}`,
    element,
  );
  return all.length;
}

function one({ reader, event }, { several, selected, colour, select }) {
  const mine = selected?.reader === reader && selected.offset === event.offset;
  const at = new Date(event.at).toISOString();
  return html`<li><button type="button" class="ts-row" aria-pressed=${mine} data-offset=${event.offset} @click=${() => select(reader, event.offset)}>
    <span class="ts-row-sign s${colour(event.type)}" aria-hidden="true">${event.feed ? "◆" : "●"}</span>
    <time class="number" datetime=${at} title=${event.exact ? `stored ${at}` : `arrived here ${at}`}>${momentText(event.at)}</time>
    <span class="number muted">#${event.offset}</span>
    <span class="ts-row-type">${event.type}${event.feed ? html`<span class="visually-hidden">, from another domain</span>` : ""}</span>
    <span class="ts-row-size number muted small">${event.size === null ? "" : `${bytes(event.size)}`}</span>
    <span class="ts-row-data mono">${event.preview}</span>
    ${several ? html`<span class="ts-row-rp muted small">${reader.label}</span>` : ""}
  </button></li>`;
}
