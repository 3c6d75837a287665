"""What the log answers about feeds, seals and runs: see federated.py."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple


class Head(NamedTuple):
    """How far a log and its feeds are.

    Attributes:
        epoch: the log's, and of the own feed.
        first: oldest offset held; `next` when none is.
        next: the offset that the next event will get.
        own: last sequence of the own feed.
        foreign: last sequence held of each other feed.
        sealed: last own sequence that a seal covers.
        tip: of the newest own seal (core/seals/heads.py); empty for none.
        tips: of the newest seal of each other feed, where it is known.
    """

    epoch: str
    first: int
    next: int
    own: int
    foreign: dict[str, int]
    sealed: int
    tip: bytes = b""
    tips: Mapping[str, bytes] = MappingProxyType({})


class Unsealed(NamedTuple):
    """Own events that no seal covers yet.

    Attributes:
        first: the first sequence that is not sealed.
        last: the sequence of the last of `events`; less than `first` when everything is sealed.
        events: the events `lost` to `last`.
        o, z: offsets of the first and the last of `events`; 0 without events.
        lost: sequences `first` to `lost - 1` left the history before they were sealed; `first` when none did.
        epoch: the log's.
    """

    first: int
    last: int
    events: list[bytes]
    o: int
    z: int
    lost: int
    epoch: str


class StoredRun(NamedTuple):
    """A sealed run as this log can give it on.

    Attributes:
        feed_key: whose run.
        first, last: the sequences that the seal covers.
        seal: the seal as it was kept.
        leaves: the leaf hashes of the run's first events, which are not held (any more).
        events: the others.
        path: the domains that it came through, the origin first; empty for an own run.
    """

    feed_key: str
    first: int
    last: int
    seal: bytes
    leaves: bytes
    events: list[bytes]
    path: tuple[str, ...]


class StoredSeal(NamedTuple):
    """A seal as it is kept: sequences it covers, leaf hashes of all its events, offsets of those that came here."""

    feed_key: str
    first: int
    last: int
    seal: bytes
    leaves: bytes
    path: tuple[str, ...]
    o: int
    z: int


class Received(NamedTuple):
    """What became of a run.

    Attributes:
        kind: `new`: the feed is held up to `held` now, which was not so before. `known`: it already was. `hole`: events
            before the run are lacking here. `full`: the RP has FEEDS_MAX feeds, or
            ORIGIN_FEEDS_MAX of this origin.
        held: last sequence held of the feed.
        offset: of the first event appended; 0 if none was.
        appended: how many were.
    """

    kind: Literal["new", "known", "hole", "full"]
    held: int
    offset: int
    appended: int


class Place(NamedTuple):
    """An event of the log: its feed (OWN: this log's), its sequence there, its bytes."""

    feed_key: str
    sequence: int
    body: bytes
