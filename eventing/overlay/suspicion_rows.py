"""The two gossip objects of suspicion: what monitors accuse, and what the accused answer.

A row of `accusations` lists the domains that its owner, a monitor, finds silent, each with the version of that domain's last rebuttal (0:
none). The version of a row of `rebuttals` alone shows that its owner was alive at that time. So a rebuttal voids all accusations before
it, and an accusation can neither name a rebuttal that the accused has not signed, nor count against a later one.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.overlay.gossip_object import GossipObject, Seconds
from eventing.overlay.machine import Id

ACCUSED_MAX = (
    4  # bound: domains that one monitor accuses at once; its row is refused (honest monitors accuse one at a time)
)

Accused = tuple[tuple[Id, Seconds], ...]


class AccusationList(msgspec.Struct, frozen=True, array_like=True):
    """Payload of a row: accused domains, each with the version of its last rebuttal."""

    accused: Annotated[Accused, msgspec.Meta(max_length=ACCUSED_MAX)]


_read = msgpack_reader(AccusationList)
_encode = msgspec.msgpack.Encoder().encode


class Accusations(GossipObject):
    """Domains that monitors find silent."""

    name = "accusations"
    share = 2
    payload_bytes_max = 1088
    refresh_s = 600.0
    change_s = 5.0
    bytes_per_s = 100.0
    urgent = True

    def valid(self, owner: Id, payload: bytes) -> bool:
        """Return True if a payload lists few domains."""
        return accused_of(payload) is not None


class Rebuttals(GossipObject):
    """Signs of life of domains that were accused."""

    name = "rebuttals"
    share = 2
    payload_bytes_max = 0
    refresh_s = 600.0
    change_s = 5.0
    bytes_per_s = 100.0
    urgent = True


def accused_of(payload: bytes) -> Accused | None:
    """Return the domains that a row accuses; None if the payload is none."""
    try:
        accused = _read(payload).accused
        return accused if all(isinstance(domain, str | int) for domain, _ in accused) else None
    except Undecodable:
        return None


def accusation_payload(accused: Accused) -> bytes:
    """Encode a row's payload."""
    return _encode(AccusationList(accused))
