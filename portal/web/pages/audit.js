/** The audit, newest first. Acts and refusals in the domain make the page reload its rows. */

import { byId, pageData } from "../elements.js";
import { Listing, keepCurrent } from "../listing.js";
import { RpLabels } from "../rp_labels.js";
import { breakable, html, nothing, render } from "../table.js";
import { fillTimes } from "../times.js";

/** Event types that record no act; they arrive every second. */
const NO_ACT =
  /^io\.herald\.(load\.|sessions\.changed|peers\.traffic|subscription\.lagged|replica\.progress|gateway\.)/;
const OUTCOMES = { ok: "good", refused: "warn", failed: "bad" };
const page = pageData();
const labels = new RpLabels(page.labelsUrl, () => entries.redraw());
const link = byId("export", HTMLAnchorElement);

const entries = new Listing({
  url: "/api/v1/audit",
  concerns: ({ type }) => !NO_ACT.test(type),
  onShown: () => {
    const query = entries.query();
    void labels.ask(entries.items.map(({ on }) => (on?.kind === "rp" ? on.id : "")));
    link.href = query.size ? `${page.exportUrl}?${query}` : page.exportUrl;
  },
  table: {
    caption: "Entries of the audit, newest first",
    key: ({ id }) => String(id),
    empty: html`<strong>No entries yet</strong>`,
    columns: [
      {
        name: "Action",
        header: true,
        cell: (
          entry,
        ) => html`<button type="button" class="plain-button" aria-haspopup="dialog" @click=${() => open(entry)}>${entry.action}</button>
          ${entry.reason ? html`<span class="rp-sub" title=${entry.reason}>${entry.reason}</span>` : nothing}`,
      },
      {
        name: "Outcome",
        width: "8.5rem",
        cell: ({ outcome, count }) =>
          html`<span class="badge ${OUTCOMES[outcome]}">${outcome}</span>${count > 1 ? html` <span class="muted small">×${count}</span>` : nothing}`,
      },
      { name: "Who", width: "9rem", cell: ({ who, via }) => html`${who}<span class="rp-sub">by ${via}</span>` },
      {
        name: "On",
        width: "17rem",
        cell: ({ on }) =>
          on
            ? html`<span class="on">${objectOf(on)}</span><span class="rp-sub">${on.kind === "rp" ? "rendezvous point" : on.kind}</span>`
            : html`<span class="muted">–</span>`,
      },
      { name: "When", width: "9.75rem", cell: ({ at }) => html`<time datetime=${at} data-age></time>` },
    ],
  },
});

/** The object, as a link where it has a page. */
function objectOf({ kind, id }) {
  if (kind === "rp" && /^[a-z2-7]{26}$/.test(id)) {
    const label = labels.of(id);
    return html`<a class=${label === id ? "mono" : ""} href=${`/rps/${id}`} title=${id}>${breakable(label)}</a>`;
  }
  if (kind === "peer") return html`<a href=${`/federation#${id}`}>${id}</a>`;
  return html`<span class=${kind === "user" ? "" : "mono"}>${id}</span>`;
}

// ---- one entry ----

const dialog = byId("entry", HTMLDialogElement);

function open(entry) {
  const facts = [
    ["When", html`<time datetime=${entry.at} data-local></time> <span class="muted small">${entry.at}</span>`],
    ["Who", entry.who],
    ["Token of", entry.issuer],
    ["Token id", entry.token_id && html`<code>${entry.token_id}</code>`],
    ["By", entry.via],
    ["From", entry.address],
    ["On", entry.on && html`${entry.on.kind} ${objectOf(entry.on)}`],
    ["Outcome", html`<span class="badge ${OUTCOMES[entry.outcome]}">${entry.outcome}</span>`],
    ["Problem", entry.problem && html`<code>${entry.problem}</code>`],
    ["Reason", entry.reason],
    ["Count", entry.count > 1 && `${entry.count} equal refusals`],
    ["Request", entry.request_id && html`<code>${entry.request_id}</code>`],
    ["Seal", html`<code class="small">${entry.seal}</code>`],
  ].filter(([, value]) => value);
  const details = Object.keys(entry.details ?? {}).length ? JSON.stringify(entry.details, null, 2) : "";
  render(
    html`<div class="entry-head"><h2 id="entry-title">${entry.action}</h2><span class="muted">entry ${entry.id}</span></div>
      <dl class="entry-facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
      ${details ? html`<h3>Details</h3><pre class="entry-details" tabindex="0" aria-label="Details">${details}</pre>` : nothing}
      <div class="actions"><button type="button" class="button" @click=${() => dialog.close()}>Close</button></div>`,
    dialog,
  );
  fillTimes(dialog);
  dialog.showModal();
}

keepCurrent([entries]);
