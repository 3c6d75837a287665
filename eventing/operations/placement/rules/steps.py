"""Outputs of the planner: steps to decide on, delays to measure, targets that cannot be reached. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

LOAD, READERS, HISTORIES, FAILING, IDLE = "load", "readers", "histories", "failing", "idle"
REASONS = (LOAD, READERS, HISTORIES, FAILING, IDLE)

Inputs = Mapping[str, float | str]


class PlacementStep(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the placement of an RP: replicas to add and to retire.

    Attributes:
        reason: of REASONS.
        why: one sentence for people.
        inputs: the numbers that it rests on.
    """

    rp: str
    adds: tuple[str, ...] = ()
    retires: tuple[str, ...] = ()
    reason: str
    why: str
    inputs: Inputs


class DelaysWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Domains whose round-trip time must be measured before one of them is chosen."""

    domains: tuple[str, ...]


class PlacementShortfall(msgspec.Struct, frozen=True, kw_only=True):
    """A wanted placement that cannot be reached.

    Attributes:
        about: of "load", "histories".
        wanted, reachable: units of capacity, or histories.
        why: what limits it, one sentence.
    """

    rp: str
    about: str
    wanted: float
    reachable: float
    why: str


PlacementOutput = PlacementStep | DelaysWanted | PlacementShortfall
