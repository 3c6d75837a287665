"""Ports of placement (core/ports.py)."""

from __future__ import annotations

from collections.abc import Mapping

from eventing.core.ports import Port


@Port
def placement_advice() -> Mapping[str, list[str]]:
    """Return the domains at which the newest placement report recommends a replica, the greatest saving first, by RP."""
    return {}
