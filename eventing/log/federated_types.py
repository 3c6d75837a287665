"""Answers of the log about feeds, seals and runs: see federated.py."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple


class LogHead(NamedTuple):
    """Head of a log and of its feeds.

    Attributes:
        epoch: epoch of the log and of the own feed.
        first: oldest offset held; `next` if none is.
        next: offset of the next event.
        own: last sequence of the own feed.
        foreign: last sequence held of each other feed.
        sealed: last own sequence that a seal covers.
        own_head: head of the newest own seal (core/seals/heads.py); empty for none.
        foreign_heads: head of the newest seal of each other feed, where known.
    """

    epoch: str
    first: int
    next: int
    own: int
    foreign: dict[str, int]
    sealed: int
    own_head: bytes = b""
    foreign_heads: Mapping[str, bytes] = MappingProxyType({})


class Unsealed(NamedTuple):
    """Own events that no seal covers yet.

    Attributes:
        first: first sequence that is not sealed.
        last: sequence of the last of `events`; less than `first` if everything is sealed.
        events: the events `lost` to `last`.
        o, z: offsets of the first and the last of `events`; 0 without events.
        lost: sequences `first` to `lost - 1` left the history before they were sealed; `first` if none did.
        epoch: epoch of the log.
    """

    first: int
    last: int
    events: list[bytes]
    o: int
    z: int
    lost: int
    epoch: str


class StoredRun(NamedTuple):
    """A sealed run as this log can forward it.

    Attributes:
        feed_key: key of the feed.
        first, last: sequences that the seal covers.
        seal: the seal as stored.
        leaves: leaf hashes of the run's first events, which are not held (any more).
        events: the other events of the run.
        path: domains that the run passed, the origin first; empty for an own run.
    """

    feed_key: str
    first: int
    last: int
    seal: bytes
    leaves: bytes
    events: list[bytes]
    path: tuple[str, ...]


class StoredSeal(NamedTuple):
    """A stored seal: sequences that it covers, leaf hashes of all its events, offsets of those received here."""

    feed_key: str
    first: int
    last: int
    seal: bytes
    leaves: bytes
    path: tuple[str, ...]
    o: int
    z: int


class ReceivedRun(NamedTuple):
    """Result of receiving a run.

    Attributes:
        kind: `new`: the feed is now held up to `held`, further than before. `known`: it was already held that far.
            `hole`: events before the run are missing here. `full`: the RP has FEEDS_MAX feeds, or ORIGIN_FEEDS_MAX of
            this origin.
        held: last sequence held of the feed.
        offset: offset of the first event appended; 0 if none was.
        appended: number of events appended.
    """

    kind: Literal["new", "known", "hole", "full"]
    held: int
    offset: int
    appended: int


class FeedEvent(NamedTuple):
    """An event of the log: its feed (OWN: this log's), its sequence in the feed, its bytes."""

    feed_key: str
    sequence: int
    body: bytes
