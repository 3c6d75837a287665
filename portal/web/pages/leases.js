/** All leases of the domain, the soonest to end first. */

import { live } from "lit-html/directives/live.js";

import { byId, pageData } from "../elements.js";
import { act, renewed } from "../acting.js";
import { failureWords, performOnEach } from "../bulk.js";
import { count, duration, plural } from "../format.js";
import { Listing, keepCurrent } from "../listing.js";
import { request } from "../requests.js";
import { RpLabels } from "../rp_labels.js";
import { breakable, html, nothing } from "../table.js";
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

// ---- many at once ----

const keyOf = ({ kind, id }) => `${kind} ${id}`;
/** @type {Set<string>} */
const picked = new Set(); // keys of leases

function pick(lease, on) {
  if (on) picked.add(keyOf(lease));
  else picked.delete(keyOf(lease));
  drawBulk();
}

/** What left the page is no longer selected. */
function drawBulk() {
  const bar = document.getElementById("bulk");
  if (!bar) return;
  const shown = new Set(leases.items.map(keyOf));
  for (const key of picked) if (!shown.has(key)) picked.delete(key);
  bar.hidden = shown.size === 0;
  const all = byId("pick-all", HTMLInputElement);
  all.checked = picked.size > 0 && picked.size === shown.size;
  all.indeterminate = picked.size > 0 && !all.checked;
  byId("picked").textContent = picked.size ? `${count(picked.size)} selected` : "Select all on this page";
  byId("renew-picked").hidden = picked.size === 0;
}

async function renewPicked() {
  const wanted = leases.items.filter((lease) => picked.has(keyOf(lease)));
  const { done, failed } = await performOnEach(
    wanted,
    (lease) => KINDS[lease.kind].renew(lease),
    (number) => {
      byId("picked").textContent = `${count(number)} of ${count(wanted.length)} renewed`;
    },
  );
  for (const lease of done) picked.delete(keyOf(lease));
  leases.redraw();
  drawBulk();
  leases.refresh();
  if (!failed.length) return `${plural(done.length, "lease")} renewed.`;
  throw new Error(
    failureWords(
      failed.map(({ item, message }) => ({ name: item.name ?? item.id, message })),
      wanted.length,
    ),
  );
}

document.getElementById("pick-all")?.addEventListener("change", ({ target }) => {
  for (const lease of leases.items) pick(lease, /** @type {HTMLInputElement} */ (target).checked);
  leases.redraw();
});
document.getElementById("renew-picked")?.addEventListener("click", ({ currentTarget }) => {
  void act(/** @type {HTMLElement} */ (currentTarget), renewPicked, (said) => said);
});

function soon({ expires_at: at, warned }) {
  return warned || Date.parse(at) - serverNow() < SOON_S * 1000;
}

const leases = new Listing({
  url: "/api/v1/leases",
  concerns: ({ type }) => OF_LEASES.test(type),
  query: ({ within_s: within, ...filters }) =>
    within ? { ...filters, ends_before: new Date(serverNow() + within * 1000).toISOString() } : filters,
  onShown: ({ items }) => {
    drawBulk();
    void labels.ask(items.map(({ name, rp }) => (name ? null : rp)));
  },
  table: {
    caption: "Leases, sorted by expiry, earliest first",
    key: keyOf,
    empty: html`<strong>No leases</strong><span>Rendezvous points, subscriptions, replicas and peers exist until their lease expires.</span>`,
    columns: [
      {
        name: "Of",
        header: true,
        cell: (lease) =>
          html`${
            "operates" in page
              ? html`<input type="checkbox" class="pick" aria-label=${`Select ${KINDS[lease.kind].word} ${lease.name ?? lease.id}`}
                .checked=${live(picked.has(keyOf(lease)))} @change=${({ target }) => pick(lease, target.checked)}>`
              : nothing
          }${KINDS[lease.kind].label(lease)}`,
      },
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
