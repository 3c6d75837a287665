"""Members of the states that other subjects read for snapshots.

part_add(DOMAIN, "alarms", lambda rp: alarms_in_force(None))        # from ready() of the subject's app
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Part = Callable[[str | None], Mapping[str, Any]]
"""Reads a member of a state: of the RP with this id, or with None of the domain."""

_parts: dict[str, dict[str, Part]] = {"domain": {}, "rp": {}}


def part_add(which: str, name: str, part: Part) -> None:
    """Have snapshots of the domain or of RPs (eventing/outbox/kind.py: DOMAIN, RP) read a member of catalogue.EMPTY by
    `part`.
    """
    _parts[which][name] = part


def parts(which: str) -> Mapping[str, Part]:
    """Return the registered parts."""
    return _parts[which]
