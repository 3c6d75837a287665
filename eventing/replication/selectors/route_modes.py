"""Reads of the switches of the planner of routes."""

from __future__ import annotations

from collections.abc import Mapping

from eventing.conf import config
from eventing.core.modes import mode_in_force
from eventing.replication.models import RoutesSwitch

DOMAIN = ""
"""The `rp` of the domain's own switch."""


def routes_switches() -> dict[str, RoutesSwitch]:
    """Return all switches that were set, by RP."""
    return {row.rp: row for row in RoutesSwitch.objects.order_by("rp")}


def routes_mode(rp: str, switches: Mapping[str, RoutesSwitch]) -> str:
    """Return the mode in force for an RP, or with DOMAIN for the domain, by the switches that were set."""
    of_domain, of_rp = switches.get(DOMAIN), switches.get(rp) if rp else None
    return mode_in_force(
        config().routes,
        of_domain.mode if of_domain is not None else "",
        of_rp.mode if of_rp is not None else "",
    )
