"""Reads of switches and bounds: of an RP, of the domain, the standing policy, and the mode in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from eventing.conf import config
from eventing.core.decoding import Undecodable, converted
from eventing.core.modes import mode_in_force
from eventing.operations.placement.models import PlacementBounds, StandingPolicy
from eventing.operations.placement.rules.invitations import InvitationPolicy
from eventing.sql.remembered import remembered

REPLICAS_MAX = 16
"""Most replicas of an RP at other domains, unless its bounds, or the domain's, state another number."""
DOMAIN = ""
"""The `rp` of the domain's own row."""


class BoundsInForce(NamedTuple):
    """Switch and bounds of one RP, with the domain's and the defaults filled in."""

    mode: str
    replicas_max: int
    histories: int
    pinned: tuple[str, ...]
    excluded: tuple[str, ...]


def bounds_row(rp: str) -> PlacementBounds | None:
    """Return the row of an RP, or of the domain (DOMAIN); None if nothing was set."""
    return PlacementBounds.objects.filter(rp=rp).first()


@remembered
def bounds_all() -> dict[str, PlacementBounds]:
    """Return all rows that were set, by RP."""
    return {row.rp: row for row in PlacementBounds.objects.order_by("rp")}


def bounds_in_force(rp: str, rows: Mapping[str, PlacementBounds]) -> BoundsInForce:
    """Return what holds for an RP, by the rows that were set."""
    own, domain = rows.get(rp), rows.get(DOMAIN)

    def first(name: str, default: int) -> int:
        values = [getattr(row, name) for row in (own, domain) if row is not None]
        return next((int(value) for value in values if value is not None), default)

    of_domain = domain.mode if domain is not None else ""
    of_rp = own.mode if own is not None else ""
    return BoundsInForce(
        mode=mode_in_force(config().placement, of_domain, of_rp if own is not domain else ""),
        replicas_max=first("replicas_max", REPLICAS_MAX),
        histories=first("histories", 1),
        pinned=tuple(own.pinned) if own is not None else (),
        excluded=tuple(dict.fromkeys([*(own.excluded if own else ()), *(domain.excluded if domain else ())])),
    )


def domain_mode(rows: Mapping[str, PlacementBounds] | None = None) -> str:
    """Return the mode of the domain.

    Args:
        rows: all that were set; None: they are read.
    """
    row = bounds_row(DOMAIN) if rows is None else rows.get(DOMAIN)
    return mode_in_force(config().placement, row.mode if row is not None else "", "")


def standing_row() -> StandingPolicy | None:
    """Return the stored policy for invitations; None: the default holds."""
    return StandingPolicy.objects.first()


def standing_policy() -> InvitationPolicy:
    """Return the policy for invitations in force. One that another version of the software stored admits nobody."""
    row = standing_row()
    if row is None:
        return InvitationPolicy()
    try:
        return converted(row.policy, InvitationPolicy)
    except Undecodable:
        return InvitationPolicy(whom="nobody")
