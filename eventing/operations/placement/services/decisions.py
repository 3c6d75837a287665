"""Writes of decisions: proposed, approved, rejected, carried out. Each change is an event on the RP's administrative RP and the domain's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from msgspec.structs import asdict

from eventing.access.rules.permission import require_operator
from eventing.core.errors import Conflict
from eventing.core.principals import Principal
from eventing.operations.placement.models import WHY_CHARS_MAX, PlacementDecision
from eventing.operations.placement.rules.decisions import (
    APPROVED,
    EXPIRED,
    PROPOSED,
    PROPOSED_S,
    REJECTED,
    may_follow,
)
from eventing.operations.placement.rules.steps import PlacementStep
from eventing.operations.placement.selectors.decisions import decision_get
from eventing.operations.placement.shapes import PlacementDecisionAnswer, StepAtDomain, plain
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change

KEPT_S = 30 * 86_400
KEPT_MAX = 10_000  # bound: decisions that are kept; the oldest are removed
PURGE_BATCH = 1000


def decision_propose(step: PlacementStep, outbox: Outbox, *, approved: bool, by: str = "") -> PlacementDecision | None:
    """Record a step, within the caller's transaction. Returns its row, or None while another one of the RP is open.

    A proposal of the same step stays as it is; one of another step is replaced.

    Args:
        approved: it is to be carried out without a further decision.
        by: identity of the person who decided; empty: the planner.
    """
    there = PlacementDecision.objects.select_for_update().filter(rp=step.rp, state__in=(PROPOSED, APPROVED, "working"))
    for row in there:
        same = (row.reason, sorted(row.adds), sorted(row.retires)) == (
            step.reason,
            sorted(step.adds),
            sorted(step.retires),
        )
        if row.state != PROPOSED or (same and not approved):
            return None
        decision_move(row, EXPIRED, outbox, detail="Another proposal replaced it.")
    row = PlacementDecision.objects.create(
        rp=step.rp,
        state=APPROVED if approved else PROPOSED,
        reason=step.reason,
        why=step.why[:WHY_CHARS_MAX],
        inputs=dict(step.inputs),
        adds=list(step.adds),
        retires=list(step.retires),
        decided_by=by,
        created_at=outbox.now,
        changed_at=outbox.now,
    )
    outbox.event(events.PLACEMENT_DECIDED, row.rp, {"decision": asdict(decision_answer(row))}, domain_too=True)
    return row


def decision_move(row: PlacementDecision, state: str, outbox: Outbox, *, detail: str = "", by: str = "") -> None:
    """Change the state of a decision, within the caller's transaction. Raises Conflict where the graph has no such change."""
    if not may_follow(row.state, state):
        raise Conflict(f"The decision is {row.state}: it cannot become {state}.")
    row.state, row.detail, row.changed_at = state, detail[:WHY_CHARS_MAX], outbox.now
    row.decided_by = by or row.decided_by
    row.save(update_fields=["state", "detail", "changed_at", "decided_by", "claimed_until", "progress"])
    decision_changed(row, outbox)


def decision_changed(row: PlacementDecision, outbox: Outbox) -> None:
    """Report a decision as it is now."""
    outbox.event(events.PLACEMENT_CHANGED, row.rp, {"decision": asdict(decision_answer(row))}, domain_too=True)


def decision_approve(*, decision: str, principal: Principal, now: datetime | None = None) -> PlacementDecision:
    """Have a proposal carried out. For operators. Raises Forbidden, NotFound, Conflict."""
    return _decide(decision, principal, APPROVED, "placement.approve", "", now)


def decision_reject(
    *, decision: str, principal: Principal, note: str = "", now: datetime | None = None
) -> PlacementDecision:
    """Reject a decision that is not under way yet. For operators. Raises Forbidden, NotFound, Conflict."""
    return _decide(decision, principal, REJECTED, "placement.reject", note, now)


def decisions_expire(outbox: Outbox, *, off: Iterable[str] = ()) -> int:
    """Expire old proposals, and all of RPs that are not planned for any more. Returns how many."""
    rows = PlacementDecision.objects.select_for_update().filter(state=PROPOSED)
    old = list(rows.filter(created_at__lte=outbox.now - timedelta(seconds=PROPOSED_S)))
    old += [row for row in rows.filter(rp__in=list(off)) if row not in old]
    for row in old:
        decision_move(row, EXPIRED, outbox, detail="Nobody approved it in time.")
    return len(old)


def decisions_purge(*, now: datetime | None = None) -> int:
    """Delete a batch of old decisions. Returns how many."""
    now = now or timezone.now()
    rows = PlacementDecision.objects.exclude(state__in=(PROPOSED, APPROVED, "working"))
    before = now - timedelta(seconds=KEPT_S)
    beyond = rows.order_by("-id").values_list("created_at", flat=True)[KEPT_MAX : KEPT_MAX + 1]
    before = max([before, *beyond])
    ids = list(rows.filter(created_at__lte=before).order_by("id").values_list("id", flat=True)[:PURGE_BATCH])
    return PlacementDecision.objects.filter(id__in=ids).delete()[0]


def decision_answer(row: PlacementDecision) -> PlacementDecisionAnswer:
    """Return a decision as answers and events show it."""
    progress: Mapping[str, Mapping[str, Any]] = row.progress
    return PlacementDecisionAnswer.of(
        row,
        id=str(row.id),
        inputs=plain(row.inputs),
        progress={name: StepAtDomain(state=one["state"], detail=one["detail"]) for name, one in progress.items()},
    )


def _decide(
    decision: str, principal: Principal, state: str, action: str, note: str, now: datetime | None
) -> PlacementDecision:
    require_operator(principal)
    with change(now or timezone.now()) as outbox:
        row = decision_get(decision, lock=True)
        decision_move(row, state, outbox, detail=note, by=principal.identity)
        outbox.act(action, principal, "rp", row.rp, decision=str(row.id), note=note)
    return row
