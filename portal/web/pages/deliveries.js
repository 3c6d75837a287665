/** Endpoints of push subscriptions: state, success, backlog, next try. Backlogs and requests follow the load. */

import { stateOf, whyOf } from "../deliveries/words.js";
import { byId, pageData } from "../elements.js";
import { behind, duration, percent, plural } from "../format.js";
import { Listing, keepCurrent } from "../listing.js";
import { RpLabels } from "../rp_labels.js";
import { breakable, html, nothing } from "../table.js";

const LOOKED_MS = 5_000; // no event reports requests and next tries
const TOLD = ["io.herald.endpoint.", "io.herald.subscription."];

const labels = new RpLabels(pageData().labelsUrl, () => endpoints.redraw());

function state(endpoint) {
  const [kind, words, about] = stateOf(endpoint);
  const why = whyOf(endpoint);
  return html`<span class="badge ${kind}" title=${about}>${words}</span>
    <span class="rp-sub">${why || html`<time datetime=${endpoint.state_at} data-age></time>`}</span>`;
}

function success({ recent: { requests, delivered } }) {
  if (!requests) return html`<span class="muted">–</span>`;
  return html`${percent(delivered, requests)} <span class="rp-sub">${delivered} of ${requests}</span>`;
}

function backlog({ lag, lost, dead_letters: dead }) {
  return html`${lost ? html`<span class="badge bad">losing events</span> ` : nothing}${lag ? behind(lag, lost) : html`<span class="muted">0</span>`}
    ${dead ? html`<span class="rp-sub">${plural(dead, "dead letter")}</span>` : nothing}`;
}

const endpoints = new Listing({
  url: "/api/v1/endpoints",
  concerns: ({ type }) => TOLD.some((start) => type.startsWith(start)),
  onShown: ({ items, complete }) => {
    void labels.ask(items.map(({ rp }) => rp));
    byId("incomplete").hidden = complete;
  },
  table: {
    caption: "Endpoints with their state, requests, backlog and next try",
    key: ({ subscription }) => subscription,
    empty: html`<strong>No endpoints</strong>
      <span>Have the events of a rendezvous point sent to an HTTPS endpoint with <code>herald hook create RP ADDRESS</code>.</span>`,
    columns: [
      {
        name: "Endpoint",
        header: true,
        cell: (row) => html`<a class="rp-link" href=${`/deliveries/${row.subscription}`}>${breakable(row.url)}</a>
          <span class="rp-sub">${breakable(labels.of(row.rp))} for ${row.owner}</span>`,
      },
      { name: "State", width: "13rem", cell: state },
      { name: "Accepted", number: true, width: "7rem", cell: success },
      {
        name: "95 % within",
        number: true,
        width: "7rem",
        cell: ({ recent }) => (recent.p95_ms === null ? html`<span class="muted">–</span>` : duration(recent.p95_ms)),
      },
      { name: "Backlog", number: true, width: "9rem", cell: backlog },
      {
        name: "Next try",
        width: "8rem",
        cell: ({ next_at: at }) =>
          at ? html`<time datetime=${at} data-countdown></time>` : html`<span class="muted">–</span>`,
      },
    ],
  },
});
keepCurrent([endpoints]);
setInterval(() => document.hidden || endpoints.refresh(), LOOKED_MS);
