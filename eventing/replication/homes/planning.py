"""Succession plans, at the home: which participants elect a successor of a silent home, and after which silence.

The life of a change: the administrator or creator states the electors -> the home signs the new version -> the majority of the present
electors endorses it, if there are any -> the home keeps and sends it with its other statements. Electors that lent their votes in a
later term endorse nothing in this one: the home has itself confirmed in a higher term first (homes/renewing.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Conflict, InvalidRequest
from eventing.core.principals import Principal
from eventing.replication.homes.messages import PLAN
from eventing.replication.homes.renewing import term_renew
from eventing.replication.homes.votes import majority_require, votes_ask
from eventing.replication.models import ReplicaAdmission
from eventing.replication.selectors.replicas import admissions_of
from eventing.replication.services.succession_plans import plan_keep, plan_propose
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    PLANS_MAX,
    SILENCE_S_MIN,
    Cosigned,
    DomainSignature,
    Elector,
    SuccessionPlan,
    digest,
    plan_in_force,
    plan_payload,
    plan_read,
)
from eventing.rps.rules.statements import BadStatement, admission_read, unpacked
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require, require_home


def succession_plan_set(
    *, reference: str, electors: Sequence[str], silence_s: int, principal: Principal
) -> RendezvousPoint:
    """Set an RP's succession plan, at its home. Returns the RP.

    Args:
        electors: participants, in the order in which they succeed; none: succession is off.
        silence_s: seconds of silence of the home after which they elect one of them.

    Raises Forbidden, Conflict (no participant, no majority of the present electors), InvalidRequest.
    """
    row = rendezvous_point_get(reference)
    require(descriptor_of(row), principal, "administer")
    require_home(row)
    if row.descriptor is None:
        raise Conflict(f"The rendezvous point {row.id} was created before there were replicas. Create a new one.")
    chosen = _electors(row, electors)
    before = plan_in_force(row.home_record)
    met = _change(row, chosen, silence_s, principal)
    if met is not None and before is not None:
        term_renew(row, before, met, principal)
        row = rendezvous_point_get(row.id)
        met = _change(row, chosen, silence_s, principal)
    if met is not None and before is not None:
        raise Conflict("The electors vote for another home at the moment. Try again.")
    return rendezvous_point_get(row.id)


def _change(row: RendezvousPoint, electors: tuple[Elector, ...], silence_s: int, principal: Principal) -> int | None:
    """Put the next version of the plan in force. Returns None; or a term that electors met, if they endorse nothing in that of the home.

    Raises Conflict without the majority, InvalidRequest.
    """
    record, own = row.home_record, config().domain
    if len(record.plans) >= PLANS_MAX:
        raise Conflict(f"The plan has changed {PLANS_MAX} times, which is the most. Create a new rendezvous point.")
    plan = SuccessionPlan(
        row.id,
        len(record.plans) + 1,
        row.home_term.term,
        own,
        electors,
        silence_s if electors else SILENCE_S_MIN,
        digest(record.plans[-1].payload) if record.plans else "",
        int(timezone.now().timestamp() * 1000),
    )
    try:
        plan_read(plan_payload(plan))
    except BadStatement as error:
        raise InvalidRequest(str(error)) from None
    proposed = plan_propose(row, plan)
    if proposed is None:
        return plan.term
    payload, ours = proposed
    before = plan_in_force(record)
    endorsed: list[DomainSignature] = []
    if before is not None:
        votes = votes_ask(row.id, PLAN, payload, before, ours)
        endorsed = votes.given
        agreed = len(endorsed) + before.elects(own)
        if agreed < before.quorum and votes.term > plan.term:
            return votes.term
        majority_require(before, agreed)
    plan_keep(row, Cosigned(payload, [ours, *endorsed]), principal=principal)
    return None


def _electors(row: RendezvousPoint, names: Sequence[str]) -> tuple[Elector, ...]:
    """Return these participants with their first keys. Raises Conflict."""
    admitted = {one.domain: one for one in admissions_of(row.id) if _admitted(one)}
    missing = [name for name in names if name not in admitted]
    if missing:
        raise Conflict(f"{missing[0]} holds no replica of {row.id}. Electors are participants other than the home.")
    return tuple(Elector(name, admission_read(unpacked(admitted[name].statement)).fingerprint) for name in names)


def _admitted(one: ReplicaAdmission) -> bool:
    return not one.revoked and one.expires_at > timezone.now()
