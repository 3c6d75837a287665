"""The log's Lua scripts with their arguments and answers: pure, shared by synchronous and asynchronous callers.

Layout of a log: lua/common.lua. Every change of a log is one script, so it is atomic.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eventing.core.events.cloudevents import Event
from eventing.core.events.feeds import KEY_CHARS
from eventing.core.events.history import HistoryBounds
from eventing.core.events.lineage import Lineage
from eventing.core.events.positions import LogState
from eventing.store import keys
from eventing.store.client import Script, script_read

# Lua can pass 8,000 values to a command.
RUN_EVENTS_MAX = 500  # bound: events of one script call; the others are in the next call
# bound: bytes of one script call; the others are in the next call; a single event always fits
# Redis serves nobody else during a script.
RUN_BYTES_MAX = 1024 * 1024
CALL_RUNS_MAX = 100  # bound: runs, each of another RP, of one script call; the others are in the next call
DIGEST_BYTES = 12  # of SHA-256's relative BLAKE2b over (source, id): a chance collision within a window is < 1e-18
EPOCH_CHARS = 8
OWN = ""  # denotes the log's own feed where feeds of other domains have their key
NOTIFICATION_EPOCH, NOTIFICATION_NUMBERED, NOTIFICATION_FOREIGN = (
    0x3F,
    0x40,
    0x80,
)  # bits in the first byte of a notification
_FOLDER = Path(__file__).parent / "lua"


class NoLog(Exception):
    """The RP has no log: never made, deleted, or lost with the data plane."""


def _script(name: str, *needed: str) -> Script:
    return script_read(_FOLDER, "common", *needed, name)


APPEND = _script("append", "window", "unfenced")
APPEND_FENCED = _script("append", "window", "lineages", "fence")
CREATE = _script("create", "seals")
READ = _script("read", "vectors")
TRIM = _script("trim", "vectors", "seals")
ACKNOWLEDGE = _script("acknowledge", "lineages", "fence")
OLDEST_GRANTED = _script("oldest_granted", "grants")
LAGS = _script("lags", "grants", "lineages")
DELETE = _script("delete", "seals")
RENUMBER = _script("renumber", "vectors", "seals")
# Of logs that receive other domains' events (federated.py).
RECEIVE = _script("receive", "window", "lineages", "fence", "vectors", "seals")
UNSEALED = _script("unsealed", "vectors")
SEAL_KEEP = _script("seal_keep", "vectors", "seals")
RUNS_AFTER = _script("runs_after", "vectors", "seals")
HEAD = _script("head")
VECTOR_AT = _script("vector_at", "vectors")
FIRST_LACKING = _script("first_lacking", "vectors")
STORED_AT = _script("stored_at")
OFFSET_AT = _script("offset_at")
NEWEST_SEAL = script_read(_FOLDER, "newest_seal")
# Of servers that replicas replace (lineage.py), and of events that wait for replicas (appender.py).
LINEAGE = _script("lineage", "lineages", "fence")
LINEAGE_LEARN = _script("lineage_learn", "lineages")
REVEAL = _script("reveal", "vectors")
# Of backups (backup.py) and of what is restored from them (lineage.py).
BACKUP_LOG = _script("backup_log")
LINEAGE_COPY = _script("lineage_copy", "vectors")
LINEAGE_BEGIN = _script("lineage_begin", "lineages", "vectors", "seals")
# Of links with peers (watermarks.py) and of gaps (gaps.py).
LINKS_WRITE = script_read(_FOLDER, "links_write")
FIELDS_KEEP = script_read(_FOLDER, "fields_keep")
# Of shared subscriptions (shared_subscriptions.py).
SHARED_WRITE = script_read(_FOLDER, "shared_write")
SHARED_JOIN = script_read(_FOLDER, "shared_join")


class Appended(NamedTuple):
    """Positions of appended events: the log's epoch, each event's offset, and the indexes of duplicates."""

    epoch: str
    offsets: list[int]
    duplicates: list[bool]


class Part(NamedTuple):
    """Part of a run from index `begin` on: the feed (OWN: this log's), and the sequence of its first event."""

    begin: int
    feed: str
    sequence: int


class Notification(NamedTuple):
    """A notification: consecutive events of one feed (OWN: this log's), first offset and first sequence."""

    epoch: str
    first: int
    events: list[bytes]
    feed: str
    sequence: int


class TimePosition(NamedTuple):
    """Place of a time in a log: the epoch, the offset of the first event stored then or later (else the next offset), and
    whether the time is in the future."""

    epoch: str
    offset: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogRun:
    """Consecutive events of a log and its extent when they were read; `events[i]` has offset `first + i`.

    Attributes:
        places: parts with consecutive events of one feed; () for a log that never had another domain's events: all are
            own ones whose sequence is their offset.
        before: vector before the first of `events` (OWN: the own feed); {} for such a log.
    """

    state: LogState
    first: int
    events: list[bytes]
    places: tuple[Part, ...] = ()
    before: Mapping[str, int] = field(default_factory=dict)


def new_epoch() -> str:
    """Make a name for a new life of a log's numbering, never used before: 40 random bits."""
    return base64.b32encode(os.urandom(5)).decode().lower()[:EPOCH_CHARS]


def digest(event: Event) -> bytes:
    """Compute the digest of an event's (source, id) by which its repetition is recognised."""
    return hashlib.blake2b(f"{event.source}\n{event.id}".encode(), digest_size=DIGEST_BYTES).digest()


def offset_at_args(rp: str, moment_ms: int) -> list[Any]:
    """Make key count, keys and arguments of OFFSET_AT."""
    return [2, *keys.log_keys(rp)[:2], moment_ms]


def time_position(answer: list[Any]) -> TimePosition:
    """Decode OFFSET_AT's answer."""
    return TimePosition(answer[0].decode(), answer[1], bool(answer[2]))


def append_script(fenced: bool) -> Script:
    """Return the script that appends; `fenced`: where the server may be another one than that which appended before
    (lineage.py)."""
    return APPEND_FENCED if fenced else APPEND


def append_args(rp: str, events: Sequence[Event], window_s: int, ids_max: int, replicas: int = 0) -> list[Any]:
    """Make key count, keys and arguments of APPEND for one run. At most RUN_EVENTS_MAX events.

    Args:
        replicas: how many replicas must hold the events before readers get them (REVEAL).
    """
    return append_runs_args([(rp, events)], window_s, ids_max, replicas)


def append_runs_args(
    runs: Iterable[tuple[str, Sequence[Event]]], window_s: int, ids_max: int, replicas: int = 0
) -> list[Any]:
    """Make key count, keys and arguments of APPEND for runs at several RPs, each RP's id with its events.

    At most CALL_RUNS_MAX runs with RUN_EVENTS_MAX events in all; of one slot where the server is part of a cluster. The answer is
    a list of answers where there is more than one run.
    """
    named: list[Any] = [0]
    given: list[Any] = [window_s * 1000, ids_max // 2, replicas]
    for rp, events in runs:
        named += keys.log_keys(rp)
        given += (keys.notification_channel(rp), len(events))
        given += [digest(event) for event in events]
        given += [event.body for event in events]
    named[0] = len(named) - 1
    return named + given


def fence(fenced: bool) -> str:
    """Make the argument that has a script ask which server it runs on."""
    return "1" if fenced else ""


def reveal_args(rp: str, epoch: str, after: int) -> list[Any]:
    """Make key count, keys and arguments of REVEAL; `after` is the offset after the last event that replicas hold."""
    return [2, *keys.log_keys(rp)[:2], keys.notification_channel(rp), epoch, after]


def replication_asked(rp: str) -> tuple[Any, ...]:
    """Make the command that asks the server of an RP's log for INFO of its replication: by a script, whose key finds the server."""
    return ("EVAL", "return redis.call('INFO', 'replication')", 1, keys.meta_key(rp))


def lineage_args(rp: str, fenced: bool) -> list[Any]:
    """Make key count, key and argument of LINEAGE."""
    return [1, keys.meta_key(rp), fence(fenced)]


def lineage_learn_args(rp: str, present: str, epoch: str, last: int) -> list[Any]:
    """Make key count, key and arguments of LINEAGE_LEARN."""
    return [1, keys.meta_key(rp), present, epoch, last]


def lineage(answer: list[Any]) -> Lineage:
    """Decode LINEAGE's answer."""
    return Lineage(answer[0].decode(), lineage_ends(answer[1]))


def lineage_ends(text: bytes | None) -> dict[str, int]:
    """Decode the earlier epochs of a log, each with its last offset, from the value of its head."""
    pairs = [one.partition(":") for one in (text or b"").decode().split()]
    return {epoch: int(last) for epoch, _, last in pairs if last.isdecimal()}


def appended(answer: list[Any], count: int) -> Appended:
    """Decode APPEND's answer for `count` events."""
    epoch = answer[0].decode()
    if len(answer) == 3:
        return Appended(epoch, list(range(answer[1], answer[1] + count)), [False] * count)
    return Appended(epoch, [abs(offset) for offset in answer[3]], [offset < 0 for offset in answer[3]])


def create_args(rp: str, bounds: HistoryBounds) -> list[Any]:
    """Make key count, keys and arguments of CREATE."""
    age_ms = (bounds.max_age_s or 0) * 1000
    return [7, *keys.log_keys(rp), *keys.feed_keys(rp), new_epoch(), bounds.max_events, bounds.max_bytes, age_ms]


def oldest_granted_args(rp: str, bounds: HistoryBounds) -> list[Any]:
    """Make key count, keys and arguments of OLDEST_GRANTED."""
    age_ms = (bounds.max_age_s or 0) * 1000
    return [2, *keys.log_keys(rp)[:2], bounds.max_events, bounds.max_bytes, age_ms]


def lags_args(rp: str, subscriptions: Iterable[tuple[str, str, HistoryBounds]]) -> list[Any]:
    """Make key count, keys and arguments of LAGS; per subscription its id, the cursor if none is stored, and its bounds."""
    args: list[Any] = [3, *keys.log_keys(rp)[:2], keys.cursors_key(rp)]
    for one, start, bounds in subscriptions:
        args += (one, start, bounds.max_events, bounds.max_bytes, (bounds.max_age_s or 0) * 1000)
    return args


def read_args(rp: str, first: int, events_max: int, bytes_max: int) -> list[Any]:
    """Make key count, keys and arguments of READ; `events_max` 0 reads the extent only."""
    return [4, *keys.log_keys(rp)[:2], *keys.feed_keys(rp)[:2], first, events_max, bytes_max]


def trim_args(rp: str, epoch: str = "", keep: int = 0) -> list[Any]:
    """Make key count and keys of TRIM; with an epoch, also the arguments that remove the events before the offset `keep`."""
    wanted = [epoch, keep] if epoch else []
    return [5, *keys.log_keys(rp)[:2], *keys.feed_keys(rp), *wanted]


def vector_at_args(rp: str, offset: int) -> list[Any]:
    """Make key count, keys and arguments of VECTOR_AT."""
    return [4, *keys.log_keys(rp)[:2], *keys.feed_keys(rp)[:2], offset]


def first_lacking_args(rp: str, vector: Mapping[str, int], own_key: str) -> list[Any]:
    """Make key count, keys and arguments of FIRST_LACKING."""
    flat = [part for pair in vector.items() for part in pair]
    return [4, *keys.log_keys(rp)[:2], *keys.feed_keys(rp)[:2], own_key, *flat]


def log_state(answer: list[Any]) -> LogState:
    """Decode the extent in an answer of CREATE or READ; only READ's has the number of other domains' events."""
    foreign = answer[4][3] if len(answer) > 4 and isinstance(answer[4], list) else 0
    return LogState(answer[0].decode(), answer[1], answer[2], answer[3], foreign)


def run(answer: list[Any]) -> LogRun:
    """Decode READ's answer."""
    if isinstance(answer[4], int):
        return LogRun(log_state(answer), answer[4], answer[5:])
    first, flat, before, _ = answer[4]
    places = tuple(Part(flat[i], flat[i + 1].decode(), int(flat[i + 2])) for i in range(0, len(flat), 3))
    return LogRun(log_state(answer), first, answer[5:], places, vector(before))


def vector(flat: Sequence[bytes]) -> dict[str, int]:
    """Decode a vector as the scripts return it; feeds of which nothing is held are left out."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return {feed.decode(): int(sequence) for feed, sequence in pairs if int(sequence)}


def parse_own_notification(message: bytes) -> tuple[str, int, list[bytes]]:
    """Decode a notification of form 0, which APPEND publishes where the log has no foreign events: epoch, offset,
    events in order."""
    at = 1 + message[0]
    epoch = message[1:at].decode()
    (first,) = struct.unpack_from(">Q", message, at)
    at += 8
    events = []
    while at < len(message):
        (size,) = struct.unpack_from(">I", message, at)
        at += 4 + size
        events.append(message[at - size : at])
    return epoch, first, events


def parse_notification(message: bytes) -> Notification:
    """Decode a notification of APPEND or RECEIVE. The first byte is the epoch's length and the form.

    Form 0: epoch, offset. RING_NUMBERED: epoch, offset, sequence. RING_FOREIGN: epoch, offset, feed key, sequence. Each
    form is followed by the events, each preceded by its length.
    """
    form = message[0]
    at = 1 + (form & NOTIFICATION_EPOCH)
    epoch = message[1:at].decode()
    (first,) = struct.unpack_from(">Q", message, at)
    at += 8
    feed, sequence = OWN, first
    if form > NOTIFICATION_EPOCH:
        if form & NOTIFICATION_FOREIGN:
            feed = message[at : at + KEY_CHARS].decode()
            at += KEY_CHARS
        (sequence,) = struct.unpack_from(">Q", message, at)
        at += 8
    events = []
    while at < len(message):
        (size,) = struct.unpack_from(">I", message, at)
        at += 4 + size
        events.append(message[at - size : at])
    return Notification(epoch, first, events, feed, sequence)


def runs(events: Sequence[Event]) -> list[Sequence[Event]]:
    """Split `events` so that each part is within the bounds of one script call."""
    if len(events) <= RUN_EVENTS_MAX and sum(len(event.body) for event in events) <= RUN_BYTES_MAX:
        return [events]
    parts: list[Sequence[Event]] = []
    begin = size = 0
    for index, event in enumerate(events):
        if index - begin >= RUN_EVENTS_MAX or (size + len(event.body) > RUN_BYTES_MAX and index > begin):
            parts.append(events[begin:index])
            begin, size = index, 0
        size += len(event.body)
    parts.append(events[begin:])
    return parts
