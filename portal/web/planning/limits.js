/** What limits the planners: budgets of changes, targets that cannot be reached, domains that are not asked, the standing policy. */

import { bytes, count, plural, rate } from "../format.js";
import { Table, breakable, html, nothing } from "../table.js";
import { whomWords } from "./words.js";

/**
 * @param {{plan: any, invitations: any, linkTo: (rp: string) => unknown}} about
 */
export function limitsShown({ plan, invitations, linkTo }) {
  const { bounds, shortfalls, not_asked: offs, budgets } = plan;
  const asleep = Object.entries(offs);
  return html`
    ${shortfalls.map((one) => html`<p class="notice warning">${linkTo(one.rp)} cannot reach ${one.about === "load" ? "the capacity that it needs" : `${count(one.wanted)} histories that share no risk`}: ${one.why}</p>`)}
    <dl class="facts dense planning-facts">
      <div><dt>Changes</dt><dd>${budgets.length ? budgets.map((one) => budget(one, linkTo)) : html`6 of each rendezvous point in 10 min; none was made lately`}</dd></div>
      <div><dt>Replicas of one rendezvous point</dt><dd>at most ${bounds.replicas_max}, of ${plural(bounds.histories, "independent history", "independent histories")} at least${bounds.excluded.length ? html`; never at ${bounds.excluded.join(", ")}` : nothing}</dd></div>
      <div><dt>Not asked</dt><dd>${asleep.length ? html`<ul class="plain-list">${asleep.map(([name, until]) => html`<li>${name} refused or failed; it is asked again <time datetime=${until} data-countdown></time></li>`)}</ul>` : "no domain refused lately"}</dd></div>
      ${policy(invitations)}
    </dl>`;
}

function budget({ rp, steps, steps_max: most, may_grow: grows, may_shrink: shrinks }, linkTo) {
  const left = grows ? (shrinks ? "" : ", growth only") : ", used up";
  return html`<div class="planning-budget">${linkTo(rp)} <span class="number">${steps} of ${most}</span><span class="muted small">${left}</span>
    <meter min="0" max=${most} high=${most - 1} .value=${steps} aria-label=${`Changes of ${rp} in ten minutes`}></meter></div>`;
}

function policy({ policy: one, version, changed_at: at, changed_by: by }) {
  const who = one.whom === "named" ? one.named.join(", ") || "nobody" : whomWords(one.whom);
  return html`<div><dt>Invitations accepted</dt><dd>of ${who}${one.refused.length ? html`, never of ${one.refused.join(", ")}` : nothing}:
      ${count(one.replicas_max)} replicas, ${count(one.replicas_per_home_max)} of one home, ${bytes(one.history_bytes_max)} each, ${rate(one.events_per_s_max, "events/s")},
      below ${one.pressure_max_percent}\u202f% load
      <span class="rp-sub">${version ? html`changed by ${by}, <time datetime=${at} data-age></time>` : "the default"}; <code>herald plan invitations</code> changes it</span></dd></div>`;
}

/** The table of invitations received. @param {HTMLElement} element @param {(rp: string) => string} labelOf */
export function invitationTable(element, labelOf) {
  return new Table(element, {
    caption: "Invitations of other domains, newest first",
    key: ({ home, rp, at }) => `${home} ${rp} ${at}`,
    empty: html`<strong>No invitations</strong><span>A home that needs room for its readers asks its peers to hold replicas. The standing policy answers.</span>`,
    columns: [
      { name: "From", header: true, cell: ({ home }) => html`<strong>${home}</strong>` },
      { name: "Rendezvous point", cell: ({ rp }) => html`<span class="mono small">${breakable(labelOf(rp))}</span>` },
      {
        name: "Answer",
        cell: ({ accepted, detail }) =>
          accepted
            ? html`<span class="badge good">accepted</span>`
            : html`<span class="badge warn">refused</span><span class="rp-sub">${detail}</span>`,
      },
      { name: "When", width: "9rem", cell: ({ at }) => html`<time datetime=${at} data-age></time>` },
    ],
  });
}
