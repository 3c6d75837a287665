"""Members of the states that other modules know: each says here how a snapshot reads it.

part_add(DOMAIN, "alarms", lambda rp: alarms_in_force(None))        # from the ready() of whoever knows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Part = Callable[[str | None], Mapping[str, Any]]
"""Reads a member of a state: of the RP with this id, or with None of the domain."""

_parts: dict[str, dict[str, Part]] = {"domain": {}, "rp": {}}


def part_add(which: str, name: str, part: Part) -> None:
    """Have snapshots of the domain or of RPs (eventing/outbox/kind.py: DOMAIN, RP) read a member of catalogue.EMPTY by `part`."""
    _parts[which][name] = part


def parts(which: str) -> Mapping[str, Part]:
    """What was added."""
    return _parts[which]
