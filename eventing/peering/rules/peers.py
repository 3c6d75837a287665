"""Peers: the states of another domain as this one sees it, and their transitions by acts and hellos. Pure.

The life of a peering: an administrator here adds the other domain after comparing its fingerprint -> `proposed`; at the
other domain it is `asked` until an administrator there compares fingerprints and approves -> `active` on both sides,
and events are exchanged. Either side suspends and resumes the peering, or removes it, which the other side learns;
without any contact for LEASE_S it expires. Each side states its stance towards the other (`Stance`) in its hellos. A
hello carries the present state and not a change, so a lost or repeated hello does no harm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from eventing.core.errors import Conflict

LEASE_S = 30 * 86_400  # an active peer without contact for a month is removed; a holiday is shorter
ASKED_LEASE_S = 7 * 86_400  # a domain that only asks is removed sooner: anybody may ask
# Each costs a hello an hour and a place in every vector of links.
PEERS_MAX = 1000  # bound: peers; the next peer is refused
# bound: domains that ask to be peers; further ones are refused until some are decided on or have lapsed
ASKED_MAX = 100
NOTE_CHARS_MAX = 255
URL_CHARS_MAX = 255

EVENTS_PER_S = 20_000  # what a peer may send unless stated otherwise: ten times what one link is measured for
BYTES_PER_S = 32 * 1024 * 1024
REQUESTS_PER_S = 100
RATE_MAX = 2**31 - 1  # fits the column


class PeeringState(StrEnum):
    """State of another domain at this one; an unknown domain has none."""

    PROPOSED = "proposed"  # added here, not approved there
    ASKED = "asked"  # added there, not approved here
    ACTIVE = "active"
    SUSPENDED = "suspended"  # by an administrator here


class PeeringAction(StrEnum):
    """Action of an administrator here."""

    ADD = "add"
    APPROVE = "approve"
    SUSPEND = "suspend"
    RESUME = "resume"
    REMOVE = "remove"


class Stance(StrEnum):
    """Stance of a domain, in its hello, towards the receiver."""

    PROPOSES = "proposes"
    APPROVES = "approves"
    SUSPENDS = "suspends"
    WAITS = "waits"  # an administrator there has yet to decide
    LEAVES = "leaves"  # it ended or declined the peering, or has none


NONE = None
"""The state of a domain without a row."""

ACTS: Mapping[tuple[PeeringState | None, PeeringAction], PeeringState | None] = MappingProxyType(
    {
        (NONE, PeeringAction.ADD): PeeringState.PROPOSED,
        (PeeringState.PROPOSED, PeeringAction.ADD): PeeringState.PROPOSED,
        (PeeringState.ASKED, PeeringAction.ADD): PeeringState.ACTIVE,
        (PeeringState.ACTIVE, PeeringAction.ADD): PeeringState.ACTIVE,
        (PeeringState.ASKED, PeeringAction.APPROVE): PeeringState.ACTIVE,
        (PeeringState.ACTIVE, PeeringAction.APPROVE): PeeringState.ACTIVE,
        (PeeringState.PROPOSED, PeeringAction.SUSPEND): PeeringState.SUSPENDED,
        (PeeringState.ACTIVE, PeeringAction.SUSPEND): PeeringState.SUSPENDED,
        (PeeringState.SUSPENDED, PeeringAction.SUSPEND): PeeringState.SUSPENDED,
        (
            PeeringState.SUSPENDED,
            PeeringAction.RESUME,
        ): PeeringState.PROPOSED,  # and at once on to ACTIVE if the last stance allows it, see `on_action`
        (PeeringState.PROPOSED, PeeringAction.RESUME): PeeringState.PROPOSED,
        (PeeringState.ACTIVE, PeeringAction.RESUME): PeeringState.ACTIVE,
        (PeeringState.PROPOSED, PeeringAction.REMOVE): NONE,
        (PeeringState.ASKED, PeeringAction.REMOVE): NONE,
        (PeeringState.ACTIVE, PeeringAction.REMOVE): NONE,
        (PeeringState.SUSPENDED, PeeringAction.REMOVE): NONE,
    }
)
"""State after an administrator's act. An act without an entry is refused with REFUSALS."""

REFUSALS: Mapping[tuple[PeeringState | None, PeeringAction], str] = MappingProxyType(
    {
        (PeeringState.SUSPENDED, PeeringAction.ADD): "{name} is suspended here. Resume it, or remove it first.",
        (
            PeeringState.PROPOSED,
            PeeringAction.APPROVE,
        ): "{name} is proposed already: its administrator has to approve; nothing is left to do here.",
        (PeeringState.SUSPENDED, PeeringAction.APPROVE): "{name} is suspended here. Resume it instead.",
        (
            PeeringState.ASKED,
            PeeringAction.SUSPEND,
        ): "{name} asks to be a peer and is not one yet. Approve or remove it.",
        (PeeringState.ASKED, PeeringAction.RESUME): "{name} asks to be a peer. Approve or remove it.",
    }
)

HELLOS: Mapping[tuple[PeeringState | None, Stance], PeeringState | None] = MappingProxyType(
    {
        (NONE, Stance.PROPOSES): PeeringState.ASKED,
        (NONE, Stance.APPROVES): NONE,
        (NONE, Stance.SUSPENDS): NONE,
        (NONE, Stance.WAITS): NONE,
        (NONE, Stance.LEAVES): NONE,
        (PeeringState.PROPOSED, Stance.PROPOSES): PeeringState.ACTIVE,  # both have added each other
        (PeeringState.PROPOSED, Stance.APPROVES): PeeringState.ACTIVE,
        (PeeringState.PROPOSED, Stance.SUSPENDS): PeeringState.PROPOSED,
        (PeeringState.PROPOSED, Stance.WAITS): PeeringState.PROPOSED,
        (PeeringState.PROPOSED, Stance.LEAVES): PeeringState.PROPOSED,
        (PeeringState.ASKED, Stance.PROPOSES): PeeringState.ASKED,
        (PeeringState.ASKED, Stance.APPROVES): PeeringState.ASKED,
        (PeeringState.ASKED, Stance.SUSPENDS): PeeringState.ASKED,
        (PeeringState.ASKED, Stance.WAITS): PeeringState.ASKED,
        (PeeringState.ASKED, Stance.LEAVES): NONE,
        (PeeringState.ACTIVE, Stance.PROPOSES): PeeringState.ACTIVE,
        (PeeringState.ACTIVE, Stance.APPROVES): PeeringState.ACTIVE,
        (PeeringState.ACTIVE, Stance.SUSPENDS): PeeringState.ACTIVE,
        (PeeringState.ACTIVE, Stance.WAITS): PeeringState.PROPOSED,
        (PeeringState.ACTIVE, Stance.LEAVES): PeeringState.PROPOSED,
        (PeeringState.SUSPENDED, Stance.PROPOSES): PeeringState.SUSPENDED,
        (PeeringState.SUSPENDED, Stance.APPROVES): PeeringState.SUSPENDED,
        (PeeringState.SUSPENDED, Stance.SUSPENDS): PeeringState.SUSPENDED,
        (PeeringState.SUSPENDED, Stance.WAITS): PeeringState.SUSPENDED,
        (PeeringState.SUSPENDED, Stance.LEAVES): PeeringState.SUSPENDED,
    }
)
"""State after a hello; defined for every state and stance."""

STANCES: Mapping[PeeringState | None, Stance] = MappingProxyType(
    {
        NONE: Stance.LEAVES,
        PeeringState.PROPOSED: Stance.PROPOSES,
        PeeringState.ASKED: Stance.WAITS,
        PeeringState.ACTIVE: Stance.APPROVES,
        PeeringState.SUSPENDED: Stance.SUSPENDS,
    }
)
"""Stance stated in hellos, and in answers to hellos, for each state."""


def on_action(state: PeeringState | None, act: PeeringAction, theirs: Stance | None, name: str) -> PeeringState | None:
    """Return the state after an administrator's act.

    Args:
        theirs: the other domain's last stance; None for none. A resumed peer that still approves is active at once.
        name: of the other domain, for the message.

    Raises Conflict, with advice, when the act is not possible in this state.
    """
    refusal = REFUSALS.get((state, act))
    if refusal is not None:
        raise Conflict(refusal.format(name=name), state=state)
    after = ACTS[(state, act)]
    if (
        after is PeeringState.PROPOSED
        and state is PeeringState.SUSPENDED
        and theirs not in (None, Stance.WAITS, Stance.LEAVES)
    ):
        return PeeringState.ACTIVE
    return after


def on_hello(state: PeeringState | None, stance: Stance) -> PeeringState | None:
    """Return the state after a hello."""
    return HELLOS[(state, stance)]


def greets(state: PeeringState, theirs: Stance | None) -> bool:
    """Return whether this state sends hellos by itself. A domain that declined is not asked again until an
    administrator does.
    """
    if state is PeeringState.PROPOSED:
        return theirs is not Stance.LEAVES
    return state in (PeeringState.ACTIVE, PeeringState.SUSPENDED)


def safety_number(one: str, other: str) -> str:
    """Return the number by which administrators compare both fingerprints at once: 6 groups of 5 digits.

    Args:
        one, other: the two fingerprints, in any order.
    """
    digest = hashlib.sha256(b"herald peers\0" + "\0".join(sorted((one, other))).encode()).digest()
    number = str(int.from_bytes(digest[:16], "big") % 10**30).zfill(30)
    return " ".join(number[at : at + 5] for at in range(0, 30, 5))
