"""Storage of what this domain promised as an elector, and of what it may forget.

A promise (a vote, an endorsement) is stored before it is sent, and kept while the domain participates. Once the replica has ended, it is
deleted ELECTOR_KEPT_S after the last promise. A domain that joins again then remembers nothing, so it promises nothing by a plan that is
older than what it remembers (`remembers`): all promises that were deleted are older than ELECTOR_KEPT_S, and those by a plan are
younger than the plan. So no deleted promise was by a plan that it votes by.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone

from eventing.core.errors import Conflict
from eventing.overlay import succession
from eventing.overlay.succession import ElectorStanding, SuccessionRules
from eventing.replication.models import ElectorState, HomeConsent
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import SuccessionPlan

ELECTOR_KEPT_S = 30 * 86_400  # seconds that promises are kept after the last one, where the replica has ended
CLOCKS_S = 86_400  # seconds by which the home's clock, which dates plans, may differ; requests allow for 60
CONSENT_KEPT_S = 86_400  # seconds that a consent is kept after the time in which the home completes a move: its
# signature stands without it, only watch rules and audience of the former home would be left behind
PURGE_BATCH = 1000
ElectedRp = tuple[RendezvousPoint, SuccessionPlan]


def clock_ms() -> int:
    """Return this domain's time, in milliseconds."""
    return int(time.time() * 1000)


def rules_of(plan: SuccessionPlan) -> SuccessionRules:
    """Return the plan as the machine reads it."""
    return SuccessionRules(tuple(one.domain for one in plan.electors), plan.silence_s * 1000)


def states_of(pairs: Sequence[ElectedRp]) -> dict[str, ElectorState]:
    """Return the states that are about the present homes of these RPs."""
    terms = {row.id: row.term for row, _ in pairs}
    found = ElectorState.objects.filter(rp__in=list(terms))
    return {state.rp: state for state in found if state.home_term == terms[state.rp]}


def state_locked(row: RendezvousPoint) -> ElectorState:
    """Return the state of this domain as an elector of the RP, about its present home, locked."""
    now_ms = clock_ms()
    fresh = {"heard_ms": now_ms, "home_term": row.term, "since_ms": now_ms, "used_ms": now_ms}
    state = ElectorState.objects.select_for_update().get_or_create(rp=row.id, defaults=fresh)[0]
    if state.home_term != row.term:
        _set(state, succession.term_accepted(standing_of(state), row.term, now_ms))
        state.home_term = row.term
        state.save()
    return state


def standing_of(state: ElectorState) -> ElectorStanding:
    """Return the state as the machine reads it."""
    values = {name: getattr(state, name) for name in ElectorStanding._fields}
    return ElectorStanding(**{**values, "voted": bytes(state.voted), "plan_payload": bytes(state.plan_payload)})


def standing_store(state: ElectorState, standing: ElectorStanding) -> None:
    """Store a changed state, before anything that follows from it is sent."""
    if standing != standing_of(state):
        _set(state, standing)
        state.used_ms = clock_ms()
        state.save()


def term_of(row: RendezvousPoint) -> int:
    """Return the highest term of the RP that this domain has met as an elector; 0 for none."""
    return ElectorState.objects.filter(rp=row.id).values_list("term", flat=True).first() or 0


def remembers(state: ElectorState, plan: SuccessionPlan) -> bool:
    """Return whether no promise by this plan can have been deleted before the state was made."""
    return plan.at_ms > state.since_ms - (ELECTOR_KEPT_S - CLOCKS_S) * 1000


def require_remembered(state: ElectorState, plan: SuccessionPlan) -> None:
    """Raise Conflict where promises by this plan may have been deleted."""
    if not remembers(state, plan):
        raise Conflict(
            "This domain ended its replica long ago and does not remember its votes by this succession plan. "
            "It votes by a plan that the home states from now on: herald rp succession"
        )


def elector_states_purge(*, now: datetime | None = None) -> int:
    """Delete promises about RPs that this domain no longer participates in, ELECTOR_KEPT_S after the last. Returns how many."""
    before_ms = int(((now or timezone.now()) - timedelta(seconds=ELECTOR_KEPT_S)).timestamp() * 1000)
    held = RendezvousPoint.objects.filter(id=OuterRef("rp"))
    rows = ElectorState.objects.filter(~Exists(held), used_ms__lt=before_ms, since_ms__lt=before_ms)
    found = list(rows.values_list("rp", flat=True)[:PURGE_BATCH])
    return ElectorState.objects.filter(rp__in=found, used_ms__lt=before_ms).delete()[0]


def consents_purge(*, now: datetime | None = None) -> int:
    """Delete consents that no home completes any more. Returns how many."""
    before = (now or timezone.now()) - timedelta(seconds=CONSENT_KEPT_S)
    rows = HomeConsent.objects.filter(until__lt=before).order_by("rp")
    return HomeConsent.objects.filter(rp__in=list(rows.values_list("rp", flat=True)[:PURGE_BATCH])).delete()[0]


def _set(state: ElectorState, standing: ElectorStanding) -> None:
    for name, value in standing._asdict().items():
        setattr(state, name, value)
