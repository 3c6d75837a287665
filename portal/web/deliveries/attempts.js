/** The last attempts to deliver to an endpoint, each with request, answer and timing to be opened. */

import { duration, plural } from "../format.js";
import { Table, html, nothing } from "../table.js";
import { VERDICTS, WHATS, excerptText, offsets, reasonWords } from "./words.js";

export class AttemptTable {
  #table;
  /** @type {any} */
  #subscription = null;

  /** @param {HTMLElement} box */
  constructor(box) {
    this.#table = new Table(box, {
      caption: "The last attempts, newest first",
      key: (row) => `${row.at} ${row.what} ${row.message}`,
      columns: [
        { name: "When", width: "9.5rem", cell: (row) => html`<time datetime=${row.at} data-moment></time>` },
        { name: "Sent", header: true, cell: (row) => this.#sent(row) },
        { name: "Outcome", width: "12rem", cell: outcome },
        { name: "Took", number: true, width: "6rem", cell: (row) => duration(row.took_ms), by: (row) => row.took_ms },
      ],
      empty: html`<strong>No attempts yet</strong><span>The endpoint is called when there is an event. Send a test event to try it.</span>`,
    });
  }

  /** @param {any[]} attempts @param {any} subscription */
  show(attempts, subscription) {
    this.#subscription = subscription;
    this.#table.show(attempts);
  }

  #sent(row) {
    return html`<details class="attempt"><summary><strong>${WHATS[row.what]}</strong>${row.epoch ? html` <span class="number">${offsets(row)}</span>` : nothing}${row.number > 1 ? html` <span class="muted small">attempt ${row.number}</span>` : nothing}</summary>
      <dl class="facts small">
        <div><dt>Request</dt><dd><span class="mono">POST ${this.#subscription?.deliver.url}</span></dd></div>
        ${row.address ? html`<div><dt>Connected to</dt><dd class="mono">${row.address}</dd></div>` : nothing}
        ${row.message ? html`<div><dt>webhook-id</dt><dd class="mono">${row.message}</dd></div>` : nothing}
        ${row.epoch ? html`<div><dt>Events</dt><dd>${plural(row.last - row.first + 1, "event")} from <span class="mono">${row.epoch}:${row.first}</span></dd></div>` : nothing}
        <div><dt>Body, as</dt><dd>${this.#subscription?.deliver.format ?? "–"}</dd></div>
      </dl>
      <p class="muted small space-above">Begin of the answer's body</p>
      ${row.excerpt ? html`<pre class="excerpt">${excerptText(row.excerpt)}</pre>` : html`<p class="small">empty</p>`}</details>`;
  }
}

function outcome({ verdict, reason }) {
  const [kind, words] = VERDICTS[verdict];
  return html`<span class="badge ${kind}">${words}</span> <span class="rp-sub">${reasonWords(reason)}</span>`;
}
