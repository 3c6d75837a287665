"""Readers of a gateway whose Redis is replaced by a replica: those beyond its end are told what was withdrawn, by every binding;
the others go on. Nobody misses an event silently, or gets one twice.

The levels themselves are tested in tests/log/test_failover.py.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from eventing.core.events.lineage import root_epoch
from tests.gateway.client import Client
from tests.gateway.server import LiveGateway, Prepared
from tests.store.failover import Servers
from tests.store.redis_process import RedisProcess

pytestmark = [pytest.mark.processes, pytest.mark.long]


class Edge(LiveGateway):
    """A gateway on Redis servers that the test starts."""

    def start_redis(self) -> None:
        """They run already."""


@pytest.fixture
def servers(new_redis: Callable[..., RedisProcess], tmp_path: Path, request: pytest.FixtureRequest) -> Servers:
    """A primary with a replica, or as many as the test's parameter says."""
    return Servers(new_redis, tmp_path, getattr(request, "param", 1))


@pytest.fixture
def edge(servers: Servers, tmp_path: Path, prepared: Prepared) -> Iterator[Edge]:
    with Edge(tmp_path / "var", prepared, redis_url=servers.url) as running:
        yield running
    assert "Traceback" not in running.log


def pulled(edge: Edge, rp: str, **query: str) -> dict[str, Any]:
    answer = edge.admin.get(f"/api/v1/rps/{rp}/events", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def ids(page: dict[str, Any]) -> list[str]:
    return [event["id"] for event in page["events"]]


async def streamed(edge: Edge, rp: str, cursor: str, until: str) -> list[str]:
    """Lines of the stream after a cursor, up to the one that contains `until`."""
    lines: list[str] = []
    async with (
        asyncio.timeout(60),
        edge.ahttp("root", admin=True) as http,
        http.stream("GET", f"/api/v1/rps/{rp}/stream", headers={"last-event-id": cursor}) as answer,
    ):
        async for line in answer.aiter_lines():
            lines.append(line)
            if until in line:
                return lines
    raise AssertionError(lines)


async def test_readers_beyond_the_new_primarys_end_are_told_and_the_others_go_on(edge: Edge, servers: Servers) -> None:
    """Scenario A."""
    rp = edge.create_rp()
    subscription = edge.admin.post(f"/api/v1/rps/{rp}/subscriptions", json={"from": "earliest"}).json()["id"]
    edge.publish(rp, 5, prefix="kept")
    was = pulled(edge, rp)["epoch"]
    assert acknowledged(edge, subscription, f"{was}:3") == f"{was}:3"
    async with Client(edge) as ahead, Client(edge) as new:
        await ahead.ok("subscribe", rp=rp, begin="earliest")
        await ahead.events(5)
        await asyncio.to_thread(servers.in_step)
        await asyncio.to_thread(servers.cut, servers.replicas[0])
        await asyncio.to_thread(edge.publish, rp, 3, prefix="lost")
        assert [frame["offset"] for frame in await ahead.events(3)] == [6, 7, 8]
        servers.primary.kill()
        await asyncio.to_thread(servers.promote, servers.replicas[0])
        told = await ahead.frame()
        now = told["epoch"]
        assert now != was == root_epoch(now)
        withdrawn = {"epoch": was, "from": 6, "to": 8}
        assert told == {"op": "gap", "rp": rp, "epoch": now, "from": 6, "to": 5, "rewound": withdrawn}
        await asyncio.to_thread(edge.publish, rp, 4, prefix="new")
        frames = await ahead.events(4)
        assert [(frame["epoch"], frame["offset"]) for frame in frames] == [(now, offset) for offset in range(6, 10)]
        assert [frame["event"]["id"] for frame in frames] == [f"new-{number}" for number in range(1, 5)]
        await ahead.quiet()

        answer = await new.ok("subscribe", rp=rp, begin=f"{was}:7")
        assert (answer["epoch"], answer["offset"], answer["recovered"]) == (now, 5, False)
        assert (await new.frame())["rewound"] == {"epoch": was, "from": 6, "to": 7}
        assert [frame["offset"] for frame in await new.events(4)] == [6, 7, 8, 9]

    goes_on = await asyncio.to_thread(pulled, edge, rp, after=f"{was}:4")
    assert ids(goes_on) == ["kept-5", "new-1", "new-2", "new-3", "new-4"]
    assert goes_on["recovered"] is True
    assert "gap" not in goes_on
    beyond = await asyncio.to_thread(pulled, edge, rp, after=f"{was}:8")
    assert (ids(beyond), beyond["recovered"]) == (["new-1", "new-2", "new-3", "new-4"], False)
    assert beyond["gap"] == {"epoch": now, "from": 6, "to": 5, "rewound": withdrawn}
    lines = await streamed(edge, rp, f"{was}:8", "new-1")
    data = json.loads(lines[lines.index("event: gap") + 2].removeprefix("data: "))
    assert (data["rewound"], lines[lines.index("event: gap") + 1]) == (withdrawn, f"id: {now}:5")
    durable = await asyncio.to_thread(edge.admin.get, f"/api/v1/subscriptions/{subscription}/events")
    assert ids(durable.json()) == ["kept-4", "kept-5", "new-1", "new-2", "new-3", "new-4"]
    assert durable.json()["recovered"] is True
    acked = await asyncio.to_thread(acknowledged, edge, subscription, f"{was}:7")
    assert acked == f"{now}:5", "what was withdrawn is not acknowledged for the events that have its offsets now"


def acknowledged(edge: Edge, subscription: str, cursor: str) -> str:
    answer: httpx.Response = edge.admin.post(f"/api/v1/subscriptions/{subscription}/ack", json={"cursor": cursor})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["cursor"])


@pytest.fixture
def of_two(servers: Servers) -> Servers:
    """A second replica besides."""
    servers.replicas.append(servers.add_replica())
    return servers


async def _promoted(edge: Edge, servers: Servers, replica: RedisProcess) -> None:
    """The primary is lost, and this replica takes its place."""
    servers.primary.kill()
    await asyncio.to_thread(servers.promote, replica)


async def test_a_second_promotion_that_undoes_the_first_is_told_to_those_who_read_in_between(
    of_two: Servers, edge: Edge
) -> None:
    """The replica that is promoted second never followed the first: it does not know the epoch in between."""
    rp, (first, second) = edge.create_rp(), of_two.replicas
    subscription = edge.admin.post(f"/api/v1/rps/{rp}/subscriptions", json={"from": "earliest"}).json()["id"]
    edge.publish(rp, 3, prefix="kept")
    await asyncio.to_thread(of_two.in_step)
    await asyncio.to_thread(of_two.cut, second)
    edge.publish(rp, 2, prefix="first")
    was = pulled(edge, rp)["epoch"]
    async with Client(edge) as ahead, Client(edge) as behind:
        await ahead.ok("subscribe", rp=rp, begin="earliest")
        assert [frame["offset"] for frame in await ahead.events(5)] == [1, 2, 3, 4, 5]
        of_two.replicas = [first]
        await asyncio.to_thread(of_two.in_step)
        await _promoted(edge, of_two, first)
        await asyncio.to_thread(edge.publish, rp, 2, prefix="between")
        told = await ahead.frame()
        between = told["epoch"]
        assert (told["op"], told["previous"]) == ("continued", {"epoch": was, "to": 5})
        assert [frame["offset"] for frame in await ahead.events(2)] == [6, 7]
        assert await asyncio.to_thread(acknowledged, edge, subscription, f"{between}:7") == f"{between}:7"
        await _promoted(edge, of_two, second)
        told = await ahead.frame()
        now = told["epoch"]
        assert len({was, between, now}) == 3
        withdrawn = {"epoch": between, "from": 4, "to": 7}
        assert told == {"op": "gap", "rp": rp, "epoch": now, "from": 4, "to": 3, "rewound": withdrawn}
        await asyncio.to_thread(edge.publish, rp, 2, prefix="new")
        assert [frame["cursor"] for frame in await ahead.events(2)] == [f"{now}:4", f"{now}:5"]
        await ahead.quiet()

        answer = await behind.ok("subscribe", rp=rp, begin=f"{between}:2")
        assert (answer["epoch"], answer["recovered"]) == (now, True)
        assert [frame["event"]["id"] for frame in await behind.events(3)] == ["kept-3", "new-1", "new-2"]
    beyond = await asyncio.to_thread(pulled, edge, rp, after=f"{between}:6")
    assert (ids(beyond), beyond["recovered"]) == (["new-1", "new-2"], False)
    assert beyond["gap"]["rewound"] == {"epoch": between, "from": 4, "to": 6}
    again = await asyncio.to_thread(acknowledged, edge, subscription, f"{between}:7")
    assert again == f"{now}:3", "the promoted server does not know what was acknowledged at the other one"
    durable = await asyncio.to_thread(edge.admin.get, f"/api/v1/subscriptions/{subscription}/events")
    assert ids(durable.json()) == ["new-1", "new-2"]


async def test_a_reader_that_came_between_two_promotions_goes_on_if_it_has_nothing_that_was_withdrawn(
    of_two: Servers, edge: Edge
) -> None:
    """The gateway's own knowledge of the epoch in between is of when the reader came."""
    rp, (first, second) = edge.create_rp(), of_two.replicas
    edge.publish(rp, 3)
    await asyncio.to_thread(of_two.in_step)
    await asyncio.to_thread(of_two.cut, second)
    of_two.replicas = [first]
    await _promoted(edge, of_two, first)
    publish = partial(edge.publish, rp, 1, prefix="between")
    await asyncio.to_thread(publish)
    async with Client(edge) as client:
        between = (await client.ok("subscribe", rp=rp, begin="earliest"))["epoch"]
        await client.events(4)
        await _promoted(edge, of_two, second)
        told = await client.frame()
        assert told["rewound"] == {"epoch": between, "from": 4, "to": 4}
        page = await asyncio.to_thread(pulled, edge, rp, after=f"{between}:3")
        assert (ids(page), page["recovered"]) == ([], True)
        await client.quiet()


async def test_nobody_is_told_anything_where_nothing_was_lost(edge: Edge, servers: Servers) -> None:
    """A failover, then a restart of the new primary: live readers are told the new epochs, and miss nothing."""
    rp = edge.create_rp(ack="replicated:1")
    edge.publish(rp, 5)
    async with Client(edge) as live:
        was = (await live.ok("subscribe", rp=rp, begin="earliest"))["epoch"]
        await live.events(5)
        servers.primary.kill()
        await asyncio.to_thread(servers.promote, servers.replicas[0])
        servers.replicas = [await asyncio.to_thread(servers.add_replica)]
        await asyncio.to_thread(edge.publish, rp, 2, begin=6)
        continued = await live.frame()
        now = continued["epoch"]
        expected = {"op": "continued", "rp": rp, "epoch": now, "offset": 5, "cursor": f"{now}:5"}
        assert continued == {**expected, "previous": {"epoch": was, "to": 5}}
        assert [frame["cursor"] for frame in await live.events(2)] == [f"{now}:6", f"{now}:7"]
        for cursor, count in ((f"{was}:5", 2), (f"{now}:7", 0), (f"{was}:0", 7)):
            page = await asyncio.to_thread(pulled, edge, rp, after=cursor)
            assert (len(page["events"]), page["recovered"]) == (count, True)
        await live.quiet()


@pytest.mark.parametrize("servers", [2], indirect=True)
def test_a_lost_replica_is_waited_for_in_vain_only_once(edge: Edge, servers: Servers) -> None:
    """The gateway asks once in ten seconds how many replicas there are; an acknowledgement level that was not reached makes it ask again."""
    rp = edge.create_rp(ack="replicated:all")
    edge.publish(rp, 1)
    servers.replicas[0].kill()

    def published() -> int:
        return edge.admin.post(f"/api/v1/rps/{rp}/events", json={"n": 2}).status_code

    assert published() == 503
    time.sleep(2.5)  # less than ten seconds after it asked before the loss
    assert published() == 201
