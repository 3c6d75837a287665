"""Gateways name alternatives to readers and publishers of an RP with replicas, and move the share that they are asked to move."""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from demo.harness.servers import wait_for
from eventing.operations.samples.flow_samples import CROWD_MIN
from eventing.replication.rules.reader_moves import ReaderMove, move_written
from eventing.store.keys import READER_MOVES_CHANNEL, READER_MOVES_KEY, gateway_load_key
from tests.gateway.client import Client
from tests.gateway.server import STRUCTURED, LiveGateway, Prepared, event

pytestmark = pytest.mark.processes

OTHER = ["https://b.example", "https://c.example/herald"]


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    with LiveGateway(tmp_path_factory.mktemp("moves") / "var", prepared, gateways=2) as running:
        yield running


def insert(edge: LiveGateway, table: str, **columns: Any) -> None:
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    with closing(sqlite3.connect(edge.config.data_path / "herald.sqlite3", timeout=60)) as database, database:
        database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(columns.values()))


def later(**lapse: float) -> str:
    return (datetime.now(UTC) + timedelta(**lapse)).strftime("%Y-%m-%d %H:%M:%S.%f")


@pytest.fixture
def shared(edge: LiveGateway) -> str:
    """An RP that two other domains serve as well."""
    rp = edge.create_rp()
    state = {"state": "live", "detail": "", "told": "", "term": 0, "changed_at": later()}
    lease = {"granted_s": 3600, "warn_at": later(hours=1), "expires_at": later(hours=1)}
    insert(edge, "eventing_replicalink", rp_id=rp, peer="b.example", **state, **lease)
    admission = {"statement": b"", "issued_at_ms": 1, "asked_at_ms": 1, "expires_at": later(hours=1), "revoked": False}
    for domain, url in zip(("b.example", "c.example"), OTHER, strict=True):
        insert(edge, "eventing_replicaadmission", rp_id=rp, domain=domain, url=url, **admission)
    return rp


def begin_move(edge: LiveGateway, rp: str, id: str, share: float, *to: str, seconds: float = 300.0) -> None:
    """What the service stores, without its process."""
    until = datetime.now(UTC).timestamp() + seconds
    begin(edge, ReaderMove(id, rp, share, to, until, 0.5, "test"))


def begin(edge: LiveGateway, move: ReaderMove) -> None:
    with edge.redis as client:
        client.hset(READER_MOVES_KEY, move.id, move_written(move))
        client.publish(READER_MOVES_CHANNEL, move.id)


def counted_as_leaving(edge: LiveGateway, rp: str) -> int:
    """Return the count in the gateways' samples, as balancing adds it up."""
    with edge.redis as client:
        samples = [json.loads(client.get(key) or b"{}") for key in client.scan_iter(gateway_load_key("*"))]
    return sum(hot["leaving"] for sample in samples for hot in sample.get("hot", ()) if hot["rp"] == rp)


def end_moves(edge: LiveGateway) -> None:
    with edge.redis as client:
        client.delete(READER_MOVES_KEY)
        client.publish(READER_MOVES_CHANNEL, "")


def mover(edge: LiveGateway, hops: int = 0, gateway: int = 0) -> Client:
    return Client(edge, gateway=gateway, query={"hops": str(hops)})


async def test_the_answer_to_a_subscribe_names_alternatives_where_there_are_replicas(
    edge: LiveGateway, shared: str
) -> None:
    async with mover(edge) as client, Client(edge) as older:
        alone = await client.ok("subscribe", rp=edge.create_rp())
        assert "alternatives" not in alone
        for one in (client, older):
            named = (await one.ok("subscribe", rp=shared))["alternatives"]
            assert sorted(each["url"] for each in named) == OTHER
            assert all(1 <= each["weight"] <= 1000 for each in named)


async def test_a_publisher_that_does_not_read_is_sent_the_alternatives_once(edge: LiveGateway, shared: str) -> None:
    async with mover(edge) as client:
        for number in range(3):
            await client.ok("publish", rp=shared, event=event(f"e{number}"))
        hint = await client.frame()
        assert (hint["op"], hint["rp"]) == ("alternatives", shared)
        assert sorted(each["url"] for each in hint["alternatives"]) == OTHER
        await client.ok("publish", rp=(alone := edge.create_rp()), event=event("e"))
        assert await client.frame() == {"op": "alternatives", "rp": alone, "alternatives": []}
        await client.ok("publish", rp=shared, event=event("e"))
        await client.ok("ping")
        assert client.frames.empty()


async def test_readers_that_begin_are_redirected_at_once_to_domains_by_room_unless_they_were_redirected_here(
    edge: LiveGateway, shared: str
) -> None:
    until = datetime.now(UTC).timestamp() + 300.0
    move = ReaderMove("new", shared, 0.0, (), until, 30.0, "test", new_share=1.0, rooms=((OTHER[1], 1000),))
    async with mover(edge) as there, AsyncExitStack() as stack:
        await there.ok("subscribe", rp=shared)
        with edge.redis as client:
            client.hset(READER_MOVES_KEY, "new", move_written(move))
            client.publish(READER_MOVES_CHANNEL, "new")
        frame: dict[str, Any] = {}
        while not frame:
            fresh = await stack.enter_async_context(mover(edge))
            await fresh.ok("subscribe", rp=shared)
            await fresh.ok("ping")
            frame = await fresh.frame() if not fresh.frames.empty() else {}
        assert (frame["op"], frame["to"], frame["hops"]) == ("redirect", OTHER[1:], 1)
        moved = await stack.enter_async_context(mover(edge, hops=1))
        await moved.ok("subscribe", rp=shared)
        for one in (moved, there):
            await one.ok("ping")
            assert one.frames.empty(), "a share of 0 moves nobody who is there, and none that came by a redirect"
    end_moves(edge)


async def test_a_share_of_the_readers_at_all_gateways_is_redirected_and_the_others_stay(
    edge: LiveGateway, shared: str
) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(mover(edge, gateway=n % 2)) for n in range(60)]
        older = await stack.enter_async_context(Client(edge))
        travelled = await stack.enter_async_context(mover(edge, hops=2))
        for client in (*clients, older, travelled):
            await client.ok("subscribe", rp=shared)
        begin_move(edge, shared, "half", 0.5, OTHER[1])
        begin_move(edge, shared, "nobody", 1e-9, OTHER[0])
        await asyncio.to_thread(wait_for, lambda: sum(not one.frames.empty() for one in clients) >= 8, 60.0)
        begin_move(edge, shared, "everybody", 1.0, OTHER[0])
        redirects = []
        for client in clients:
            frames = [await client.frame()]
            while frames[-1]["to"] != OTHER[:1]:
                frames.append(await client.frame())
            redirects += frames
            assert all(one["op"] == "redirect" and one["hops"] == 1 and 0 < one["valid_s"] <= 60 for one in frames)
        assert 8 <= sum(one["to"] == OTHER[1:] for one in redirects) <= 52  # fails by chance once in 10^8
        for client in (older, travelled):
            await client.ok("ping")
            assert client.frames.empty(), "an older client, and one that has followed two redirects, stay"
        latecomer = await stack.enter_async_context(mover(edge))
        await latecomer.ok("subscribe", rp=shared)
        assert (await latecomer.frame())["op"] == "redirect"
    end_moves(edge)


@pytest.mark.long
async def test_those_who_are_leaving_are_counted_and_the_next_step_of_balancing_moves_others(
    edge: LiveGateway, shared: str
) -> None:
    def step(id: str, to: str) -> ReaderMove:
        until = datetime.now(UTC).timestamp() + 300.0
        return ReaderMove(id, shared, 1.0, (to,), until, 0.0, "test", new_share=0.0, by="balancing")

    async with AsyncExitStack() as stack:
        leaving = [await stack.enter_async_context(mover(edge, gateway=n % 2)) for n in range(CROWD_MIN * 2)]
        for client in leaving:
            await client.ok("subscribe", rp=shared)
        begin(edge, step("first", OTHER[0]))
        for client in leaving:
            assert (await client.frame())["to"] == OTHER[:1]
        await asyncio.to_thread(wait_for, lambda: counted_as_leaving(edge, shared) == len(leaving), 60.0)
        others = [await stack.enter_async_context(mover(edge, gateway=n)) for n in range(2)]
        for client in others:
            await client.ok("subscribe", rp=shared)
        begin(edge, step("second", OTHER[1]))
        for client in others:
            assert (await client.frame())["to"] == OTHER[1:]
        for client in leaving:
            await client.ok("ping")
            assert client.frames.empty()
    end_moves(edge)


async def test_without_stated_addresses_each_is_pointed_to_those_ranked_for_it(edge: LiveGateway, shared: str) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(mover(edge)) for _ in range(40)]  # drawn by their own numbers
        for client in clients:
            await client.ok("publish", rp=shared, event=event("e"))
        begin_move(edge, shared, "ranked", 1.0)
        first = set()
        for client in clients:
            frames = [await client.frame(), await client.frame()]
            redirect = next(one for one in frames if one["op"] == "redirect")
            assert sorted(redirect["to"]) == OTHER
            first.add(redirect["to"][0])
        assert first == set(OTHER), "readers spread"
    end_moves(edge)


async def test_a_move_points_readers_to_a_replica_that_was_added_after_they_began(
    edge: LiveGateway, shared: str
) -> None:
    added = "https://d.example"
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(mover(edge, gateway=n % 2)) for n in range(16)]
        for client in clients:
            named = (await client.ok("subscribe", rp=shared))["alternatives"]
            assert added not in [each["url"] for each in named]
        admission = {
            "statement": b"",
            "issued_at_ms": 1,
            "asked_at_ms": 1,
            "expires_at": later(hours=1),
            "revoked": False,
        }
        insert(edge, "eventing_replicaadmission", rp_id=shared, domain="d.example", url=added, **admission)
        begin_move(edge, shared, "to-the-new-one", 1.0)
        for client in clients:
            assert sorted((await client.frame())["to"]) == [*OTHER, added]
    end_moves(edge)


async def test_a_move_that_is_over_or_ended_redirects_nobody(edge: LiveGateway, shared: str) -> None:
    begin_move(edge, shared, "over", 1.0, OTHER[0], seconds=-1.0)
    begin_move(edge, shared, "ended", 1.0, OTHER[0])
    async with mover(edge) as watching:
        await watching.ok("subscribe", rp=shared)
        assert (await watching.frame())["op"] == "redirect", "the gateway knows the moves by now"
        end_moves(edge)
        begin_move(edge, shared, "marker", 1.0, OTHER[1])
        assert (await watching.frame())["to"] == OTHER[1:]
        end_moves(edge)


async def test_a_stream_that_supports_moves_is_sent_an_event(edge: LiveGateway, shared: str) -> None:
    begin_move(edge, shared, "stream", 1.0, OTHER[0])
    path = f"/api/v1/rps/{shared}/stream"
    async with edge.ahttp() as http, http.stream("GET", path, params={"hops": "1"}) as stream:
        lines = stream.aiter_lines()
        async for line in lines:
            if line == "event: redirect":
                break
        redirect = json.loads((await anext(lines)).removeprefix("data: "))
    assert (redirect["to"], redirect["hops"]) == (OTHER[:1], 2)
    end_moves(edge)


def test_a_publisher_over_http_that_states_hops_is_sent_on_and_one_that_does_not_is_served(
    edge: LiveGateway, shared: str
) -> None:
    path, later_path = f"/api/v1/rps/{shared}/events", f"{OTHER[0]}/api/v1/rps/{shared}/events"
    with edge.http(admin=True) as http:

        def publish(**headers: str) -> httpx.Response:
            return http.post(path, json=event(str(next(numbers))), headers={**STRUCTURED, **headers})

        numbers = itertools.count()
        assert publish(**{"Herald-Hops": "0"}).status_code == 201
        begin_move(edge, shared, "http", 1.0, OTHER[0])
        wait_for(lambda: publish(**{"Herald-Hops": "0"}).status_code == 307, 60.0)
        moved = publish(**{"Herald-Hops": "1"})
        assert (moved.headers["location"], moved.headers["herald-hops"]) == (later_path, "2")
        assert moved.json()["to"] == OTHER[:1]
        assert moved.json()["hops"] == 2
        assert 0 < moved.json()["valid_s"] <= 60
        for headers in ({}, {"Herald-Hops": "2"}, {"Herald-Hops": "x"}, {"Herald-Hops": "-1"}):
            assert publish(**headers).status_code == 201, headers
    end_moves(edge)
