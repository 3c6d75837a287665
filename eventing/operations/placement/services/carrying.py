"""Carrying out of decisions: each invitation and each release in its turn, with its outcome recorded at once.

A task claims a decision for CLAIM_S, and carries it out for each domain that has no outcome yet. A task that is killed
leaves a claim that expires: the next task continues with the domains that have none. Both effects may happen twice: a
domain that has joined already accepts another invitation as a matter of course, one that has left is not asked again.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from eventing.core.errors import ApplicationError, Conflict, NotFound, Unavailable
from eventing.operations.placement.models import WHY_CHARS_MAX, PlacedReplicaRow, PlacementDecision
from eventing.operations.placement.rules.decisions import (
    ABANDON_S,
    ABANDONED,
    APPROVED,
    CLAIM_S,
    DONE,
    FAILED,
    WORKING,
)
from eventing.operations.placement.rules.steps import FAILING, PlacementStep
from eventing.operations.placement.selectors.own_state import own_state
from eventing.operations.placement.services.decisions import decision_changed, decision_move
from eventing.operations.placement.services.planning import planner_told
from eventing.outbox.services import change
from eventing.replication.joining.client import home_invite, home_release
from eventing.replication.joining.presenters import own_vector
from eventing.replication.models import ReplicaAdmission
from eventing.replication.services.replica_admissions import admission_withdraw
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.rendezvous_points import rp_live
from eventing.sql.remembered import remembered

WORK_S = 40.0
"""Seconds after which a task takes no further domain: it must end before its time limit."""
log = logging.getLogger(__name__)


def placement_carry_out(*, now: datetime | None = None) -> int:
    """Carry out what was approved, the oldest first. Returns how many decisions ended. Raises redis.RedisError."""
    until, ended = time.monotonic() + WORK_S, 0
    while time.monotonic() < until:
        row = _claim(now or timezone.now())
        if row is None:
            break
        ended += _carry_out(row, until)
        if now is not None or row.state == WORKING:
            break
    return ended


def _claim(now: datetime) -> PlacementDecision | None:
    """Take the oldest decision that is due; those that are too old are abandoned."""
    due = Q(state=APPROVED) | Q(state=WORKING, claimed_until__lte=now)
    # Mostly so, and much cheaper than a transaction.
    if not _is_any_open() or not PlacementDecision.objects.filter(due).exists():
        return None
    with change(now) as outbox:
        rows = PlacementDecision.objects.select_for_update().order_by("id")
        for row in rows.filter(due)[:20]:
            if row.changed_at <= now - timedelta(seconds=ABANDON_S):
                row.claimed_until = None
                decision_move(row, ABANDONED, outbox, detail="It was not carried out in time; its numbers are old.")
                continue
            if row.state == APPROVED:
                planner_told(begun=_step(row), now=now)
            row.claimed_until = now + timedelta(seconds=CLAIM_S)
            decision_move(row, WORKING, outbox)
            return row
    return None


@remembered
def _is_any_open() -> bool:
    return PlacementDecision.objects.filter(state__in=(APPROVED, WORKING)).exists()


def _carry_out(row: PlacementDecision, until: float) -> int:
    """Do what is left of a decision. Returns 1 if it ended, 0 if time ran out."""
    home = rp_live(row.rp)
    for name, releases in [*((name, False) for name in row.adds), *((name, True) for name in row.retires)]:
        if name in row.progress:
            continue
        if time.monotonic() >= until:
            return 0
        try:
            if home is None or home.home:
                raise NotFound(f"{row.rp} is no rendezvous point of this domain any more.")
            if releases:
                _release(home, name, failing=row.reason == FAILING)
            else:
                _invite(home, name, row.id)
        except ApplicationError as error:
            _outcome(row, name, "failed", error.detail, backs_off=True)
        else:
            _outcome(row, name, "done", "", backs_off=False)
    with change(timezone.now()) as outbox:
        done = [one for one in row.progress.values() if one["state"] == "done"]
        failed = [one["detail"] for one in row.progress.values() if one["state"] == "failed"]
        row.claimed_until = None
        decision_move(row, DONE if done or not row.progress else FAILED, outbox, detail=failed[0] if failed else "")
    return 1


def _invite(home: RendezvousPoint, domain: str, decision: int) -> None:
    """Invite a domain; the replica is recorded before, with the vector that it must reach. Raises ApplicationError."""
    now = timezone.now()
    vector = own_vector(home.id)
    PlacedReplicaRow.objects.update_or_create(
        rp=home.id,
        domain=domain,
        defaults={"decision": decision, "vector": vector, "invited_at": now, "counted_at": None, "marked_at": None},
    )
    try:
        rate = own_state().events_in_per_s.get(home.id, 0.0)
        home_invite(home, domain, events_per_s=round(rate, 3))
    except ApplicationError:
        if not _admitted(home, domain):
            PlacedReplicaRow.objects.filter(rp=home.id, domain=domain).delete()
        raise


def _release(home: RendezvousPoint, domain: str, *, failing: bool) -> None:
    """Have a domain end its replica; the admission of one that fails and cannot be reached is withdrawn. A replica that is used
    stays, and is not the planner's any more. Raises ApplicationError.
    """
    placed = PlacedReplicaRow.objects.filter(rp=home.id, domain=domain)
    try:
        if _admitted(home, domain):
            home_release(home, domain)
    except Conflict:
        placed.delete()
        raise
    except Unavailable:
        if not failing:
            raise
        admission_withdraw(rp=home.id, domain=domain)
    placed.delete()


def _step(row: PlacementDecision) -> PlacementStep:
    return PlacementStep(
        rp=row.rp, adds=tuple(row.adds), retires=tuple(row.retires), reason=row.reason, why=row.why, inputs=row.inputs
    )


def _admitted(home: RendezvousPoint, domain: str) -> bool:
    now = timezone.now()
    return ReplicaAdmission.objects.filter(rp=home, domain=domain, revoked=False, expires_at__gt=now).exists()


def _outcome(row: PlacementDecision, domain: str, state: str, detail: str, *, backs_off: bool) -> None:
    now = timezone.now()
    with change(now) as outbox:
        row.progress = {**row.progress, domain: {"state": state, "detail": detail[:WHY_CHARS_MAX]}}
        row.changed_at, row.claimed_until = now, now + timedelta(seconds=CLAIM_S)
        row.save(update_fields=["progress", "changed_at", "claimed_until"])
        decision_changed(row, outbox)
        if backs_off:
            planner_told(refused=[domain], now=now)
    if state == "failed":
        log.info("placement: %s of %s: %s", domain, row.rp, detail)
