"""log/lineage.py: a restored log goes on in a new epoch with every event at its offset (its feeds: test_federated_machine.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from eventing.conf import config
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import FEEDS_MAX, Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.events.lineage import Rewound
from eventing.core.events.positions import OffsetGap, Start
from eventing.gateway.delivery.start_positions import start_of
from eventing.log import control, federated, lineage
from eventing.log.lineage import lineage_begin
from eventing.log.reader import LogReader
from eventing.store import keys
from eventing.store.client import client
from eventing.store.connection import async_client
from tests.log.harness import NEW_RP, make_event
from tests.replication.own_logs import publish

BOUNDS = HistoryBounds(1000, 1 << 20)


@pytest.fixture
def rp(redis_url: str) -> str:
    """An RP with ten events."""
    name = next(NEW_RP)
    control.append(name, [make_event(str(number)) for number in range(10)], BOUNDS)
    return name


@pytest.fixture
async def reader(redis_url: str) -> AsyncIterator[LogReader]:
    connection = async_client(redis_url)
    made = LogReader(connection)
    yield made
    made.close()
    await connection.aclose()


async def begin(reader: LogReader, rp: str, cursor: Cursor) -> Start:
    """The start of a reader that shows `cursor`."""
    return await start_of(reader, rp, cursor, await reader.state(rp))


async def start(reader: LogReader, rp: str, cursor: Cursor) -> tuple[int, bool]:
    """The next offset of a reader that shows `cursor`, and whether nothing is missing."""
    found = await begin(reader, rp, cursor)
    return found.next, found.recovered


async def test_a_cursor_of_before_the_backup_goes_on_where_it_stands_in_every_later_epoch(
    reader: LogReader, rp: str
) -> None:
    was = (await reader.state(rp)).epoch
    for _ in range(3):
        epoch = lineage_begin(rp)
        assert (await reader.state(rp)).epoch == epoch != was
        assert await start(reader, rp, Cursor(was, 4)) == (5, True)
        assert await start(reader, rp, Cursor(was, 10)) == (11, True)
        publish(rp, 2, bounds=BOUNDS)


async def test_a_cursor_of_after_the_backup_is_told_what_was_withdrawn_whatever_has_its_offset_now(
    reader: LogReader, rp: str
) -> None:
    was = (await reader.state(rp)).epoch
    epoch = lineage_begin(rp)
    publish(rp, 20, bounds=BOUNDS)
    found = await begin(reader, rp, Cursor(was, 12))
    assert (found.next, found.recovered) == (11, False)
    assert found.gap == OffsetGap(epoch, 11, 10, rewound=Rewound(was, 11, 12))
    assert await start(reader, rp, Cursor("abcdefgh", 2)) == (1, False)


def test_events_stay_and_new_ones_follow(rp: str) -> None:
    was = control.read(rp, 1, 100, 1 << 20)
    epoch = lineage_begin(rp)
    appended = control.append(rp, [make_event("3"), make_event("new")], BOUNDS)
    assert appended == (epoch, [4, 11], [True, False]), "a repetition is recognised as before"
    assert control.read(rp, 1, 100, 1 << 20).events == [*was.events, b"new"]


def test_durable_subscriptions_go_on_where_they_were(rp: str) -> None:
    was = control.log_state(rp)
    assert was is not None
    control.subscription_cursor_set(rp, "sub_a", Cursor(was.epoch, 7))
    control.subscription_cursor_set(rp, "sub_b", Cursor("zzzzzzzz", 3))
    control.subscription_cursor_set(rp, "sub_c", Cursor(was.epoch, 70))
    epoch = lineage_begin(rp)
    assert control.subscription_cursor(rp, "sub_a") == Cursor(epoch, 7)
    assert control.subscription_cursor(rp, "sub_b") == Cursor("zzzzzzzz", 3)
    assert control.subscription_cursor(rp, "sub_c") == Cursor(was.epoch, 70), "it was never delivered so far"


def test_only_so_many_epochs_are_remembered(rp: str) -> None:
    epochs = [lineage_begin(rp) for _ in range(66)]
    assert list(control.lineage(rp).ends) == epochs[1:65]


def test_a_log_that_begins_anew_continues_none(rp: str) -> None:
    lineage_begin(rp)
    federated.renumber(rp)
    assert client().hget(keys.meta_key(rp), "l") is None


def test_a_sealed_log_with_as_many_feeds_as_there_may_be_begins_anew_with_its_unsealed_events(rp: str) -> None:
    meta = keys.meta_key(rp)
    client().hset(meta, mapping={"q": 4, "w": Feed(config().domain, "x").key})
    client().hset(keys.feeds_key(rp), mapping={f"{number:a>16}": 1 for number in range(FEEDS_MAX - 1)})
    epoch = lineage_begin(rp)
    run = control.read(rp, 1, 100, 1 << 20)
    assert run.state.epoch == epoch
    assert [event.decode() for event in run.events] == ["4", "5", "6", "7", "8", "9"]
    assert not client().exists(keys.log_copy_key(rp))


def test_a_log_of_many_entries_is_copied_in_parts(rp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage, "COPIED_AT_ONCE", 3)
    client().hset(keys.meta_key(rp), mapping={"q": 4})
    lineage_begin(rp)
    run = control.read(rp, 1, 100, 1 << 20)
    assert len(run.events) == 10
    assert [(part.begin, part.sequence) for part in run.places] == [(0, 1), (4, 1)]
