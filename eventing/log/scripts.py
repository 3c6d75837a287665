"""The Lua scripts of the log, their arguments and answers: pure, shared by the synchronous and asynchronous callers.

Layout of a log: lua/common.lua. Every change of a log is one script, so it happens whole or not at all.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from eventing.core.cloudevents import Event
from eventing.core.history import HistoryBounds
from eventing.core.positions import LogState
from eventing.log import keys

RUN_EVENTS_MAX = 500  # events of one script call; Lua can pass 8,000 values to a command
RUN_BYTES_MAX = 1024 * 1024  # bytes of one script call: Redis serves nobody else meanwhile
DIGEST_BYTES = 12  # of SHA-256's relative BLAKE2b over (source, id): a chance collision within a window is < 1e-18
EPOCH_CHARS = 8
_FOLDER = Path(__file__).parent / "lua"


class NoLog(Exception):
    """There is no log of this RP: never made, deleted, or lost with the data plane."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text and the SHA-1 under which Redis keeps it."""

    text: str
    sha: str


def _script(name: str) -> Script:
    text = (_FOLDER / "common.lua").read_text() + (_FOLDER / f"{name}.lua").read_text()
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


APPEND = _script("append")
CREATE = _script("create")
READ = _script("read")
TRIM = _script("trim")
ACKNOWLEDGE = _script("acknowledge")
FLOOR = _script("floor")


class Appended(NamedTuple):
    """Where events were put: the log's epoch, each event's offset, and which repeat an event that is there already."""

    epoch: str
    offsets: list[int]
    duplicates: list[bool]


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive events of a log and its extent when they were read; `events[i]` has offset `first + i`."""

    state: LogState
    first: int
    events: list[bytes]


def new_epoch() -> str:
    """A name for a new life of a log's numbering, never used before: 40 random bits."""
    return base64.b32encode(os.urandom(5)).decode().lower()[:EPOCH_CHARS]


def digest(event: Event) -> bytes:
    """What is remembered of an event's (source, id) to recognise its repetition."""
    return hashlib.blake2b(f"{event.source}\n{event.id}".encode(), digest_size=DIGEST_BYTES).digest()


def append_args(rp: str, events: Sequence[Event], window_s: int, ids_max: int) -> list[Any]:
    """Key count, keys and arguments of APPEND. At most RUN_EVENTS_MAX events."""
    return [
        4,
        *keys.log_keys(rp),
        keys.bell_channel(rp),
        window_s * 1000,
        ids_max // 2,
        len(events),
        *[digest(event) for event in events],
        *[event.body for event in events],
    ]


def appended(answer: list[Any], count: int) -> Appended:
    """APPEND's answer for `count` events."""
    epoch = answer[0].decode()
    if len(answer) == 3:
        return Appended(epoch, list(range(answer[1], answer[1] + count)), [False] * count)
    return Appended(epoch, [abs(offset) for offset in answer[3]], [offset < 0 for offset in answer[3]])


def create_args(rp: str, bounds: HistoryBounds) -> list[Any]:
    """Key count, keys and arguments of CREATE."""
    age_ms = (bounds.max_age_s or 0) * 1000
    return [4, *keys.log_keys(rp), new_epoch(), bounds.max_events, bounds.max_bytes, age_ms]


def floor_args(rp: str, bounds: HistoryBounds) -> list[Any]:
    """Key count, keys and arguments of FLOOR."""
    age_ms = (bounds.max_age_s or 0) * 1000
    return [2, *keys.log_keys(rp)[:2], bounds.max_events, bounds.max_bytes, age_ms]


def read_args(rp: str, first: int, events_max: int, bytes_max: int) -> list[Any]:
    """Key count, keys and arguments of READ; `events_max` 0 reads the extent only."""
    return [2, *keys.log_keys(rp)[:2], first, events_max, bytes_max]


def log_state(answer: list[Any]) -> LogState:
    """The extent that CREATE and READ answer with."""
    return LogState(answer[0].decode(), answer[1], answer[2], answer[3])


def run(answer: list[Any]) -> Run:
    """READ's answer."""
    return Run(log_state(answer), answer[4], answer[5:])


def parse_bell(message: bytes) -> tuple[str, int, list[bytes]]:
    """What APPEND publishes: epoch, offset of the first event, and the events in order."""
    at = 1 + message[0]
    epoch = message[1:at].decode()
    high, low = struct.unpack_from(">II", message, at)
    at += 8
    events = []
    while at < len(message):
        (size,) = struct.unpack_from(">I", message, at)
        at += 4 + size
        events.append(message[at - size : at])
    return epoch, (high << 32) + low, events


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
