/** All leases of the domain, the soonest to end first. */

import { pageData } from "../elements.js";
import { act, renewed } from "../acting.js";
import { duration } from "../format.js";
import { Listing, keepCurrent } from "../listing.js";
import { request } from "../requests.js";
import { RpLabels } from "../rp_labels.js";
import { breakable, html } from "../table.js";
import { serverNow } from "../times.js";

const SOON_S = 600; // ends within: marked
const OF_LEASES =
  /^io\.herald\.(lease|rp|subscription|intake|replica|peer)\.(?!paused|resumed|lagged|progressed|delivery|retried|replayed)/; // not what only flows
const page = pageData();
const labels = new RpLabels(page.labelsUrl, () => leases.redraw());

/** Label, link and renewal of each kind. */
const KINDS = {
  rp: {
    word: "rendezvous point",
    label: ({ id, name }) => html`<a class="rp-link" href=${`/rps/${id}`}>${breakable(name ?? labels.of(id))}</a>`,
    renew: ({ id, granted_s }) => request("POST", `/api/v1/rps/${id}/renew`, { lease_s: granted_s }),
  },
  subscription: {
    word: "subscription",
    label: ({
      id,
      rp,
      owner,
    }) => html`<a class="rp-link" href=${`/subscriptions?${new URLSearchParams({ rp, owner })}`}>${breakable(labels.of(rp))}</a>
      <span class="rp-sub mono" title=${id}>${id}</span>`,
    renew: ({ id, granted_s }) => request("POST", `/api/v1/subscriptions/${id}/renew`, { lease_s: granted_s }),
  },
  intake: {
    word: "intake",
    label: ({ id, rp }) => html`<a class="rp-link" href=${`/rps/${rp}`}>${breakable(labels.of(rp))}</a>
      <span class="rp-sub mono" title=${id}>${id}</span>`,
    renew: ({ id, granted_s }) => request("POST", `/api/v1/intakes/${id}/renew`, { lease_s: granted_s }),
  },
  replica: {
    word: "replica",
    label: ({ id, name }) => html`<a class="rp-link" href=${`/rps/${id}`}>${breakable(name ?? labels.of(id))}</a>`,
    renew: ({ id, granted_s }) => request("POST", "/api/v1/replicas", { rp: id, lease_s: granted_s }),
  },
  peer: {
    word: "peer",
    label: ({ id }) => html`<a class="rp-link" href=${`/federation#${id}`}>${id}</a>`,
    renew: ({ id }) => request("POST", `/api/v1/peers/${encodeURIComponent(id)}/renew`, {}),
  },
};

function renew(button, lease) {
  const perform = () => KINDS[lease.kind].renew(lease);
  void act(button, perform, (answer) => renewed(answer.lease ?? lease, lease.granted_s)).then(() => leases.refresh());
}

function soon({ expires_at: at, warned }) {
  return warned || Date.parse(at) - serverNow() < SOON_S * 1000;
}

const leases = new Listing({
  url: "/api/v1/leases",
  concerns: ({ type }) => OF_LEASES.test(type),
  query: ({ within_s: within, ...filters }) =>
    within ? { ...filters, ends_before: new Date(serverNow() + within * 1000).toISOString() } : filters,
  onShown: ({ items }) => void labels.ask(items.map(({ name, rp }) => (name ? null : rp))),
  table: {
    caption: "Leases, sorted by expiry, earliest first",
    key: ({ kind, id }) => `${kind} ${id}`,
    empty: html`<strong>No leases</strong><span>Rendezvous points, subscriptions, replicas and peers exist until their lease expires.</span>`,
    columns: [
      { name: "Of", header: true, cell: (lease) => html`${KINDS[lease.kind].label(lease)}` },
      { name: "Kind", width: "10rem", cell: ({ kind }) => html`<span class="tag">${KINDS[kind].word}</span>` },
      { name: "Owner", width: "12rem", cell: ({ owner }) => owner ?? html`<span class="muted">–</span>` },
      { name: "Granted", width: "8rem", cell: (lease) => duration(lease.granted_s * 1000) },
      {
        name: "Ends",
        width: "11rem",
        cell: (lease) =>
          html`<time class=${soon(lease) ? "badge warn" : "number"} datetime=${lease.expires_at} data-countdown></time>`,
      },
      ...("operates" in page
        ? [
            {
              name: "Actions",
              width: "7rem",
              cell: (lease) => html`<span class="row-actions"><button type="button" class="button compact"
              @click=${({ currentTarget }) => renew(currentTarget, lease)}>Renew</button></span>`,
            },
          ]
        : []),
    ],
  },
});
keepCurrent([leases]);
