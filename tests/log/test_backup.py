"""log/backup.py: the data plane as records, and back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from eventing.core.decoding import Undecodable
from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.log import backup, control
from eventing.log.backup import DataPlaneRecords, UnknownSerialization, load
from eventing.replication.services.sealing import seal_own
from eventing.store import keys
from eventing.store.client import client
from tests.log.harness import NEW_RP, make_event
from tests.replication.own_logs import new_log, publish

BOUNDS = HistoryBounds(100_000, 1 << 26)


@pytest.fixture(autouse=True)
def _empty(transactional_db: None, redis_url: str) -> None:
    client().flushdb()


def held() -> dict[str, tuple[Any, int]]:
    """Value and expiry, in seconds from now, of every key that a backup keeps."""
    found = {}
    for key in client().scan_iter():
        name = key.decode()
        if backup._known(name):
            left: Any = client().ttl(key)
            found[name] = (client().dump(key), left)
    return found


def write(records: list[bytes]) -> None:
    for _ in load(records):
        pass


def test_what_was_read_is_written_and_what_processes_make_anew_is_left_out() -> None:
    sealed = new_log()
    publish(sealed, 20)
    seal_own(sealed)
    control.subscription_cursor_set(sealed, "sub_a", Cursor("abcdefgh", 3))
    client().rpush(keys.push_attempts_key(sealed, "sub_a"), "attempt")
    client().rpush(keys.PUSH_ENDINGS_KEY, "ending")
    client().zadd(keys.GATEWAYS_KEY, {"gw": time.time() + 100})
    client().set(keys.peer_key("b.test", "compared"), "1", ex=100)
    before = held()
    counted = DataPlaneRecords()
    records = list(counted)
    assert (counted.logs, counted.events) == (1, 20)
    client().flushdb()
    write(records)
    assert held() == before
    assert len(before) >= 6
    assert not any(client().exists(key) for key in (keys.GATEWAYS_KEY, keys.peer_key("b.test", "compared")))


def test_a_large_stream_is_read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "WHOLE_BYTES_MAX", 1000)
    monkeypatch.setattr(backup, "PAGE_BYTES", 5000)
    rp = new_log()
    publish(rp, 500)
    records = list(DataPlaneRecords())
    pages = [record for record in records if msgspec.msgpack.decode(record)[0] == "p"]
    assert len(pages) > 3
    assert max(map(len, pages)) < 20_000
    before = control.read(rp, 1, 1000, 1 << 20)
    client().flushdb()
    write(records)
    assert control.read(rp, 1, 1000, 1 << 20) == before


def test_events_that_leave_the_history_while_it_is_read_leave_no_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "WHOLE_BYTES_MAX", 1000)
    rp = new_log()
    publish(rp, 500)
    before = control.read(rp, 1, 1000, 1 << 20)

    def trimmed_meanwhile() -> Iterator[bytes]:
        for record in DataPlaneRecords():
            yield record
            if record[1:3] == b"\xa1p":
                control.trim_log_before(rp, before.state.epoch, 400)

    records = list(trimmed_meanwhile())
    client().flushdb()
    write(records)
    run = control.read(rp, 1, 1000, 1 << 20)
    assert (run.state.first, run.state.next) == (400, 501)
    assert run.events == before.events[399:]


def test_events_that_are_published_meanwhile_are_in_the_backup_or_not_but_never_by_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backup, "LOGS_AT_ONCE", 1)
    rps = [new_log() for _ in range(5)]
    for rp in rps:
        publish(rp, 3)
    records = []
    for record in DataPlaneRecords():
        records.append(record)
        for rp in rps:
            publish(rp, 1)
    client().flushdb()
    write(records)
    for rp in rps:
        run = control.read(rp, 1, 10_000, 1 << 20)
        assert run.state.first == 1
        assert len(run.events) == run.state.next - 1 >= 3


@pytest.mark.parametrize(
    "record",
    [
        b"", b"\xff", b"\xc1", ["x", "herald:restoring"], ["d", "herald:restoring", 0, b""], ["d", "other", 0, b""], ["d", "herald:{a}:log", -1, b""],
        ["d", "herald:{a}:log", "0", b""], ["d", "herald:{a}:log}:x", 0, b""], ["d", "herald:{a}:log\n", 0, b""],
        ["p", "herald:{a}:log", [[b"1-1", []]]], ["p", "herald:{a}:log", [[b"*", [b"e", b"x"]]]], ["p", "herald:{a}:log", [[b"1-1", [b"e"]]]],
        ["p", "herald:{a}:log", [[b"1-1", [b"e", 1]]]], ["r", "herald:peer:{b}:links"], ["r"], [], {}, 7,
    ],
)  # fmt: skip
def test_a_record_that_no_backup_has_is_refused_and_changes_nothing(record: Any) -> None:
    with pytest.raises(Undecodable):
        write([record if isinstance(record, bytes) else msgspec.msgpack.encode(record)])
    assert not client().keys()


def test_a_value_that_this_redis_cannot_read_is_named() -> None:
    control.append(rp := next(NEW_RP), [make_event("1")], BOUNDS)
    value: Any = client().dump(keys.log_keys(rp)[0])
    with pytest.raises(UnknownSerialization):
        write([msgspec.msgpack.encode(["d", "herald:{a}:log", 0, value[:-10] + b"\xff\x7f" + value[-8:]])])


def test_only_herald_s_keys_are_removed_from_a_redis() -> None:
    publish(new_log(), 3)
    client().set("other", "1")
    backup.restoring_note()
    assert not backup.is_empty()
    backup.clear()
    assert backup.is_empty()
    assert client().get("other") == b"1"
    assert backup.is_restoring(), "what says that it is not whole stays"
    backup.restoring_end()
    assert not backup.is_restoring()
