"""Writes of switches, bounds and the standing policy, by people."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.core.decoding import Undecodable, converted
from eventing.core.errors import InvalidRequest
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.principals import Principal
from eventing.operations.placement.models import PlacementBounds, StandingPolicy
from eventing.operations.placement.rules.invitations import InvitationPolicy, contradictions
from eventing.operations.placement.selectors.bounds import DOMAIN, standing_policy
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.rps.rules.statements import ADMISSIONS_MAX
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require_home

LIST_MAX = 64  # bound: domains pinned or excluded; the request is refused
HISTORIES_MAX = 9
MEMBERS = ("mode", "replicas_max", "histories", "pinned", "excluded")


def placement_bound(
    *, reference: str | None, principal: Principal, now: datetime | None = None, **members: Any
) -> PlacementBounds:
    """Change switch and bounds of an RP, or with None of the domain; members that are not stated stay. For operators.

    Raises Forbidden, NotFound, InvalidRequest: bounds that contradict each other.
    """
    require_operator(principal)
    rp = DOMAIN
    if reference is not None:
        row = rendezvous_point_get(reference)
        require_home(row)
        rp = row.id
    now = now or timezone.now()
    with change(now) as outbox:
        bounds = PlacementBounds.objects.select_for_update().filter(rp=rp).first()
        bounds = bounds or PlacementBounds(rp=rp, changed_at=now, changed_by=principal.identity)
        before = {name: getattr(bounds, name) for name in MEMBERS}
        for name in MEMBERS:
            if name in members:
                value = members[name]
                setattr(bounds, name, (value or "") if name == "mode" else value)
        _require_consistent(bounds)
        bounds.version += 1
        bounds.changed_at, bounds.changed_by = now, principal.identity
        bounds.save()
        data = {name: getattr(bounds, name) for name in MEMBERS}
        about = {"rp": rp or None, **data, "before": before, "by": principal.identity}
        outbox.event(events.PLACEMENT_BOUNDED, rp or "domain.admin", about, domain_too=bool(rp))
        outbox.act("placement.bound", principal, "rp" if rp else "domain", rp or "placement", before=before, **data)
    return bounds


def standing_policy_set(*, principal: Principal, policy: dict[str, Any], now: datetime | None = None) -> StandingPolicy:
    """Change the standing policy for invitations; members that are not stated stay. For operators.

    Raises Forbidden, InvalidRequest: a member that cannot be, or a policy that contradicts itself.
    """
    require_operator(principal)
    now = now or timezone.now()
    try:
        made = converted({**msgspec.to_builtins(standing_policy()), **policy}, InvitationPolicy)
    except Undecodable as error:
        raise InvalidRequest(f"The policy is not understood: {error}.") from None
    found = contradictions(made)
    if found:
        raise InvalidRequest("The policy contradicts itself: " + " ".join(found))
    with change(now) as outbox:
        row = StandingPolicy.objects.select_for_update().filter(id=1).first() or StandingPolicy(id=1, version=0)
        before = msgspec.to_builtins(standing_policy())
        row.policy, row.version = msgspec.to_builtins(made), row.version + 1
        row.changed_at, row.changed_by = now, principal.identity
        row.save()
        data = {"policy": row.policy, "before": before, "by": principal.identity}
        outbox.event(events.INVITATIONS_BOUNDED, "domain.admin", data)
        outbox.act("placement.invitations", principal, "domain", "placement", before=before, **row.policy)
    return row


def _require_consistent(bounds: PlacementBounds) -> None:
    for name in ("pinned", "excluded"):
        listed = getattr(bounds, name)
        if len(listed) > LIST_MAX:
            raise InvalidRequest(f"{name} has at most {LIST_MAX} domains.")
        invalid = [one for one in listed if not DOMAIN_PATTERN.fullmatch(one)]
        if invalid:
            raise InvalidRequest(f"{name} contains {invalid[0]!r}, which cannot be the name of a domain.")
    both = [name for name in bounds.pinned if name in bounds.excluded]
    if both:
        raise InvalidRequest(f"pinned and excluded both contain {', '.join(both)}.")
    most, histories = bounds.replicas_max, bounds.histories
    if most is not None and not 0 <= most <= ADMISSIONS_MAX:
        raise InvalidRequest(f"replicas_max must be between 0 and {ADMISSIONS_MAX}.")
    if histories is not None and not 1 <= histories <= HISTORIES_MAX:
        raise InvalidRequest(f"histories must be between 1 and {HISTORIES_MAX}.")
    if most is not None and histories is not None and histories > most + 1:
        raise InvalidRequest(f"histories is {histories}, but with replicas_max {most} there are at most {most + 1}.")
