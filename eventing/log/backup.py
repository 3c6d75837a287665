"""The data plane as records of a backup, and back: what of Redis cannot be made again.

Kept are the logs with all that is stored beside them under their RP's tag, and messages that are still to be sent to
subscribers. Left out is what processes make anew at a start: presence, turns, load samples, links and notes about peers,
the overlay's queues, tasks. The domain then starts as one whose Redis was lost, with its logs.

Every log is serialized at one instant by DUMP, which any Redis offers to any client, without access to its host. Logs are
independent of each other, so those of a running domain are read one after the other. A stream that is large is read in
pages up to the entry that was its newest at that instant: entries never change, and are only removed from the beginning.

Records, each one MessagePack value:
    ["d", key, expiry, value]   a key as DUMP serialized it; expiry in Unix ms, 0 for none
    ["p", key, [[id, fields]]]  the next entries of a large stream
    ["r", key]                  the entries of the stream before this record left the history meanwhile
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from redis.exceptions import ResponseError

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.log import scripts
from eventing.log.control import logs_only
from eventing.store import keys
from eventing.store.client import client, commands_all, run_script_all

LOGS_AT_ONCE = 16
WHOLE_BYTES_MAX = 1024 * 1024  # a larger stream is read in pages, so that Redis serves others in between
PAGE_ENTRIES = 1000
PAGE_BYTES = 1024 * 1024
LOADED_BYTES_AT_ONCE = 4 * 1024 * 1024
KEYS_AT_ONCE = 1000
MESSAGES = (keys.PUSH_ENDINGS_KEY, keys.PUSH_ENDINGS_TAKEN_KEY, keys.HUB_REQUESTS_KEY)
_PARTS = r"log|meta|ids|ids-before|feeds|vectors|cursors|floors|gaps|intake-uses|seals:[a-z2-7]{16}|(?:shared|push):[\w.:-]{1,100}"
_KEY = re.compile(rf"herald:\{{[\w./-]{{1,100}}\}}:(?:{_PARTS})", re.ASCII)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgpack_reader(list)


class DataPlaneCounts(NamedTuple):
    """Contents of a data plane: logs, and events in them."""

    logs: int
    events: int


class UnknownSerialization(Exception):
    """This Redis cannot read the value: a newer one serialized it, or it is damaged."""


class DataPlaneRecords:
    """The records of the data plane in use, with counts of what was read so far."""

    def __init__(self) -> None:
        self.logs = 0
        self.events = 0

    def __iter__(self) -> Iterator[bytes]:
        rps, beside = _logs_found()
        for begin in range(0, len(rps), LOGS_AT_ONCE):
            some = rps[begin : begin + LOGS_AT_ONCE]
            arguments = [
                [1, keys.meta_key(rp), keys.rp_prefix(rp), WHOLE_BYTES_MAX, *beside.get(rp, ())] for rp in some
            ]
            lengths = commands_all(client(), [("XLEN", keys.log_keys(rp)[0]) for rp in some])
            answers = logs_only(run_script_all(scripts.BACKUP_LOG, arguments))
            for rp, answer, length in zip(some, answers, lengths, strict=True):
                if answer is not None:  # it was deleted meanwhile
                    self.logs += 1
                    self.events += int(length)
                    yield from _log_records(rp, answer)
        now = client().time()
        for key in MESSAGES:
            value: Any = client().dump(key)
            left_ms: Any = client().pttl(key)
            if value is not None:
                expiry = int(now[0]) * 1000 + left_ms if left_ms >= 0 else 0
                yield _encode(["d", key, expiry, value])


def _logs_found() -> tuple[list[str], dict[str, list[str]]]:
    """Return the RPs that have a log, and by RP the names of the keys that no other key names."""
    rps: dict[str, None] = {}
    beside: dict[str, list[str]] = {}
    for found in client().scan_iter(match="herald:[{]*", count=KEYS_AT_ONCE):
        rp, _, name = found.decode()[len("herald:{") :].partition("}:")
        if name == "meta":
            rps[rp] = None
        elif name.startswith(("shared:", "push:")) and name not in beside.setdefault(rp, []):
            beside[rp].append(name)
    return list(rps), beside


def _log_records(rp: str, answer: list[Any]) -> Iterator[bytes]:
    for name, kind, until_ms, value in answer[1:]:
        key = keys.rp_prefix(rp) + name.decode()
        if kind == b"d":
            yield _encode(["d", key, int(until_ms), value])
        elif value:
            yield from _pages(key, value.decode(), contiguous=name == b"log")


def _pages(key: str, newest: str, *, contiguous: bool) -> Iterator[bytes]:
    """Read a stream in pages. In one whose ids are contiguous, entries that left it meanwhile are noticed."""
    begin, after = "-", None
    count = 64
    while True:
        entries: Any = client().xrange(key, min=begin, max=newest, count=count)
        if not entries:
            return
        first = int(entries[0][0].split(b"-")[0])
        if contiguous and after is not None and first != after + 1:
            yield _encode(["r", key])
        after = int(entries[-1][0].split(b"-")[0])
        rows = [[name, [part for pair in fields.items() for part in pair]] for name, fields in entries]
        page = _encode(["p", key, rows])
        yield page
        begin = f"({entries[-1][0].decode()}"
        count = max(1, min(PAGE_ENTRIES, count * PAGE_BYTES // max(1, len(page))))


def load(records: Iterable[bytes]) -> Iterator[int]:
    """Write records into the data plane in use; yields the number of those that were written after each round trip.

    Raises Undecodable for what is no record, UnknownSerialization, redis.RedisError.
    """
    commands: list[tuple[Any, ...]] = []
    size = written = 0
    for record in records:
        commands += _commands(record)
        size += len(record)
        written += 1
        if size >= LOADED_BYTES_AT_ONCE:
            _write(commands)
            commands, size = [], 0
            yield written
    _write(commands)
    yield written


def _commands(record: bytes) -> list[tuple[Any, ...]]:
    """Return the commands that write a record, whose members and key are checked."""
    match _decoded(record):
        case ["d", str() as key, int() as expiry, bytes() as value] if _known(key) and 0 <= expiry < 2**53:
            return [("RESTORE", key, expiry, value, "REPLACE", *(("ABSTTL",) if expiry else ()))]
        case ["p", str() as key, list() as rows] if _known(key):
            return [("XADD", key, name, *fields) for name, fields in map(_entry, rows)]
        case ["r", str() as key] if _known(key):
            return [("DEL", key)]
    raise Undecodable("A record of the data plane is malformed.")


def _decoded(record: bytes) -> list[Any]:
    try:
        found: list[Any] = _decode(record)
    except Undecodable as error:
        raise Undecodable(f"A record of the data plane cannot be read: {error}.") from None
    return found


def _known(key: str) -> bool:
    return key in MESSAGES or _KEY.fullmatch(key) is not None


def _entry(row: Any) -> tuple[bytes, list[bytes]]:
    match row:
        case [bytes() as name, list() as fields] if (
            re.fullmatch(rb"[0-9]{1,16}-[0-9]{1,16}", name)
            and fields
            and len(fields) % 2 == 0
            and all(isinstance(one, bytes) for one in fields)
        ):
            return name, fields
    raise Undecodable("An entry of the data plane is malformed.")


def _write(commands: list[tuple[Any, ...]]) -> None:
    if not commands:
        return
    for answer in commands_all(client(), commands):
        if isinstance(answer, ResponseError):
            if "DUMP payload" in str(answer) or "Bad data format" in str(answer):
                raise UnknownSerialization(str(answer))
            raise answer


def is_empty() -> bool:
    """Return whether the data plane in use has no log."""
    return next(client().scan_iter(match="herald:[{]*", count=KEYS_AT_ONCE), None) is None


def clear() -> None:
    """Remove all of Herald's keys from the data plane in use."""
    some: list[Any] = []
    for key in client().scan_iter(match="herald:*", count=KEYS_AT_ONCE):
        if key.decode(errors="replace") not in (keys.RESTORING_KEY, keys.SHARD_KEY):
            some.append(key)
        if len(some) >= KEYS_AT_ONCE:
            _unlink(some)
            some = []
    _unlink(some)


def _unlink(some: list[Any]) -> None:
    if some:
        commands_all(client(), [("UNLINK", key) for key in some])


def gateways_alive() -> int:
    """Count the gateways that use the data plane now, of any host."""
    now: Any = client().time()
    return int(client().zcount(keys.GATEWAYS_KEY, now[0], "+inf"))


def restoring_note() -> None:
    """Note in the data plane that it is not whole, so that no domain starts on it (`restoring_end`)."""
    client().set(keys.RESTORING_KEY, "1")


def restoring_end() -> None:
    """The data plane is whole."""
    client().delete(keys.RESTORING_KEY)


def is_restoring() -> bool:
    """Return whether a restore into the data plane was begun and not finished."""
    return bool(client().exists(keys.RESTORING_KEY))
