"""Reads of RPs with a target reliability, and of who takes part in them."""

from __future__ import annotations

from datetime import datetime

from eventing.conf import config
from eventing.replication.selectors.forwarding import Participation, participations
from eventing.rps.models import RendezvousPoint
from eventing.sql.remembered import remembered

PLANNED_RPS_MAX = 200  # bound: RPs whose routes are planned; further ones go by the trees of their feeds alone


def targets() -> dict[str, float]:
    """Return the target reliability of each RP that has one; at most PLANNED_RPS_MAX."""
    return {**_targets()}


@remembered
def _targets() -> dict[str, float]:
    rows = RendezvousPoint.objects.exclude(reliability=None).order_by("id")
    return {rp: target or 0.0 for rp, target in rows.values_list("id", "reliability")[:PLANNED_RPS_MAX]}


def participants_now(who: Participation, now: datetime) -> tuple[str, ...]:
    """Return the domains that take part in an RP now, this one included, in order."""
    if not who.home:
        return ()
    return tuple(sorted({who.home, config().domain, *(one for one in who.admitted if who.takes_part(one, now))}))


def target_partners() -> list[str]:
    """Return the domains that this one has links with at RPs with a target, in order."""
    return sorted({peer for who in participations(targets()).values() for peer in who.links})


def target_participants(now: datetime) -> list[str]:
    """Return the other participants of RPs with a target, in order."""
    found = {one for who in participations(targets()).values() for one in participants_now(who, now)}
    return sorted(found - {config().domain})
