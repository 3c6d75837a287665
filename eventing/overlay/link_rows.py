"""Gossip object of measured links: what each domain that takes part in an RP with a target reliability measures of its own links.

A row is the claim of one end about sending to the other. A plan takes the lower of both ends' claims, so that neither can raise a link
alone; each end can lower it, as it could by dropping what is sent. Numbers are whole and bounded when decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.overlay.gossip_object import GossipObject
from eventing.overlay.machine import Id

LINKS_STATED_MAX = 24  # bound: measured links of a row; those with the most trials are stated
PEER_CHARS_MAX = 253
PROBABILITY_MAX = 1_000_000
"""Of a stated probability, which is in millionths."""
MILLISECONDS_MAX = 600_000  # bound: milliseconds of a stated delay; the row is refused
TRIALS_MAX = 2**40
_Millionths = Annotated[int, msgspec.Meta(ge=0, le=PROBABILITY_MAX)]
_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=MILLISECONDS_MAX)]
_Trials = Annotated[int, msgspec.Meta(ge=0, le=TRIALS_MAX)]


class MeasuredLink(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One end's measurement of a link.

    Attributes:
        peer: the other end.
        lower: probability of a delivery in time, millionths: the bound below which it is with 5 %.
        delay_ms, jitter_ms: of a request.
        trials: that the estimate rests on, decayed.
    """

    peer: Annotated[str, msgspec.Meta(max_length=PEER_CHARS_MAX)]
    lower: _Millionths
    delay_ms: _Milliseconds = 0
    jitter_ms: _Milliseconds = 0
    trials: _Trials = 0

    @property
    def probability(self) -> float:
        """The lower bound as a share."""
        return self.lower / PROBABILITY_MAX


_read = msgpack_reader(list[MeasuredLink])
_encode = msgspec.msgpack.Encoder().encode


class LinkMeasurements(GossipObject):
    """Measured links of the domains that take part in an RP with a target reliability."""

    name = "links"
    payload_bytes_max = 1024
    rows_max = 1024
    refresh_s = 600.0
    change_s = 15.0
    bytes_per_s = 100.0

    def valid(self, owner: Id, payload: bytes) -> bool:
        """Return True if a payload is measured links to others, each once."""
        links = links_of(payload)
        peers = [] if links is None else [link.peer for link in links]
        return links is not None and owner not in peers and len(dict.fromkeys(peers)) == len(peers)


def links_of(payload: bytes) -> list[MeasuredLink] | None:
    """Decode measured links; None if they are none."""
    try:
        links = _read(payload)
    except Undecodable:
        return None
    return links if len(links) <= LINKS_STATED_MAX else None


def links_payload(links: Iterable[MeasuredLink]) -> bytes:
    """Encode as many measured links as fit a row, those with the most trials first, in the order of their peers."""
    kept: list[MeasuredLink] = []
    for link in sorted(links, key=lambda one: (-one.trials, one.peer))[:LINKS_STATED_MAX]:
        wider = sorted([*kept, link], key=lambda one: one.peer)
        if len(_encode(wider)) <= LinkMeasurements.payload_bytes_max:
            kept = wider
    return _encode(kept)
