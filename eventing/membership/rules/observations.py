"""Observations of other domains' conduct, on their way from the processes that forward events to the one that scores it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from eventing.core.decoding import msgpack_reader
from eventing.overlay.scores import Deed, Noted, QueuesFull, VectorsShown

LINK = ""
"""The region of what concerns a link as a whole."""


class DeedObserved(msgspec.Struct, frozen=True, array_like=True, tag="deed"):
    """A domain did something, `count` times; `deed` is the name of a scores.Deed."""

    region: str
    peer: str
    deed: str
    count: int = 1


class VectorsObserved(msgspec.Struct, frozen=True, array_like=True, tag="vectors"):
    """Vectors of the links of a region: see scores.VectorsShown."""

    region: str
    ours: dict[str, int]
    theirs: dict[str, dict[str, int]]
    others: dict[str, dict[str, int]]


class QueuesObserved(msgspec.Struct, frozen=True, array_like=True, tag="queues"):
    """Domains that do not take what waits for them: see scores.QueuesFull."""

    full: tuple[tuple[str, str], ...]
    links: int


Observation = DeedObserved | VectorsObserved | QueuesObserved
_encode = msgspec.msgpack.Encoder().encode
_read = msgpack_reader(list[Observation])


def observations_bytes(observations: Sequence[Observation]) -> bytes:
    """Encode observations."""
    return _encode(observations)


def observations_read(data: bytes) -> list[Observation]:
    """Decode observations. Raises Undecodable."""
    return _read(data)


def input_of(observation: Observation) -> Any:
    """Return the input of the scores that an observation is. Raises KeyError for an unknown deed."""
    match observation:
        case DeedObserved():
            return Noted(observation.region, observation.peer, Deed[observation.deed], observation.count)
        case VectorsObserved():
            return VectorsShown(observation.region, observation.ours, observation.theirs, observation.others)
        case QueuesObserved():
            return QueuesFull(observation.full, observation.links)
