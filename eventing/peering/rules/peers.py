"""Peers: other domains as this one sees them. What each state means, and how acts and hellos lead from one to another. Pure.

The life of a peering: an administrator here adds the other domain, whose fingerprint they compared -> `proposed`; over
there it is `asked` until an administrator approves it, comparing fingerprints too -> `active` on both sides, from which
on events flow. Either side suspends and resumes it, or removes it, which the other learns; without any contact for LEASE_S
it lapses. Each side states in its hellos how it stands to the other (`Stance`). A hello says how things are, not what
changed: one that is lost or comes twice does no harm, the next one says the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from eventing.core.errors import Conflict

LEASE_S = 30 * 86_400  # an active peer that nothing was heard of for a month is gone; a holiday is shorter
ASKED_LEASE_S = 7 * 86_400  # who only asked is forgotten sooner: anybody may ask
PEERS_MAX = 1000  # that this domain added or approved; each costs a hello an hour and a place in every vector of links
ASKED_MAX = 100  # domains that wait for approval: strangers fill no more than this
NOTE_CHARS_MAX = 255
URL_CHARS_MAX = 255

EVENTS_PER_S = 20_000  # what a peer may send unless stated otherwise: ten times what one link is measured for
BYTES_PER_S = 32 * 1024 * 1024
REQUESTS_PER_S = 100
RATE_MAX = 2**31 - 1  # fits the column


class State(StrEnum):
    """How this domain stands to another one; whom it does not know has none."""

    PROPOSED = "proposed"  # added here, not approved there
    ASKED = "asked"  # added there, not approved here
    ACTIVE = "active"
    SUSPENDED = "suspended"  # by an administrator here


class Act(StrEnum):
    """What an administrator here does."""

    ADD = "add"
    APPROVE = "approve"
    SUSPEND = "suspend"
    RESUME = "resume"
    REMOVE = "remove"


class Stance(StrEnum):
    """What a domain's hello says: how it stands to the domain it speaks to."""

    PROPOSES = "proposes"
    APPROVES = "approves"
    SUSPENDS = "suspends"
    WAITS = "waits"  # an administrator there has yet to decide
    LEAVES = "leaves"  # it wants no peering (any more), or knows of none


NONE = None
"""The state of a domain that there is no row of."""

ACTS: Mapping[tuple[State | None, Act], State | None] = MappingProxyType(
    {
        (NONE, Act.ADD): State.PROPOSED,
        (State.PROPOSED, Act.ADD): State.PROPOSED,
        (State.ASKED, Act.ADD): State.ACTIVE,
        (State.ACTIVE, Act.ADD): State.ACTIVE,
        (State.ASKED, Act.APPROVE): State.ACTIVE,
        (State.ACTIVE, Act.APPROVE): State.ACTIVE,
        (State.PROPOSED, Act.SUSPEND): State.SUSPENDED,
        (State.ACTIVE, Act.SUSPEND): State.SUSPENDED,
        (State.SUSPENDED, Act.SUSPEND): State.SUSPENDED,
        (State.SUSPENDED, Act.RESUME): State.PROPOSED,  # and on at once by what was heard last, see `acted`
        (State.PROPOSED, Act.RESUME): State.PROPOSED,
        (State.ACTIVE, Act.RESUME): State.ACTIVE,
        (State.PROPOSED, Act.REMOVE): NONE,
        (State.ASKED, Act.REMOVE): NONE,
        (State.ACTIVE, Act.REMOVE): NONE,
        (State.SUSPENDED, Act.REMOVE): NONE,
    }
)
"""Where an administrator's act leads. What is not here is refused with REFUSALS."""

REFUSALS: Mapping[tuple[State | None, Act], str] = MappingProxyType(
    {
        (State.SUSPENDED, Act.ADD): "{name} is suspended here. Resume it, or remove it first.",
        (
            State.PROPOSED,
            Act.APPROVE,
        ): "Waiting for {name}: its administrator has to approve, nothing is left to do here.",
        (State.SUSPENDED, Act.APPROVE): "{name} is suspended here. Resume it instead.",
        (State.ASKED, Act.SUSPEND): "{name} only asks to be a peer. Approve or remove it.",
        (State.ASKED, Act.RESUME): "{name} asks to be a peer. Approve or remove it.",
    }
)

HEARD: Mapping[tuple[State | None, Stance], State | None] = MappingProxyType(
    {
        (NONE, Stance.PROPOSES): State.ASKED,
        (NONE, Stance.APPROVES): NONE,
        (NONE, Stance.SUSPENDS): NONE,
        (NONE, Stance.WAITS): NONE,
        (NONE, Stance.LEAVES): NONE,
        (State.PROPOSED, Stance.PROPOSES): State.ACTIVE,  # both have added each other
        (State.PROPOSED, Stance.APPROVES): State.ACTIVE,
        (State.PROPOSED, Stance.SUSPENDS): State.PROPOSED,
        (State.PROPOSED, Stance.WAITS): State.PROPOSED,
        (State.PROPOSED, Stance.LEAVES): State.PROPOSED,
        (State.ASKED, Stance.PROPOSES): State.ASKED,
        (State.ASKED, Stance.APPROVES): State.ASKED,
        (State.ASKED, Stance.SUSPENDS): State.ASKED,
        (State.ASKED, Stance.WAITS): State.ASKED,
        (State.ASKED, Stance.LEAVES): NONE,
        (State.ACTIVE, Stance.PROPOSES): State.ACTIVE,
        (State.ACTIVE, Stance.APPROVES): State.ACTIVE,
        (State.ACTIVE, Stance.SUSPENDS): State.ACTIVE,
        (State.ACTIVE, Stance.WAITS): State.PROPOSED,
        (State.ACTIVE, Stance.LEAVES): State.PROPOSED,
        (State.SUSPENDED, Stance.PROPOSES): State.SUSPENDED,
        (State.SUSPENDED, Stance.APPROVES): State.SUSPENDED,
        (State.SUSPENDED, Stance.SUSPENDS): State.SUSPENDED,
        (State.SUSPENDED, Stance.WAITS): State.SUSPENDED,
        (State.SUSPENDED, Stance.LEAVES): State.SUSPENDED,
    }
)
"""Where a hello leads; every one is defined, whatever another domain says."""

STANCES: Mapping[State | None, Stance] = MappingProxyType(
    {
        NONE: Stance.LEAVES,
        State.PROPOSED: Stance.PROPOSES,
        State.ASKED: Stance.WAITS,
        State.ACTIVE: Stance.APPROVES,
        State.SUSPENDED: Stance.SUSPENDS,
    }
)
"""What our hello, or our answer to one, says in a state."""


def acted(state: State | None, act: Act, theirs: Stance | None, name: str) -> State | None:
    """The state after an administrator's act.

    Args:
        theirs: the stance last heard of the other domain; None for none. Whom we resume while it stands by the peering
            is active at once.
        name: of the other domain, for the message.

    Raises Conflict when the act makes no sense in this state, saying what to do instead.
    """
    refusal = REFUSALS.get((state, act))
    if refusal is not None:
        raise Conflict(refusal.format(name=name), state=state)
    after = ACTS[(state, act)]
    if after is State.PROPOSED and state is State.SUSPENDED and theirs not in (None, Stance.WAITS, Stance.LEAVES):
        return State.ACTIVE
    return after


def heard(state: State | None, stance: Stance) -> State | None:
    """The state after a hello."""
    return HEARD[(state, stance)]


def greets(state: State, theirs: Stance | None) -> bool:
    """Whether we send hellos in this state by ourselves. Who declined is not asked again until an administrator does."""
    if state is State.PROPOSED:
        return theirs is not Stance.LEAVES
    return state in (State.ACTIVE, State.SUSPENDED)


def safety_number(one: str, other: str) -> str:
    """What the administrators of two domains read to each other to compare both fingerprints at once: 6 groups of 5 digits.

    Args:
        one, other: the two fingerprints, in any order.
    """
    digest = hashlib.sha256(b"herald peers\0" + "\0".join(sorted((one, other))).encode()).digest()
    number = str(int.from_bytes(digest[:16], "big") % 10**30).zfill(30)
    return " ".join(number[at : at + 5] for at in range(0, 30, 5))
