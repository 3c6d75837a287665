"""What a client tells of its connections: callbacks when one is lost and replaced, and counters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import herald.sync
import pytest
from herald import Client, Disconnected, Gap, Problem, Reconnected

from demo.harness.servers import eventually, wait_for
from tests.client.fake_gateway import FakeGateway


@pytest.fixture
async def gateway() -> AsyncIterator[FakeGateway]:
    async with FakeGateway() as fake:
        yield fake


async def until(condition: Callable[[], bool]) -> None:
    async def there() -> bool:
        return condition()

    await eventually(there)


async def test_a_lost_connection_is_told_once_with_its_code_and_its_successor_too(gateway: FakeGateway) -> None:
    losses: list[Disconnected] = []
    returns: list[Reconnected] = []
    async with (
        Client(gateway.url, token="t", on_disconnect=losses.append, on_reconnect=returns.append) as client,
        client.subscribe("r", from_="earliest") as reading,
    ):
        assert client.stats.connections == 1
        assert (losses, returns) == ([], []), "the first connection replaces nothing"
        await gateway.close(4000, "server-restarting")
        await until(lambda: len(returns) == 1)
        assert [(loss.url, loss.code, loss.reason) for loss in losses] == [(gateway.url, 4000, "server-restarting")]
        assert losses[0].retry_in_s >= 0
        assert returns[0].url == gateway.url
        assert returns[0].away_s >= 0
        await gateway.append("r", 1)
        assert (await anext(reading)).cursor
        gateway.cut()
        await until(lambda: len(returns) == 2)
        assert losses[1].code == 1006
        assert (client.stats.connects, client.stats.disconnects, client.stats.connections) == (3, 2, 1)
    assert len(losses) == 2, "closing it is no loss"
    assert client.stats.connections == 0


async def test_a_callback_that_fails_breaks_nothing(gateway: FakeGateway) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("of the program")

    async with (
        Client(gateway.url, token="t", on_disconnect=fail, on_reconnect=fail) as client,
        client.subscribe("r", from_="earliest") as reading,
    ):
        gateway.cut()
        await gateway.append("r", 1)
        assert not isinstance(item := await anext(reading), Gap)
        assert item.data == 1


async def test_events_gaps_and_publishes_are_counted(gateway: FakeGateway) -> None:
    gateway.log("r").first = 3
    await gateway.append("r", 1, 2, 3)
    async with Client(gateway.url, token="t") as client, client.subscribe("r", from_="a:1") as reading:
        assert isinstance(await anext(reading), Gap)
        await anext(reading)
        await client.publish_many("s", ["a", "b"])
        gateway.refusals = [{"type": "urn:herald:problem:forbidden", "title": "no", "detail": "no"}]
        with pytest.raises(Problem):
            await client.publish("s", "c")
        found = client.stats
    assert (found.received, found.gaps, found.published, found.refused, found.in_flight) == (1, 1, 2, 1, 0)


def test_the_blocking_client_has_the_same(threaded_gateway: FakeGateway) -> None:
    losses: list[Disconnected] = []
    returns: list[Reconnected] = []
    with herald.sync.Client(
        threaded_gateway.url, token="t", on_disconnect=losses.append, on_reconnect=returns.append
    ) as client:
        client.publish_many("r", [1, 2])
        assert client.stats.published == 2
        assert client.stats.connections == 1
        threaded_gateway.cut_after_storing = 1
        client.publish("r", 3)
        wait_for(lambda: len(returns) == 1)
        assert [loss.code for loss in losses] == [1006]
