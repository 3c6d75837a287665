"""The log as federation reads it: heads, feeds, seals, positions (runs: federated_bulk.py). Synchronous.

`vector_at` and `first_lacking` translate between a position in this log and a vector, which is a position in every
replica's log.

A feed is named by its key (core/events/feeds.py). Where this module answers about single events and vectors, OWN stands
for the own feed: the log knows its epoch but not the domain's name. Layout in Redis: lua/common.lua, vectors.lua,
seals.lua.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from eventing.core.merkle import HASH_BYTES
from eventing.core.seals.heads import HEAD_BYTES
from eventing.log import scripts
from eventing.log.control import call, logs_only, stored_at
from eventing.store import keys
from eventing.store.client import client, run_script_all


class LogHead(NamedTuple):
    """Head of a log and of its feeds.

    Attributes:
        epoch: epoch of the own feed.
        present: epoch of cursors: that of the own feed, or one in which another server continues the log (lineage.py).
        first: oldest offset held; `next` if none is.
        next: offset of the next event.
        own: last sequence of the own feed.
        foreign: last sequence held of each other feed.
        sealed: last own sequence that a seal covers.
        own_head: head of the newest own seal (core/seals/heads.py); empty for none.
        foreign_heads: head of the newest seal of each other feed, where known.
        foreign_digests: digest of the newest seal of each other feed (core/seals/seals.py: `digest`), where known: logs of before
            have its head only.
    """

    epoch: str
    present: str
    first: int
    next: int
    own: int
    foreign: dict[str, int]
    sealed: int
    own_head: bytes = b""
    foreign_heads: Mapping[str, bytes] = MappingProxyType({})
    foreign_digests: Mapping[str, bytes] = MappingProxyType({})


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


HEADS_MAX = 500  # logs asked in one round trip


def heads(rps: Sequence[str]) -> list[LogHead | None]:
    """Return the head of each log; None where there is no log. One round trip per HEADS_MAX."""
    found: list[LogHead | None] = []
    for begin in range(0, len(rps), HEADS_MAX):
        some = rps[begin : begin + HEADS_MAX]
        arguments = [[3, *keys.log_keys(rp)[:2], keys.feeds_key(rp)] for rp in some]
        found += [
            None if answer is None else _head(answer) for answer in logs_only(run_script_all(scripts.HEAD, arguments))
        ]
    return found


def _head(answer: list[Any]) -> LogHead:
    epoch, present, first, after, own, sealed, seal_head, *feeds = answer
    if not feeds:
        return LogHead(epoch.decode(), present.decode(), first, after, own, {}, sealed, seal_head[:HEAD_BYTES])
    names = [name.decode() for name in feeds[::3]]
    held = {name: int(sequence) for name, sequence in zip(names, feeds[1::3], strict=True) if int(sequence)}
    known = dict(zip(names, feeds[2::3], strict=True))
    seal_heads = {name: one[:HEAD_BYTES] for name, one in known.items() if one}
    digests = {name: one for name, one in known.items() if len(one) == HASH_BYTES}
    heads_known = (seal_head[:HEAD_BYTES], seal_heads, digests)
    return LogHead(epoch.decode(), present.decode(), first, after, own, held, sealed, *heads_known)


def seal_of(rp: str, feed_key: str, sequence: int) -> StoredSeal | None:
    """Return the stored seal that covers `sequence` of a feed (the own feed by its key, too); None if there is none (any more)."""
    return stored_seal(feed_key, client().xrange(keys.seals_key(rp, feed_key), min=sequence, count=1), sequence)


def stored_seal(feed_key: str, found: Any, sequence: int) -> StoredSeal | None:
    """Return the seal among the entries `found` of a feed's seals, if the first covers `sequence`."""
    if not found:
        return None
    seal = _seal(feed_key, found[0])
    return seal if seal.first <= sequence else None


def _seal(feed_key: str, entry: Any) -> StoredSeal:
    name, fields = entry
    bounds = (int(fields[b"b"]), int(name.split(b"-")[0]))
    return StoredSeal(
        feed_key, *bounds, fields[b"s"], fields[b"l"], path_read(fields[b"p"]), int(fields[b"o"]), int(fields[b"z"])
    )


def seals_after(rp: str, feed_key: str, after: int, count: int) -> list[StoredSeal]:
    """Return the stored seals of a feed whose runs end after sequence `after`, the oldest first, at most `count`."""
    found: Any = client().xrange(keys.seals_key(rp, feed_key), min=after + 1, count=count)
    return [_seal(feed_key, entry) for entry in found]


def sealed_feeds(rp: str) -> list[str]:
    """Return the keys of the feeds with stored seals, in their order; the own feed is among them once it has a seal."""
    own: Any = client().hget(keys.meta_key(rp), "w")
    foreign: Any = client().hkeys(keys.feeds_key(rp))
    return sorted(feed.decode() for feed in ([own] if own else []) + foreign)


def feeds_of_origin(rp: str, origin: str) -> int:
    """Count the held feeds of another domain, without those received before feeds were counted."""
    found: Any = client().hget(keys.meta_key(rp), f"o{origin}")
    return int(found or 0)


def feed_event_at(rp: str, offset: int) -> FeedEvent | None:
    """Return the event at `offset`; None if it is not held."""
    found = places_from(rp, offset, 1)
    return found[0][1] if found and found[0][0] == offset else None


def places_from(rp: str, offset: int, count: int) -> list[tuple[int, FeedEvent]]:
    """Return the events from `offset` on that are held, at most `count`, each with its offset."""
    entries: Any = client().xrange(keys.log_keys(rp)[0], min=offset, count=count)
    found = []
    for entry, fields in entries:
        at = int(entry.split(b"-")[0])
        found.append((at, FeedEvent(fields.get(b"f", b"").decode(), int(fields.get(b"s", at)), fields[b"e"])))
    return found


def vector_at(rp: str, offset: int) -> dict[str, int] | None:
    """Return the vector of a reader that has this log up to `offset`, with OWN for the own feed.

    None if it is unknown: the offset is beyond the log's end, or more than one before the oldest held. Raises NoLog.
    """
    answer = call(scripts.VECTOR_AT, scripts.vector_at_args(rp, offset))
    return scripts.vector(answer) if answer else None


def first_lacking(rp: str, vector: Mapping[str, int], own_key: str) -> int:
    """Return the offset of the first event that a reader with `vector` lacks; the reader may hold later events.

    The log's next offset if nothing is lacking. An offset before the oldest held one if the reader lacks events that
    left the history: a gap from there. Raises NoLog.
    """
    return int(call(scripts.FIRST_LACKING, scripts.first_lacking_args(rp, vector, own_key)))


def oldest_lacking(asked: Sequence[tuple[str, Mapping[str, int], str]]) -> float | None:
    """Return the time at which the oldest event that readers lack was stored here; Unix seconds. Each reader by RP,
    vector, own feed's key.

    None if no reader lacks an event that is still held. Two round trips.
    """
    arguments = [scripts.first_lacking_args(rp, vector, own) for rp, vector, own in asked]
    answers = zip(asked, run_script_all(scripts.FIRST_LACKING, arguments), strict=True)
    places = [(rp, int(found)) for (rp, _, _), found in answers if not isinstance(found, Exception)]
    return min((at for _, at in stored_at(places) if at is not None), default=None)


def renumber(rp: str, was: str = "", *, carry_after_ms: int | None = None) -> str:
    """Begin a new epoch with a log of the same bounds; returns the epoch in use then. Raises NoLog.

    Args:
        was: the epoch to end; if another one is already in use, nothing is done. "" for any.
        carry_after_ms: own unsealed events that were appended after this time (Unix milliseconds) become the first ones
            of the new epoch, in their order; None for an empty log. The time is that of the newest known seal of the
            old epoch: later events are in no seal, earlier ones are in seals that peers hold.

    For a data plane that was restored to a state older than its own seals: no number of the old epoch is used again.
    The held parts of other feeds are dropped with the log, because each event needs an offset of the new epoch: other
    replicas see from the vectors that they are missing here and send them, including the own feed of the old epoch,
    which is now a feed like the others. Events that no other replica has are lost, as in any loss of the data plane.
    """
    arguments = (scripts.new_epoch(), was, -1 if carry_after_ms is None else carry_after_ms)
    answer = call(scripts.RENUMBER, [7, *keys.log_keys(rp), *keys.feed_keys(rp), *arguments])
    return str(answer.decode())


def path_read(stored: bytes) -> tuple[str, ...]:
    """Return the domains of a stored path, the origin first."""
    return tuple(stored.decode().split())
