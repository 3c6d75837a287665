"""The client over real sockets, against a scripted peer (fake_gateway.py): what must hold whatever the connection does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import herald.connection
import herald.subscription
import pytest
from herald import Client, ClientClosed, Closed, ConnectionLost, FileCursorStore, Gap, Problem, Received
from herald.subscription import Subscription

from tests.client.fake_gateway import FakeGateway

WAIT_S = 60.0


@pytest.fixture
async def gateway() -> AsyncIterator[FakeGateway]:
    async with FakeGateway() as fake:
        yield fake


@pytest.fixture
async def client(gateway: FakeGateway) -> AsyncIterator[Client]:
    async with Client(gateway.url, token="secret") as made:
        yield made


async def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.005)


async def take(subscription: Subscription, count: int) -> list[Any]:
    async with asyncio.timeout(WAIT_S):
        return [await anext(subscription) for _ in range(count)]


def data(items: list[Any]) -> list[Any]:
    return [item.data for item in items]


# ---- publishing ----


async def test_a_publish_is_confirmed_with_its_place(gateway: FakeGateway, client: Client) -> None:
    confirmation = await client.publish("r", {"celsius": 21.5}, type="weather", id="7", source="/s")
    assert (confirmation.epoch, confirmation.offset, confirmation.duplicate) == ("a", 1, False)
    (event,) = gateway.log("r").events
    assert (event["data"], event["type"], event["id"], event["source"]) == ({"celsius": 21.5}, "weather", "7", "/s")
    assert gateway.handshakes == ["secret"]


async def test_a_publish_whose_confirmation_was_lost_is_stored_once(gateway: FakeGateway, client: Client) -> None:
    gateway.cut_after_storing = 2
    confirmation = await client.publish("r", "once")
    assert confirmation.duplicate
    assert len(gateway.log("r").events) == 1
    assert len(gateway.handshakes) == 3


async def test_many_publishes_are_under_way_at_once_and_keep_their_order(gateway: FakeGateway, client: Client) -> None:
    gateway.cut_after_storing = 1
    answers = [await client.submit("r", [number]) for number in range(200)]
    confirmations = [(await answer)[0] for answer in answers]
    assert [confirmation.offset for confirmation in confirmations] == list(range(1, 201))
    assert [event["data"] for event in gateway.log("r").events] == list(range(200))


async def test_unconfirmed_publishes_are_bounded(gateway: FakeGateway) -> None:
    async with Client(gateway.url, in_flight_max=2) as client:
        await gateway.stop()
        await client.submit("r", [1])
        await client.submit("r", [2])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.submit("r", [3])
        await gateway.start()
        await client.flush()
        await client.submit("r", [4])
        await client.flush()
        assert [event["data"] for event in gateway.log("r").events] == [1, 2, 4]


async def test_a_batch_is_one_frame_and_answers_each_event(gateway: FakeGateway, client: Client) -> None:
    again = {"specversion": "1.0", "id": "x", "source": "/s", "type": "t"}
    confirmations = await (await client.submit("r", [again, "b", again]))
    assert [(one.offset, one.duplicate) for one in confirmations] == [(1, False), (2, False), (1, True)]
    assert len(gateway.frames) == 1


async def test_a_refused_publish_raises_the_problem(gateway: FakeGateway, client: Client) -> None:
    gateway.refusals = [{"type": "urn:herald:problem:forbidden", "title": "Operation not permitted"}]
    with pytest.raises(Problem) as caught:
        await client.publish("r", 1)
    assert caught.value.code == "forbidden"


async def test_a_publish_refused_for_the_moment_is_tried_again(gateway: FakeGateway, client: Client) -> None:
    gateway.refusals = [{"type": "urn:herald:problem:rate-limited", "title": "Too many", "retry_after_s": 0.05}] * 2
    assert (await client.publish("r", 1)).offset == 1
    assert len({frame["event"]["id"] for frame in gateway.frames}) == 1


async def test_a_publish_that_is_not_confirmed_in_time_says_that_repeating_is_safe(
    gateway: FakeGateway, client: Client
) -> None:
    await client.publish("r", 0)  # connected: what follows arrives before its time is over
    gateway.cut_after_storing = 1000
    with pytest.raises(ConnectionLost, match="again with the same id is safe"):
        await client.publish("r", 1, timeout_s=1)
    gateway.cut_after_storing = 0
    await client.publish("r", 2)
    assert [event["data"] for event in gateway.log("r").events] == [0, 1, 2]


async def test_publishing_is_not_held_up_by_a_reader_that_does_not_read(gateway: FakeGateway, client: Client) -> None:
    async with client.subscribe("r"):
        for number in range(herald.subscription.QUEUE_EVENTS_MAX + 100):
            await client.submit("r", [number])
        await client.flush()
    assert gateway.log("r").end == herald.subscription.QUEUE_EVENTS_MAX + 100


@pytest.mark.parametrize("bad", [float("nan"), {"x": float("inf")}, {"specversion": "1.0"}, "\ud800"])
async def test_what_cannot_be_an_event_is_refused_before_it_is_sent(
    gateway: FakeGateway, client: Client, bad: Any
) -> None:
    with pytest.raises(ValueError):
        await client.publish("r", bad)
    assert gateway.frames == []


async def test_closing_the_client_ends_what_is_under_way(gateway: FakeGateway) -> None:
    client = Client(gateway.url)
    await gateway.stop()
    answer = await client.submit("r", [1])
    await client.aclose()
    with pytest.raises(ClientClosed):
        await answer
    with pytest.raises(ClientClosed):
        await client.publish("r", 1)


# ---- subscribing ----


async def test_a_reader_misses_and_repeats_nothing_across_cuts_and_restarts(
    gateway: FakeGateway, client: Client
) -> None:
    async with client.subscribe("r", from_="earliest") as subscription:
        await gateway.append("r", 1, 2)
        assert data(await take(subscription, 2)) == [1, 2]
        gateway.cut()
        await gateway.append("r", 3)
        assert data(await take(subscription, 1)) == [3]
        await gateway.stop()
        await gateway.append("r", 4)
        await gateway.start()
        await gateway.append("r", 5)
        assert data(await take(subscription, 2)) == [4, 5]


async def test_awaiting_a_subscription_means_that_nothing_published_after_is_missed(
    gateway: FakeGateway, client: Client
) -> None:
    subscription = await client.subscribe("r")
    await client.publish("r", "first")
    assert data(await take(subscription, 1)) == ["first"]


async def test_the_next_process_goes_on_from_the_state_file(gateway: FakeGateway, tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with Client(gateway.url) as client, client.subscribe("r", state=state) as subscription:
        await gateway.append("r", 1, 2, 3)
        assert data(await take(subscription, 2)) == [1, 2]
    await gateway.append("r", 4)
    async with Client(gateway.url) as client, client.subscribe("r", state=state) as subscription:
        assert data(await take(subscription, 2)) == [3, 4]


async def test_a_reader_that_saw_nothing_yet_still_goes_on_from_where_it_began(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    async with Client(gateway.url) as client, client.subscribe("r", state=tmp_path / "state"):
        pass
    await gateway.append("r", 1)
    async with Client(gateway.url) as client, client.subscribe("r", state=tmp_path / "state") as subscription:
        assert data(await take(subscription, 1)) == [1]


async def test_an_event_whose_handling_failed_is_given_to_the_next_process_again(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    await gateway.append("r", 1, 2)

    async def handle() -> None:
        async with (
            Client(gateway.url) as client,
            client.subscribe("r", from_="earliest", state=tmp_path / "state") as subscription,
        ):
            async for item in subscription:
                if isinstance(item, Received) and item.data == 2:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await handle()
    assert FileCursorStore(tmp_path / "state").load("r") == "a:1"


async def test_lost_history_is_an_item_in_its_place(gateway: FakeGateway, client: Client) -> None:
    await gateway.append("r", *range(1, 11))
    async with client.subscribe("r", from_="a:3") as subscription:
        assert data(await take(subscription, 7)) == [4, 5, 6, 7, 8, 9, 10]
        await gateway.stop()
        await gateway.append("r", *range(11, 21))
        gateway.log("r").first = 16
        await gateway.start()
        gap, event = await take(subscription, 2)
        assert isinstance(gap, Gap)
        assert (gap.start, gap.end) == (11, 15)
        assert event.offset == 16


async def test_lost_history_goes_to_the_callback_if_there_is_one(gateway: FakeGateway, client: Client) -> None:
    await gateway.append("r", 1, 2, 3)
    gateway.log("r").first = 3
    gaps: list[Gap] = []
    async with client.subscribe("r", from_="a:0", on_gap=gaps.append) as subscription:
        assert data(await take(subscription, 1)) == [3]
    assert [(gap.start, gap.end) for gap in gaps] == [(1, 2)]


async def test_many_subscriptions_share_one_connection(gateway: FakeGateway, client: Client) -> None:
    subscriptions = [await client.subscribe(f"r{number}") for number in range(50)]
    assert len(gateway.connections) == 1
    for number in range(50):
        await gateway.append(f"r{number}", number)
    assert [data(await take(subscription, 1)) for subscription in subscriptions] == [[number] for number in range(50)]


async def test_one_rendezvous_point_can_be_read_twice(gateway: FakeGateway, client: Client) -> None:
    gateway.names["/d/name/"] = "r"
    await gateway.append("r", 1, 2)
    by_id = await client.subscribe("r", from_="earliest")
    by_name = client.subscribe("/d/name/", from_="earliest")
    twice = client.subscribe("r", from_="last")
    assert data(await take(by_name, 2)) == [1, 2]
    assert data(await take(by_id, 2)) == [1, 2]
    assert data(await take(twice, 1)) == [2]
    await gateway.append("r", 3)
    for subscription in (by_id, by_name, twice):
        assert data(await take(subscription, 1)) == [3]


async def test_a_stalled_reader_is_parked_and_the_others_go_on(
    gateway: FakeGateway, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(herald.connection, "PARK_S", 0.1)
    stalled = await client.subscribe("stalled")
    other = await client.subscribe("other")
    total = herald.subscription.QUEUE_EVENTS_MAX + 500
    for number in range(total):
        await gateway.append("stalled", number)
    await until(lambda: {"op": "unsubscribe", "rp": "stalled"}.items() <= gateway.frames[-1].items())
    assert stalled.full
    await gateway.append("other", "here")
    assert data(await take(other, 1)) == ["here"]
    assert data(await take(stalled, total)) == list(range(total))
    assert len(gateway.connections) == 1


async def test_a_slow_reader_holds_a_bounded_number_of_events(gateway: FakeGateway, client: Client) -> None:
    bound = herald.subscription.QUEUE_EVENTS_MAX
    await gateway.append("r", *range(5 * bound))
    subscription = await client.subscribe("r", from_="earliest")
    await until(lambda: subscription.full)
    assert len(subscription._queue) <= bound
    assert data(await take(subscription, 5 * bound)) == list(range(5 * bound))


async def test_a_reader_whose_queue_is_full_can_subscribe_and_publish(gateway: FakeGateway, client: Client) -> None:
    await gateway.append("r", *range(3 * herald.subscription.QUEUE_EVENTS_MAX))
    full = await client.subscribe("r", from_="earliest")
    await until(lambda: full.full)
    async with asyncio.timeout(WAIT_S):
        await client.publish("other", 1)
        async with client.subscribe("other", from_="earliest") as other:
            assert data(await take(other, 1)) == [1]


async def test_a_closed_subscription_ends_the_iteration(gateway: FakeGateway, client: Client) -> None:
    subscription = await client.subscribe("r")
    await gateway.append("r", 1)
    seen = []
    async for item in subscription:
        assert isinstance(item, Received)
        seen.append(item.data)
        await subscription.aclose()
    assert seen == [1]


# ---- durable subscriptions ----


async def test_an_attached_subscription_acknowledges_what_was_dealt_with(gateway: FakeGateway, client: Client) -> None:
    gateway.acked["s"] = ("r", 0)
    await gateway.append("r", 1, 2, 3)
    async with client.attach("s", renew=False) as subscription:
        assert data(await take(subscription, 2)) == [1, 2]
    assert gateway.acked["s"] == ("r", 2)
    async with client.attach("s", renew=False) as subscription:
        assert data(await take(subscription, 1)) == [3]


async def test_an_attached_subscription_repeats_nothing_within_one_process(
    gateway: FakeGateway, client: Client
) -> None:
    gateway.acked["s"] = ("r", 0)
    await gateway.append("r", 1, 2)
    async with client.attach("s", auto_ack=False, renew=False) as subscription:
        first, _ = await take(subscription, 2)
        gateway.cut()
        await gateway.append("r", 3)
        assert data(await take(subscription, 1)) == [3]
        await subscription.ack(first)
        assert gateway.acked["s"] == ("r", 1)


# ---- the end of a connection ----


async def test_reconnect_codes_reconnect(gateway: FakeGateway, client: Client) -> None:
    subscription = await client.subscribe("r")
    for code in (4000, 4001, 1001, 1011, 1012, 1013):
        await gateway.close(code)
        await gateway.append("r", code)
        assert data(await take(subscription, 1)) == [code]


@pytest.mark.parametrize("code", [4100, 4101, 4102, 4103, 4104, 1008])
async def test_terminal_codes_end_with_an_error(gateway: FakeGateway, client: Client, code: int) -> None:
    subscription = await client.subscribe("r")
    await gateway.close(code)
    with pytest.raises(Closed) as caught:
        await take(subscription, 1)
    assert caught.value.code == code


async def test_one_lost_right_does_not_end_the_other_subscriptions(gateway: FakeGateway, client: Client) -> None:
    gone = await client.subscribe("gone")
    other = await client.subscribe("other")
    gateway.refusals = [{"type": "urn:herald:problem:not-found", "title": "Resource not found"}]
    await gateway.close(4103)
    with pytest.raises(Problem):
        await take(gone, 1)
    await gateway.append("other", 1)
    assert data(await take(other, 1)) == [1]


async def test_an_announced_final_close_ends_with_an_error(gateway: FakeGateway, client: Client) -> None:
    subscription = await client.subscribe("r")
    await gateway.say(op="closing", reason="You were removed.", retry=False)
    gateway.cut()
    with pytest.raises(Closed, match="You were removed"):
        await take(subscription, 1)


async def test_an_expired_token_is_replaced_if_there_is_a_source_of_tokens(gateway: FakeGateway) -> None:
    tokens = iter(["first", "second"])
    async with Client(gateway.url, token=lambda: next(tokens)) as client:
        subscription = await client.subscribe("r")
        await gateway.close(4100)
        await gateway.append("r", 1)
        assert data(await take(subscription, 1)) == [1]
    assert gateway.handshakes == ["first", "second"]


async def test_a_refused_handshake_raises_the_problem(gateway: FakeGateway, client: Client) -> None:
    problem = {"type": "urn:herald:problem:unauthenticated", "title": "Valid token required", "detail": "Make one."}
    gateway.refuse_handshakes = [(401, problem, None)]
    with pytest.raises(Problem) as caught:
        await client.subscribe("r")
    assert (caught.value.code, caught.value.status, caught.value.detail) == ("unauthenticated", 401, "Make one.")


async def test_a_handshake_refused_for_the_moment_is_tried_again(gateway: FakeGateway, client: Client) -> None:
    gateway.refuse_handshakes = [(503, {}, "0"), (429, {}, "0"), (502, {}, None)]
    await client.subscribe("r")
    assert len(gateway.handshakes) == 4


async def test_nobody_there_is_said_after_the_first_patience(gateway: FakeGateway) -> None:
    await gateway.stop()
    async with Client(gateway.url, first_patience_s=0) as client:
        with pytest.raises(ConnectionLost, match="Cannot connect to http"):
            await client.subscribe("r")
        with pytest.raises(ConnectionLost):
            await client.publish("r", 1)
        await gateway.start()
        await client.publish("r", 1)  # a later operation tries anew


async def test_patience_ends_the_retries(gateway: FakeGateway) -> None:
    async with Client(gateway.url, patience_s=0.2) as client:
        subscription = await client.subscribe("r")
        await gateway.stop()
        with pytest.raises(ConnectionLost):
            await take(subscription, 1)


async def test_a_frame_that_is_not_understood_costs_a_reconnection_and_no_event(
    gateway: FakeGateway, client: Client
) -> None:
    subscription = await client.subscribe("r")
    await gateway.say(op="event", rp="r", epoch=1, offset="x", event=None)
    await gateway.append("r", 1)
    assert data(await take(subscription, 1)) == [1]
    assert len(gateway.handshakes) == 2
