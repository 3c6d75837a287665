"""Messages and observations of simulated placement. There is one famous RP, of domain 0."""

from __future__ import annotations

import msgspec

from eventing.overlay.load_rows import DomainLoad

FAMOUS = "famous"
"""Name of the famous RP."""


class Invited(msgspec.Struct, frozen=True, gc=False):
    """Invitation of a volunteer.

    Attributes:
        rp: of the inviting domain.
    """

    rp: str


class InvitationReply(msgspec.Struct, frozen=True, gc=False):
    """Answer to an invitation: a refusal's code; empty: accepted."""

    reason: str


class Published(msgspec.Struct, frozen=True, gc=False):
    """Events of the home up to a sequence."""

    sequence: int


class VectorStated(msgspec.Struct, frozen=True, gc=False):
    """The sequence up to which a replica states that it has all events."""

    sequence: int


class CaughtUp(msgspec.Struct, frozen=True, gc=False):
    """The vector of a replica has reached the home's at the invitation."""


class Released(msgspec.Struct, frozen=True, gc=False):
    """The home ends a replica."""


class Probed(msgspec.Struct, frozen=True, gc=False):
    """A probe for the round-trip time."""

    sent_at: float


class ProbeReply(msgspec.Struct, frozen=True, gc=False):
    """Answer to a probe."""

    sent_at: float


class LoadStated(msgspec.Struct, frozen=True, gc=False):
    """The load that a volunteer states, as by gossip."""

    load: DomainLoad


class StateLoad(msgspec.Struct, frozen=True, gc=False):
    """Timer of a volunteer: state the load."""


class CatchUp(msgspec.Struct, frozen=True, gc=False):
    """Timer of a volunteer: the replica has all events."""


class Desert(msgspec.Struct, frozen=True, gc=False):
    """Timer of a deserter: stop serving."""


class InviteMore(msgspec.Struct, frozen=True, gc=False):
    """Timer of a domain that sends a storm of invitations."""


class HomeLoad(msgspec.Struct, frozen=True, gc=False):
    """Input of the home: its readers now, and its pressure."""

    units: float
    pressure: float


class ServedLoad(msgspec.Struct, frozen=True, gc=False):
    """Input of a volunteer: its readers now."""

    sessions: int


class ReplicaServes(msgspec.Struct, frozen=True, gc=False):
    """Observation at the home: a replica counts, and readers may move to it."""

    domain: int


class ReplicaEnded(msgspec.Struct, frozen=True, gc=False):
    """Observation at the home: readers leave a domain."""

    domain: int


class PlacementChanged(msgspec.Struct, frozen=True, gc=False):
    """Observation at the home: a step was begun."""

    reason: str
    adds: int
    retires: int


class PlacementShort(msgspec.Struct, frozen=True, gc=False):
    """Observation at the home: a wanted placement cannot be reached."""

    why: str


class InvitationRefusedHere(msgspec.Struct, frozen=True, gc=False):
    """Observation at the home: a volunteer refused, did not answer, or did not serve."""

    domain: int
    reason: str
