"""The log as federation needs it: feeds, seals, runs. Synchronous.

Life of an event between domains, as its two logs see it. At its origin it is appended as ever; its place in the
origin's feed is its offset less the events of other domains before it. Before it leaves, `unsealed` gives the run it is
in, and `seal_keep` keeps the signed seal with the leaf hash of every event. `runs_after` gives a peer the sealed runs
that its vector lacks; of a run that history has partly left, the last events and the leaves of the others, so that it
can be verified as long as any of it is held. At the other domain `receive` appends what follows what is held of that
feed, once, and keeps the seal, so that the run can be given on. `vector_at` and `first_lacking` translate between a
place in this log and a vector, which is a place in every replica's log.

A feed is named by its key (core/events/feeds.py), in what this module answers about single events and vectors the own one by
OWN: the log knows its epoch but not the domain's name. Layout in Redis: lua/common.lua, vectors.lua, seals.lua.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redis.exceptions import ResponseError

from eventing.conf import config
from eventing.core import merkle
from eventing.core.events.feeds import FEEDS_MAX, ORIGIN_FEEDS_MAX
from eventing.log import scripts
from eventing.log.control import call, call_all, client, stored_at
from eventing.log.federated_types import Head, Place, Received, StoredRun, StoredSeal, Unsealed
from eventing.log.scripts import OWN, NoLog
from eventing.store import keys

__all__ = [
    "OWN",
    "Head",
    "NoLog",
    "OwnFeed",
    "Place",
    "Received",
    "StoredRun",
    "StoredSeal",
    "Unsealed",
    "feeds_of_origin",
    "first_lacking",
    "heads",
    "place_of",
    "receive",
    "renumber",
    "runs_after",
    "seal_keep",
    "seal_of",
    "sealed_feeds",
    "seals_after",
    "unsealed",
    "vector_at",
]

RUN_EVENTS_MAX = 1000  # events of one run: what one seal covers, one script call appends, one request carries
RUN_BYTES_MAX = 1024 * 1024  # bytes of one run's events; a single larger event is a run
RUN_OFFSETS_MAX = 4096  # offsets that an own run reaches over, other domains' events between its own included
HEADS_MAX = 500  # logs asked in one round trip


class OwnFeed(Exception):
    """Events of our own feed were offered as another domain's: the caller must recognise its own feed."""


def heads(rps: Sequence[str]) -> list[Head | None]:
    """How far the logs of `rps` are; None where there is no log. One round trip per HEADS_MAX."""
    found: list[Head | None] = []
    for begin in range(0, len(rps), HEADS_MAX):
        some = rps[begin : begin + HEADS_MAX]
        arguments = [[3, *keys.log_keys(rp)[:2], keys.feeds_key(rp)] for rp in some]
        found += [None if answer is None else _head(answer) for answer in logs_only(call_all(scripts.HEAD, arguments))]
    return found


def _head(answer: list[Any]) -> Head:
    epoch, first, after, own, sealed, tip, *feeds = answer
    names = [name.decode() for name in feeds[::3]]
    held = {name: int(sequence) for name, sequence in zip(names, feeds[1::3], strict=True) if int(sequence)}
    tips = {name: one for name, one in zip(names, feeds[2::3], strict=True) if one}
    return Head(epoch.decode(), first, after, own, held, sealed, tip, tips)


def logs_only(answers: Sequence[Any]) -> Iterator[Any]:
    """The answers of `call_all`, None where there is no log. Raises what else is among them."""
    for answer in answers:
        if isinstance(answer, ResponseError) and str(answer).startswith("NOLOG"):
            yield None
        elif isinstance(answer, Exception):
            raise answer
        else:
            yield answer


def unsealed(rp: str, events_max: int = RUN_EVENTS_MAX, bytes_max: int = RUN_BYTES_MAX) -> Unsealed:
    """Own events after the last own seal, as many as one seal should cover. Raises NoLog.

    Never more than RUN_EVENTS_MAX events, RUN_BYTES_MAX bytes (one event is always given) and RUN_OFFSETS_MAX offsets.
    """
    return unsealed_read(call(scripts.UNSEALED, unsealed_args(rp, events_max, bytes_max)))


def unsealed_args(rp: str, events_max: int, bytes_max: int) -> list[Any]:
    """Key count, keys and arguments of UNSEALED."""
    bounds = (min(events_max, RUN_EVENTS_MAX), min(bytes_max, RUN_BYTES_MAX), RUN_OFFSETS_MAX)
    return [4, *_log_and_feeds(rp), *bounds]


def unsealed_read(answer: list[Any]) -> Unsealed:
    """UNSEALED's answer."""
    epoch, first, start, o, z, *events = answer
    return Unsealed(int(first), int(start) + len(events) - 1, events, int(o), int(z), int(start), epoch.decode())


def seal_keep(
    rp: str,
    feed_key: str,
    first: int,
    last: int,
    seal: bytes,
    leaves: bytes,
    o: int,
    z: int,
    *,
    epoch: str = "",
    tip: bytes = b"",
) -> bool:
    """Keep the seal of the own run `first` to `last`, whose events have offsets from `o` to `z`.

    Args:
        feed_key: of the own feed.
        leaves: the leaf hashes of all events of the run.
        epoch: that of the Unsealed which was sealed; "" to take the log's present one.
        tip: of the seal (core/seals/heads.py); empty for not known.

    Returns False if the run does not follow the last one kept: somebody else was first, or the epoch has changed.
    `first` may leave out sequences that left the history unsealed. Raises NoLog.
    """
    return bool(call(scripts.SEAL_KEEP, seal_keep_args(rp, feed_key, first, last, seal, leaves, o, z, epoch, tip)))


def seal_keep_args(
    rp: str,
    feed_key: str,
    first: int,
    last: int,
    seal: bytes,
    leaves: bytes,
    o: int,
    z: int,
    epoch: str,
    tip: bytes = b"",
) -> list[Any]:
    """Key count, keys and arguments of SEAL_KEEP."""
    if len(leaves) != merkle.HASH_BYTES * (last - first + 1) or not 1 <= last - first + 1 <= RUN_EVENTS_MAX:
        raise ValueError("a run has 1 to RUN_EVENTS_MAX events and a leaf for each")
    run = (epoch, feed_key, first, last, o, z, seal, leaves, tip)
    return [5, *_log_and_feeds(rp), keys.seals_key(rp, feed_key), *run]


def runs_after(
    rp: str,
    vector: Mapping[str, int],
    own_key: str,
    events_max: int = RUN_EVENTS_MAX,
    bytes_max: int = RUN_BYTES_MAX,
    *,
    at_least_one: bool = True,
) -> list[StoredRun]:
    """Sealed runs, own and others', that whoever holds `vector` lacks: whole ones, per feed in order, feeds in turn.

    Which feed begins is random, so that over several calls none waits for another. A run may begin before what is held
    (the seal covers it) or, where older seals are gone, after.

    Args:
        own_key: the key of the own feed.
        events_max, bytes_max: bounds of all runs together; leaves count as bytes.
        at_least_one: give one run even if it exceeds these bounds. False for what is added to a request that holds
            something already.

    Raises NoLog.
    """
    args = runs_after_args(rp, vector, own_key, events_max, bytes_max, at_least_one=at_least_one)
    return stored_runs(call(scripts.RUNS_AFTER, args))


def runs_after_args(
    rp: str, vector: Mapping[str, int], own_key: str, events_max: int, bytes_max: int, *, at_least_one: bool
) -> list[Any]:
    """Key count, keys and arguments of RUNS_AFTER."""
    flat = [part for pair in vector.items() for part in pair]
    begin = random.randrange(FEEDS_MAX)  # noqa: S311 - fairness, not a secret
    args = [own_key, min(events_max, RUN_EVENTS_MAX), min(bytes_max, RUN_BYTES_MAX), int(at_least_one), begin, *flat]
    log, meta, _, _ = keys.log_keys(rp)
    return [4, log, meta, keys.feeds_key(rp), keys.seals_prefix(rp), *args]


def stored_runs(answer: list[Any]) -> list[StoredRun]:
    """RUNS_AFTER's answer."""
    return [
        StoredRun(feed.decode(), int(first), int(last), seal, leaves, events, _path(path))
        for feed, first, last, seal, leaves, path, *events in answer
    ]


def receive(
    rp: str,
    feed_key: str,
    first: int,
    last: int,
    events: Sequence[bytes],
    digests: Sequence[bytes],
    seal: bytes,
    leaves: bytes,
    path: Sequence[str],
    gap_to: int | None = None,
    tip: bytes = b"",
) -> Received:
    """Append a verified run of another domain's feed, as far as it follows what is held of that feed.

    Atomic. What is held already is skipped; events that are here by another feed are appended all the same, but a
    publisher that repeats one here is recognised. Rings the bell and keeps the seal.

    Args:
        first, last: the sequences that the seal covers.
        events: the last ones of the run, at most RUN_EVENTS_MAX and RUN_BYTES_MAX bytes (or one).
        digests: scripts.digest of each of them.
        seal: the seal, to be kept as it is.
        leaves: the leaf hashes of the run's events before those (or of all of them).
        path: the domains that the run came through, the origin first.
        gap_to: sequences up to this one need not be held here: a gap that the receiver has accepted.
        tip: of the seal (core/seals/heads.py); empty for not known.

    Raises NoLog, OwnFeed.
    """
    args = receive_args(rp, feed_key, first, last, events, digests, seal, leaves, path, gap_to, tip)
    try:
        return received(call(scripts.RECEIVE, args))
    except ResponseError as error:
        if str(error).startswith("OWNFEED"):
            raise OwnFeed(feed_key) from None
        raise


def receive_args(
    rp: str,
    feed_key: str,
    first: int,
    last: int,
    events: Sequence[bytes],
    digests: Sequence[bytes],
    seal: bytes,
    leaves: bytes,
    path: Sequence[str],
    gap_to: int | None = None,
    tip: bytes = b"",
) -> list[Any]:
    """Key count, keys and arguments of RECEIVE."""
    count, size = last - first + 1, len(events)
    if not (1 <= count <= RUN_EVENTS_MAX and size <= count and len(digests) == size):
        raise ValueError("a run has 1 to RUN_EVENTS_MAX events, and a digest for each that is given")
    if size > 1 and sum(map(len, events)) > RUN_BYTES_MAX:
        raise ValueError("a run of several events has at most RUN_BYTES_MAX bytes")
    if len(leaves) == merkle.HASH_BYTES * (count - size):
        leaves += merkle.leaves(events)
    if len(leaves) != merkle.HASH_BYTES * count:
        raise ValueError("every event of a run that is not given needs its leaf")
    settings = (config().dedup_window_s * 1000, config().dedup_ids_max // 2)
    run = (feed_key, first, last, gap_to or 0, seal, leaves, " ".join(path), FEEDS_MAX - 1, size, tip, ORIGIN_FEEDS_MAX)
    every_key = (*keys.log_keys(rp), keys.feeds_key(rp), keys.vectors_key(rp), keys.seals_key(rp, feed_key))
    return [7, *every_key, keys.bell_channel(rp), *settings, *run, *digests, *events]


def received(answer: list[Any]) -> Received:
    """RECEIVE's answer."""
    kind, held, offset, appended = answer
    return Received(kind.decode(), int(held), offset, appended)


def seal_of(rp: str, feed_key: str, sequence: int) -> StoredSeal | None:
    """The seal kept that covers `sequence` of a feed (the own one by its key, too); None if there is none (any more)."""
    return stored_seal(feed_key, client().xrange(keys.seals_key(rp, feed_key), min=sequence, count=1), sequence)


def stored_seal(feed_key: str, found: Any, sequence: int) -> StoredSeal | None:
    """The seal among the entries `found` of a feed's seals, if the first covers `sequence`."""
    if not found:
        return None
    seal = _seal(feed_key, found[0])
    return seal if seal.first <= sequence else None


def _seal(feed_key: str, entry: Any) -> StoredSeal:
    name, fields = entry
    bounds = (int(fields[b"b"]), int(name.split(b"-")[0]))
    return StoredSeal(
        feed_key, *bounds, fields[b"s"], fields[b"l"], _path(fields[b"p"]), int(fields[b"o"]), int(fields[b"z"])
    )


def seals_after(rp: str, feed_key: str, after: int, count: int) -> list[StoredSeal]:
    """The seals kept of a feed whose runs end after sequence `after`, the oldest first, at most `count`."""
    found: Any = client().xrange(keys.seals_key(rp, feed_key), min=after + 1, count=count)
    return [_seal(feed_key, entry) for entry in found]


def sealed_feeds(rp: str) -> list[str]:
    """The keys of the feeds that seals are kept of, in their order; the own one among them once it has a seal."""
    own: Any = client().hget(keys.meta_key(rp), "w")
    foreign: Any = client().hkeys(keys.feeds_key(rp))
    return sorted(feed.decode() for feed in ([own] if own else []) + foreign)


def feeds_of_origin(rp: str, origin: str) -> int:
    """How many feeds of another domain are held; of those that came before this was counted, none."""
    found: Any = client().hget(keys.meta_key(rp), f"o{origin}")
    return int(found or 0)


def place_of(rp: str, offset: int) -> Place | None:
    """The event at `offset`; None if it is not held."""
    found: Any = client().xrange(keys.log_keys(rp)[0], min=offset, max=offset, count=1)
    if not found:
        return None
    fields = found[0][1]
    return Place(fields.get(b"f", b"").decode(), int(fields.get(b"s", offset)), fields[b"e"])


def vector_at(rp: str, offset: int) -> dict[str, int] | None:
    """What a reader that has this log up to `offset` holds of each feed, OWN standing for the own one.

    None if that is not known: the offset is beyond the log's end, or more than one before the oldest held. Raises NoLog.
    """
    answer = call(scripts.VECTOR_AT, scripts.vector_at_args(rp, offset))
    return scripts.vector(answer) if answer else None


def first_lacking(rp: str, vector: Mapping[str, int], own_key: str) -> int:
    """The offset of the first event that a reader with `vector` lacks; what follows it may be held all the same.

    The log's next offset if nothing is lacking. An offset before the oldest held if something is lacking that left the
    history: a gap from there. Raises NoLog.
    """
    return int(call(scripts.FIRST_LACKING, scripts.first_lacking_args(rp, vector, own_key)))


def oldest_lacking(asked: Sequence[tuple[str, Mapping[str, int], str]]) -> float | None:
    """When the oldest event was stored here that readers lack, each by its RP, vector and own feed's key; Unix seconds.

    None if none of them lacks anything that is still held. Two round trips.
    """
    arguments = [scripts.first_lacking_args(rp, vector, own) for rp, vector, own in asked]
    answers = zip(asked, call_all(scripts.FIRST_LACKING, arguments), strict=True)
    places = [(rp, int(found)) for (rp, _, _), found in answers if not isinstance(found, Exception)]
    return min((at for _, at in stored_at(places) if at is not None), default=None)


def renumber(rp: str, was: str = "", *, carry_after_ms: int | None = None) -> str:
    """Begin a new epoch with a log of the same bounds; returns the epoch in use then. Raises NoLog.

    Args:
        was: the epoch to end; if another one is in use already, nothing is done. "" for whichever it is.
        carry_after_ms: own unsealed events that were appended after this time (Unix milliseconds) become the first ones
            of the new epoch, in their order; None for an empty log. The time is that of the newest seal of the old
            epoch that anybody has shown: what came later is in no seal, what came before is in those that peers hold.

    For a data plane that has come back older than what it had sealed: a number of the old epoch is never used again.
    What was held of other feeds is forgotten with the log, because an offset of the new epoch is wanted for each event:
    other replicas' vectors show that it is lacking here and they send it, our own feed of the old epoch included, which
    is a feed like others' now. What no other replica has is lost, as in any loss of the data plane.
    """
    arguments = (scripts.new_epoch(), was, -1 if carry_after_ms is None else carry_after_ms)
    answer = call(scripts.RENUMBER, [7, *keys.log_keys(rp), *keys.feed_keys(rp), *arguments])
    return str(answer.decode())


def _log_and_feeds(rp: str) -> list[str]:
    """The keys that the scripts begin with which know feeds: log, meta, feeds, vectors."""
    return [*keys.log_keys(rp)[:2], keys.feeds_key(rp), keys.vectors_key(rp)]


def _path(stored: bytes) -> tuple[str, ...]:
    return tuple(stored.decode().split())
