"""Runs of many RPs in one round trip: Redis makes one fsync of a pipeline, and a request between domains has up to
1,000 RPs.

Life of an event between domains, as its two logs see it. At its origin it is appended like any event; its sequence in
the origin's feed is its offset less the events of other domains before it. Before it leaves, `unsealed_all` returns its
run, and `seals_keep` stores the signed seal with the leaf hash of every event. `runs_after_all` returns to a peer the
sealed runs that its vector lacks; of a run that history has partly left, the last events and the leaves of the others,
so that the run can be verified as long as any of it is held. At the other domain `receive_all` appends the events that
follow the held part of the feed, once, and stores the seal, so that the run can be forwarded.

What a script is given is one object, which makes the script's arguments.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eventing.conf import config
from eventing.core import merkle
from eventing.core.events.feeds import FEEDS_MAX, ORIGIN_FEEDS_MAX
from eventing.core.seals.seals import RUN_BYTES_MAX, RUN_EVENTS_MAX
from eventing.log import scripts
from eventing.log.control import logs_only
from eventing.log.federated import ReceivedRun, StoredRun, StoredSeal, Unsealed, path_read, stored_seal
from eventing.store import keys
from eventing.store.client import client, commands_all, run_script_all

READ_AT_ONCE = 32  # RPs whose runs are read in one round trip: each may return up to the remainder of the request
ARGUMENT_BYTES_AT_ONCE = 4 * 1024 * 1024  # of one pipeline that writes
# Events of other domains in between are included.
RUN_OFFSETS_MAX = 4096  # bound: offsets that a run of the own feed spans; the next run begins


class WantedRuns(NamedTuple):
    """Request for the sealed runs of an RP, own and others', that a holder of `vector` lacks; `own_key`: of the own feed."""

    rp: str
    vector: Mapping[str, int]
    own_key: str

    def args(self, events_max: int, bytes_max: int) -> list[Any]:
        """Make key count, keys and arguments of RUNS_AFTER, with bounds of all runs together; leaves count as bytes.

        The first feed is random, so that over several calls none is starved.
        """
        flat = [part for pair in self.vector.items() for part in pair]
        begin = random.randrange(FEEDS_MAX)  # noqa: S311 - fairness, not a secret
        bounds = (min(events_max, RUN_EVENTS_MAX), min(bytes_max, RUN_BYTES_MAX))
        every_key = (*keys.log_keys(self.rp)[:2], keys.feeds_key(self.rp), keys.seals_prefix(self.rp))
        return [4, *every_key, self.own_key, *bounds, begin, *flat]


class Incoming(NamedTuple):
    """Verified run of another domain's feed.

    Attributes:
        first, last: sequences that the seal covers.
        events: the last events of the run, at most RUN_EVENTS_MAX and RUN_BYTES_MAX bytes (or one).
        digests: scripts.digest of each of them.
        seal: the seal, stored unchanged.
        leaves: leaf hashes of the run's events before those (or of all of them).
        path: domains that the run passed, the origin first.
        gap_to: sequences up to this one need not be held here: a gap that the receiver has accepted.
        seal_digest: digest of the seal (core/seals/seals.py: `digest`); empty if unknown.
    """

    rp: str
    feed_key: str
    first: int
    last: int
    events: Sequence[bytes]
    digests: Sequence[bytes]
    seal: bytes
    leaves: bytes
    path: Sequence[str]
    gap_to: int | None = None
    seal_digest: bytes = b""

    def args(self) -> list[Any]:
        """Make key count, keys and arguments of RECEIVE. Raises ValueError for an inconsistent run."""
        rp, feed_key, first, last, events, digests, seal, leaves, path, gap_to, seal_digest = self
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
        run = (
            feed_key,
            first,
            last,
            gap_to or 0,
            seal,
            leaves,
            " ".join(path),
            FEEDS_MAX - 1,
            size,
            seal_digest,
            ORIGIN_FEEDS_MAX,
            scripts.fence(config().fenced),
        )
        every_key = (*keys.log_keys(rp), keys.feeds_key(rp), keys.vectors_key(rp), keys.seals_key(rp, feed_key))
        return [7, *every_key, keys.notification_channel(rp), *settings, *run, *digests, *events]


class OwnSeal(NamedTuple):
    """Seal of the own run `first` to `last`, which may leave out sequences that left the history unsealed.

    Attributes:
        feed_key: key of the own feed.
        leaves: leaf hashes of all events of the run.
        o, z: offsets of the first and the last event.
        epoch: epoch of the Unsealed that was sealed; "" for the log's present one.
        seal_digest: digest of the seal (core/seals/seals.py: `digest`); empty if unknown.
    """

    rp: str
    feed_key: str
    first: int
    last: int
    seal: bytes
    leaves: bytes
    o: int
    z: int
    epoch: str = ""
    seal_digest: bytes = b""

    def args(self) -> list[Any]:
        """Make key count, keys and arguments of SEAL_KEEP. Raises ValueError for an inconsistent run."""
        rp, feed_key, first, last, seal, leaves, o, z, epoch, seal_digest = self
        if len(leaves) != merkle.HASH_BYTES * (last - first + 1) or not 1 <= last - first + 1 <= RUN_EVENTS_MAX:
            raise ValueError("a run has 1 to RUN_EVENTS_MAX events and a leaf for each")
        run = (epoch, feed_key, first, last, o, z, seal, leaves, seal_digest)
        return [5, *_log_and_feeds(rp), keys.seals_key(rp, feed_key), *run]


def runs_after_all(wanted: Sequence[WantedRuns], events_max: int, bytes_max: int) -> list[list[StoredRun]]:
    """Return the runs of several RPs that fit into one request; empty for RPs after the request is full.

    At least one run is returned, however large it is. An RP without a log has none. The bounds are those of the
    request.
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


def _runs(wanted: Sequence[WantedRuns], events_max: int, bytes_max: int) -> Iterator[list[StoredRun]]:
    arguments = [one.args(events_max, bytes_max) for one in wanted]
    for answer in logs_only(run_script_all(scripts.RUNS_AFTER, arguments)):
        yield [
            StoredRun(feed.decode(), int(first), int(last), seal, leaves, events, path_read(path))
            for feed, first, last, seal, leaves, path, *events in answer or ()
        ]


def receive_all(runs: Sequence[Incoming]) -> list[ReceivedRun | None]:
    """Append verified runs in this order; None for a run whose log is missing, or whose feed is the log's own.

    Of a run the part is appended that follows the held part of its feed; events that another feed also holds are
    appended all the same, but a publisher that repeats one here is recognised. Each run is atomic, publishes on the
    notification channel, and stores its seal. Raises ValueError for an inconsistent run.
    """
    results: list[ReceivedRun | None] = []
    arguments: list[list[Any]] = []
    size = 0
    for run in runs:
        arguments.append(run.args())
        size += sum(map(len, run.events))
        if size >= ARGUMENT_BYTES_AT_ONCE:
            results += _received(arguments)
            arguments, size = [], 0
    return [*results, *_received(arguments)]


def _received(arguments: Sequence[list[Any]]) -> Iterator[ReceivedRun | None]:
    for answer in logs_only(run_script_all(scripts.RECEIVE, arguments), "OWNFEED"):
        if answer is None:
            yield None
        else:
            kind, held, offset, appended = answer
            yield ReceivedRun(kind.decode(), int(held), offset, appended)


def last_seals(feeds: Sequence[tuple[str, str, int]]) -> list[StoredSeal | None]:
    """Return for each (RP, feed key, sequence) the stored seal that covers the sequence; None if there is none (any more)."""
    if not feeds:
        return []
    reads = [("XRANGE", keys.seals_key(rp, feed), max(1, sequence), "+", "COUNT", 1) for rp, feed, sequence in feeds]
    found: list[StoredSeal | None] = []
    for (_, feed_key, sequence), answer in zip(feeds, logs_only(commands_all(client(), reads)), strict=True):
        entries = [(name, dict(zip(fields[::2], fields[1::2], strict=True))) for name, fields in answer]
        found.append(stored_seal(feed_key, entries, sequence))
    return found


def newest_seals(feeds: Sequence[tuple[str, str]]) -> list[bytes | None]:
    """Return for each (RP, feed key) the newest stored seal, without its run's leaves; None if there is none."""
    arguments = [[1, keys.seals_key(rp, feed)] for rp, feed in feeds]
    return [None if one is None else bytes(one) for one in logs_only(run_script_all(scripts.NEWEST_SEAL, arguments))]


def unsealed_all(
    rps: Sequence[str], events_max: int = RUN_EVENTS_MAX, bytes_max: int = RUN_BYTES_MAX
) -> list[Unsealed | None]:
    """Return of each RP the own events after the last own seal, as many as one seal should cover; None where there is no log.

    Never more than RUN_EVENTS_MAX events, RUN_BYTES_MAX bytes (one event is always returned) and RUN_OFFSETS_MAX
    offsets.
    """
    bounds = (min(events_max, RUN_EVENTS_MAX), min(bytes_max, RUN_BYTES_MAX), RUN_OFFSETS_MAX)
    answers = logs_only(run_script_all(scripts.UNSEALED, [[4, *_log_and_feeds(rp), *bounds] for rp in rps]))
    return [None if answer is None else _unsealed(*answer) for answer in answers]


def _unsealed(epoch: bytes, first: Any, start: Any, o: Any, z: Any, *events: bytes) -> Unsealed:
    return Unsealed(int(first), int(start) + len(events) - 1, list(events), int(o), int(z), int(start), epoch.decode())


def seals_keep(seals: Sequence[OwnSeal]) -> list[bool]:
    """Store own seals of several RPs.

    False where the run does not follow the last stored one (another process was first, or the epoch has changed), or
    there is no log. Raises ValueError for an inconsistent run.
    """
    return [bool(one) for one in logs_only(run_script_all(scripts.SEAL_KEEP, [seal.args() for seal in seals]))]


def _log_and_feeds(rp: str) -> list[str]:
    """Return the keys that the scripts begin with which know feeds: log, meta, feeds, vectors."""
    return [*keys.log_keys(rp)[:2], keys.feeds_key(rp), keys.vectors_key(rp)]
