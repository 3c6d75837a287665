"""Runs of many RPs in one round trip: Redis makes one fsync of a pipeline, and a request between domains has up to 1,000 RPs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from eventing.log import federated, scripts
from eventing.log.control import call_all, client
from eventing.log.federated import RUN_BYTES_MAX, RUN_EVENTS_MAX, Received, StoredRun, StoredSeal, Unsealed
from eventing.store import keys
from eventing.store.pipelined import commands_all

READ_AT_ONCE = 32  # RPs whose runs are read in one round trip: each may give up to what is left of the request
ARGUMENT_BYTES_AT_ONCE = 4 * 1024 * 1024  # of one pipeline that writes


# KEYS: a feed's seals. Of an entry the seal alone: the leaves beside it have up to 32 KiB.
_NEWEST_SEAL = scripts.script_of("""
local entry = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
for at = 1, entry and #entry[2] or 0, 2 do
  if entry[2][at] == 's' then return entry[2][at + 1] end
end
return false
""")


class Wanted(NamedTuple):
    """An RP whose runs are asked for: see federated.runs_after."""

    rp: str
    vector: Mapping[str, int]
    own_key: str


class Incoming(NamedTuple):
    """A verified run: see federated.receive."""

    rp: str
    feed_key: str
    first: int
    last: int
    events: Sequence[bytes]
    digests: Sequence[bytes]
    seal: bytes
    leaves: bytes
    path: Sequence[str]
    gap_to: int | None
    tip: bytes = b""


class OwnSeal(NamedTuple):
    """The seal of an own run: see federated.seal_keep."""

    rp: str
    feed_key: str
    first: int
    last: int
    seal: bytes
    leaves: bytes
    o: int
    z: int
    epoch: str
    tip: bytes = b""


def runs_after_all(wanted: Sequence[Wanted], events_max: int, bytes_max: int) -> list[list[StoredRun]]:
    """The runs of several RPs that fit into one request; those of RPs that came too late are empty.

    At least one run is given, however large it is. An RP without a log has none.
    """
    found: list[list[StoredRun]] = []
    events_left, bytes_left = events_max, bytes_max
    for begin in range(0, len(wanted), READ_AT_ONCE):
        if events_left <= 0 or bytes_left <= 0:
            break
        some = wanted[begin : begin + READ_AT_ONCE]
        share = max(1, events_left // len(some)), max(1, bytes_left // len(some))  # of each; the last round is one RP's
        for runs in _runs(some, *(share if len(some) > 1 else (events_left, bytes_left))):
            size = sum(len(run.leaves) + sum(map(len, run.events)) for run in runs)
            count = sum(max(1, len(run.events)) for run in runs)
            if found and any(found) and (count > events_left or size > bytes_left):
                found.append([])
                continue
            events_left, bytes_left = events_left - count, bytes_left - size
            found.append(runs)
    return found + [[]] * (len(wanted) - len(found))


def _runs(wanted: Sequence[Wanted], events_max: int, bytes_max: int) -> Iterator[list[StoredRun]]:
    arguments = [
        federated.runs_after_args(one.rp, one.vector, one.own_key, events_max, bytes_max, at_least_one=True)
        for one in wanted
    ]
    for answer in call_all(scripts.RUNS_AFTER, arguments):
        if isinstance(answer, ResponseError) and str(answer).startswith("NOLOG"):
            yield []
        elif isinstance(answer, Exception):
            raise answer
        else:
            yield federated.stored_runs(answer)


def receive_all(runs: Sequence[Incoming]) -> list[Received | None]:
    """Append verified runs in this order; None for a run whose log is missing, or whose feed is the log's own."""
    results: list[Received | None] = []
    arguments: list[list[Any]] = []
    size = 0
    for run in runs:
        arguments.append(federated.receive_args(*run))
        size += sum(map(len, run.events))
        if size >= ARGUMENT_BYTES_AT_ONCE:
            results += _received(arguments)
            arguments, size = [], 0
    return results + _received(arguments)


def _received(arguments: Sequence[list[Any]]) -> list[Received | None]:
    results: list[Received | None] = []
    for answer in call_all(scripts.RECEIVE, arguments):
        if isinstance(answer, ResponseError) and str(answer).startswith(("NOLOG", "OWNFEED")):
            results.append(None)
        elif isinstance(answer, Exception):
            raise answer
        else:
            results.append(federated.received(answer))
    return results


def last_seals(feeds: Sequence[tuple[str, str, int]]) -> list[StoredSeal | None]:
    """For each (RP, feed key, sequence) the seal kept that covers the sequence; None if there is none (any more)."""
    if not feeds:
        return []
    looks = [("XRANGE", keys.seals_key(rp, feed), max(1, sequence), "+", "COUNT", 1) for rp, feed, sequence in feeds]
    found: list[StoredSeal | None] = []
    for (_, feed_key, sequence), answer in zip(feeds, commands_all(client(), looks), strict=True):
        if isinstance(answer, Exception):
            raise answer
        entries = [(name, dict(zip(fields[::2], fields[1::2], strict=True))) for name, fields in answer]
        found.append(federated.stored_seal(feed_key, entries, sequence))
    return found


def newest_seals(feeds: Sequence[tuple[str, str]]) -> list[bytes | None]:
    """For each (RP, feed key) the newest seal kept, without its run's leaves; None if there is none."""
    answers = call_all(_NEWEST_SEAL, [[1, keys.seals_key(rp, feed)] for rp, feed in feeds])
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [None if answer is None else bytes(answer) for answer in answers]


def unsealed_all(rps: Sequence[str]) -> list[Unsealed | None]:
    """The next own run to seal of several RPs (federated.unsealed); None where there is no log."""
    arguments = [federated.unsealed_args(rp, RUN_EVENTS_MAX, RUN_BYTES_MAX) for rp in rps]
    answers = federated.logs_only(call_all(scripts.UNSEALED, arguments))
    return [None if answer is None else federated.unsealed_read(answer) for answer in answers]


def seals_keep(seals: Sequence[OwnSeal]) -> list[bool]:
    """Keep own seals of several RPs; False where federated.seal_keep says so, or there is no log."""
    arguments = [federated.seal_keep_args(*seal) for seal in seals]
    return [bool(answer) for answer in federated.logs_only(call_all(scripts.SEAL_KEEP, arguments))]
