"""Lags as the log has them: what is lost is what the next pull reports as a gap, by offset and by version vector."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from demo.harness.servers import wait_for
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.events.lag import Lag
from eventing.gateway.delivery.shared_subscriptions import NO_EPOCH
from eventing.gateway.delivery.start_positions import own_feed, start_of
from eventing.log import control, scripts
from eventing.log.lags import CALL_MAX, LagQuery, LagResult, lags
from eventing.log.reader import LogReader
from eventing.log.shared_subscriptions import SubscriptionKey, join
from eventing.store.connection import async_client
from tests.log.harness import NEW_RP, make_event
from tests.log.test_federated import receive

B = Feed("b.example", "abc").key
GRANTED = HistoryBounds(10, 10_000)


@pytest.fixture
def rp(redis_url: str) -> Iterator[str]:
    """An RP whose log keeps ten events."""
    made = next(NEW_RP)
    control.ensure_log(made, GRANTED)
    yield made
    control.delete_log(made)


def publish(rp: str, count: int, name: str = "e", bounds: HistoryBounds = GRANTED) -> str:
    stamp = time.monotonic_ns()
    return control.append(rp, [make_event(f"{name}{stamp}-{number}") for number in range(count)], bounds).epoch


def one(rp: str, start: str, bounds: HistoryBounds = GRANTED, *, shared: bool = False) -> LagResult:
    return lags([LagQuery(rp, "sub_a", start, bounds, shared)])[0]


async def gap(rp: str, redis_url: str, cursor: Cursor, bounds: HistoryBounds = GRANTED) -> int:
    """How many events the next pull reports as lost."""
    client = async_client(redis_url)
    reader = LogReader(client)
    try:
        start = await start_of(
            reader, rp, cursor, await reader.state(rp), oldest_granted=await reader.oldest_granted(rp, bounds)
        )
    finally:
        await client.aclose()
    if start.gap is None:
        return 0
    if start.gap.feeds is not None:
        return sum(last - first + 1 for first, last in start.gap.feeds.values())
    return start.gap.end - start.gap.start + 1


@pytest.mark.parametrize(
    "bounds",
    [GRANTED, HistoryBounds(4, 10_000), HistoryBounds(10, 150), HistoryBounds(100, 10**9, 3600)],
    ids=["the log's", "fewer events", "fewer bytes", "wider"],
)
@pytest.mark.parametrize("offset", [0, 12, 24, 25, 99])
async def test_by_offset(rp: str, redis_url: str, bounds: HistoryBounds, offset: int) -> None:
    cursor = Cursor(publish(rp, 25), offset)
    found = one(rp, str(cursor), bounds)
    assert found.lag.lost == await gap(rp, redis_url, cursor, bounds)
    assert found.lag.events == 25 - (offset if offset <= 25 else 0)
    assert found.read == 25 - found.lag.events
    held = found.lag.events - found.lag.lost
    assert (found.waiting.events if found.waiting else 0) == held
    assert (found.oldest_ms is not None) == (held > 0)
    assert found.bounds.max_events == min(10, bounds.max_events)


def test_the_cursor_that_is_kept_comes_before_where_it_began(rp: str) -> None:
    epoch = publish(rp, 25)
    control.subscription_cursor_set(rp, "sub_a", Cursor(epoch, 20))
    found = one(rp, f"{epoch}:0")
    assert (found.cursor, found.lag) == (Cursor(epoch, 20), Lag(5, 0))
    assert found.waiting is not None
    assert 0 < found.waiting.bytes < GRANTED.max_bytes
    assert one(rp, "oldepoch:7").lag == Lag(5, 0)
    control.subscription_forget(rp, "sub_a")
    assert one(rp, "oldepoch:7").lag == Lag(25, 15), "an epoch that ended is none of the log's events"


def test_without_a_log_nothing_is_behind(redis_url: str) -> None:
    assert one(next(NEW_RP), "abc:7").lag == Lag(0, 0)


def test_what_the_age_bound_ends_is_lost(rp: str) -> None:
    epoch = publish(rp, 3)
    control.ensure_log(rp, HistoryBounds(10, 10_000, 1))
    wait_for(lambda: one(rp, f"{epoch}:0").lag == Lag(3, 3), 20, about="the events are too old")
    assert one(rp, f"{epoch}:0").waiting is None


async def test_by_vector_at_a_replica_whose_log_has_other_offsets(rp: str, redis_url: str) -> None:
    """Own events and another domain's in turn; what is acknowledged is a vector, whatever the cursor here says."""
    epoch = publish(rp, 4)
    receive(rp, B, 1, 6)
    publish(rp, 6)
    receive(rp, B, 7, 9)
    own = own_feed(epoch)
    read: tuple[dict[str, int], ...] = (
        {},
        {own: 4, B: 2},
        {own: 10, B: 2},
        {own: 3, B: 9},
        {own: 10, B: 8},
        {own: 10, B: 9},
    )
    for number, acked in enumerate(read):
        shared_key = f"sub_{number}"
        join(SubscriptionKey(rp, shared_key), acked, 60)
        (found,) = lags([LagQuery(rp, shared_key, f"{epoch}:0", GRANTED, True)])
        assert found.lag.events == 19 - sum(acked.values()), acked
        assert found.lag.lost == await gap(rp, redis_url, Cursor(NO_EPOCH, 0, acked)), acked
        assert (found.waiting is None) == (found.lag.events == found.lag.lost), acked


def test_many_of_one_log_are_asked_in_parts_and_answered_in_order(rp: str) -> None:
    epoch = publish(rp, 8)
    asked = [LagQuery(rp, f"sub_{number}", f"{epoch}:{number % 9}", GRANTED) for number in range(2 * CALL_MAX + 3)]
    other = next(NEW_RP)
    control.ensure_log(other, GRANTED)
    mixed = [LagQuery(other, "sub_x", "abc:0", GRANTED), *asked, LagQuery(other, "sub_y", "abc:0", GRANTED)]
    found = lags(mixed)
    assert [each.lag.events for each in found[1:-1]] == [8 - number % 9 for number in range(len(asked))]
    assert len(scripts.lags_args(rp, [])) == 4
    control.delete_log(other)
