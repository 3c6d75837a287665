"""Access records of a running gateway: exact, whole after a stop, nearly whole after a kill, silent about secrets, and
never in the way of publishing."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from demo.harness.servers import wait_for
from tests.gateway.client import Client
from tests.gateway.server import BATCH, STRUCTURED, LiveGateway, Prepared, event
from tests.records.reading import read_records

MARKER = "payload-that-nobody-records"
READING = ["subscribe", "history", "describe"]
POLICY = [  # the first rule that matches decides
    {"issuer": "domain", "claims": {"sub": {"in": ["ann", "bob"]}}, "allow": [*READING, "publish"]},
    {"issuer": "domain", "allow": READING},
]
STOPPED = (0, -15)  # uvicorn ends by the signal it was asked with
STILL_S = 1.0  # between two answers: what writes records once a second stood still, too
PRINCIPALS = ("ann", "bob", "eve")


@dataclass
class Story:
    """What clients did and saw, and what the records say of it."""

    root: Path
    tokens: list[str] = field(default_factory=list)
    published: Counter[Any] = field(default_factory=Counter)
    asked: Counter[Any] = field(default_factory=Counter)
    refused: Counter[Any] = field(default_factory=Counter)
    delivered: Counter[Any] = field(default_factory=Counter)
    delivered_bytes: Counter[Any] = field(default_factory=Counter)
    joined: Counter[Any] = field(default_factory=Counter)
    rps: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def rows_of(self, operation: str, **members: Any) -> list[dict[str, Any]]:
        found = [row for row in self.rows if row["operation"] == operation]
        return [row for row in found if all(row[name] == value for name, value in members.items())]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Story:
    """A gateway's life: many operations of three principals over every binding, then a graceful stop."""
    folder = tmp_path_factory.mktemp("records")
    with LiveGateway(folder / "var", prepared, records_flush_s=1, records_segment_s=2) as live_gateway:
        told = Story(live_gateway.config.records_path)
        asyncio.run(_live(live_gateway, told))
        live_gateway.terminate_gateway()
        assert live_gateway.wait_stopped() in STOPPED
        assert "Traceback" not in live_gateway.log
    told.rows = read_records(told.root)
    return told


async def _live(live_gateway: LiveGateway, told: Story) -> None:
    told.rps = [live_gateway.create_rp(policy=POLICY) for _ in range(2)]
    told.tokens = [live_gateway.token(subject) for subject in PRINCIPALS]
    readers = {name: Client(live_gateway, token=token) for name, token in zip(PRINCIPALS, told.tokens, strict=True)}
    for name, reader in readers.items():
        await reader.__aenter__()
        for rp in told.rps:
            await reader.ok("subscribe", rp=rp)
            told.joined[name, rp, "herald.v1"] += 1
    seed = random.Random(7)
    numbers = iter(range(10**6))
    for _ in range(120):
        name, rp = seed.choice(PRINCIPALS), seed.choice(told.rps)
        count = seed.choice([1, 1, 1, 5])
        sent = [event(f"e-{next(numbers)}", MARKER) for _ in range(count)]
        if seed.random() < 0.5:
            members = {"event": sent[0]} if count == 1 else {"events": sent}
            good = (await readers[name].ask("publish", rp=rp, **members))["op"] == "ok"
            client = "herald.v1"
        else:
            headers = {"authorization": f"Bearer {told.tokens[PRINCIPALS.index(name)]}"}
            async with live_gateway.ahttp() as http:
                content, kind = (json.dumps(sent[0]), STRUCTURED) if count == 1 else (json.dumps(sent), BATCH)
                answer = await http.post(f"/api/v1/rps/{rp}/events", content=content, headers={**headers, **kind})
            good, client = answer.status_code == 201, "http"
        assert good == (name != "eve")
        if good:
            told.published[name, rp, client] += count
            told.asked[name, rp, client] += 1
        else:
            told.refused[name, rp, client] += 1
    await _bad_ones(live_gateway, told, readers["ann"])
    stored = {rp: sum(n for (_, at, _), n in told.published.items() if at == rp) for rp in told.rps}
    await _late_ones(live_gateway, told, stored)
    for name, reader in readers.items():
        for frame in await reader.events(sum(stored.values())):
            _count(told, name, frame["rp"], "herald.v1", frame["event"])
    await readers["bob"].ok("unsubscribe", rp=told.rps[0])
    live_gateway.publish(told.rps[0], 3, prefix="after", data=MARKER)
    for name in ("ann", "eve"):
        for frame in await readers[name].events(3):
            _count(told, name, frame["rp"], "herald.v1", frame["event"])
    told.published["root", told.rps[0], "http"] += 3
    told.asked["root", told.rps[0], "http"] += 1
    for reader in readers.values():
        await reader.quiet()
        await reader.__aexit__(None, None, None)


async def _bad_ones(live_gateway: LiveGateway, told: Story, ann: Client) -> None:
    """What is refused before anybody knows who or where."""
    assert await ann.refused("publish", rp="b" * 26, event=event("x", MARKER)) == "not-found"
    assert await ann.refused("subscribe", rp=f"/localhost/{MARKER}/") == "not-found"
    assert await ann.refused(MARKER) == "invalid-request"
    async with live_gateway.ahttp() as http:
        bad = {"authorization": f"Bearer {told.tokens[0]}x"}
        answer = await http.post(f"/api/v1/rps/{told.rps[0]}/events?q={MARKER}", content=MARKER, headers=bad)
        assert answer.status_code == 401
        assert (await http.get(f"/api/v1/rps/{told.rps[0]}?q={MARKER}")).status_code == 200
        assert (await http.get(f"/api/v1/{MARKER}")).status_code == 404


async def _late_ones(live_gateway: LiveGateway, told: Story, stored: dict[str, int]) -> None:
    """Readers of the past: a replay, a pull, a stream, CloudEvents frames; tokens in the query."""
    rp = told.rps[0]
    async with Client(live_gateway, token=told.tokens[2]) as late:
        await late.ok("subscribe", rp=rp, begin="earliest")
        told.joined["eve", rp, "herald.v1"] += 1
        for frame in await late.events(stored[rp]):
            _count(told, "eve", rp, "herald.v1", frame["event"])
    url = live_gateway.ws_url(rp=rp, access_token=told.tokens[1], **{"from": "earliest"})
    async with connect(url, subprotocols=["cloudevents.json"], proxy=None) as ws:  # type: ignore[list-item]
        told.joined["bob", rp, "cloudevents"] += 1
        for _ in range(stored[rp]):
            _count(told, "bob", rp, "cloudevents", json.loads(await asyncio.wait_for(ws.recv(), 60)))
    async with live_gateway.ahttp("bob") as http:
        pulled = await http.get(f"/api/v1/rps/{rp}/events?limit=1000")
        for one in pulled.json()["events"]:
            _count(told, "bob", rp, "pull", one)
        told.joined["bob", rp, "sse"] += 1
        async with http.stream("GET", f"/api/v1/rps/{rp}/stream?after=earliest") as answer:
            seen = 0
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    _count(told, "bob", rp, "sse", json.loads(line[6:]))
                    seen += 1
                    if seen == stored[rp]:
                        break


def _count(told: Story, name: str, rp: str, client: str, content: Any) -> None:
    told.delivered[name, rp, client] += 1
    told.delivered_bytes[name, rp, client] += len(json.dumps(content))  # as the publishers wrote them


def _summed(rows: list[dict[str, Any]], column: str) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in rows:
        found[row["principal"], row["rp"], row["client"]] += row[column] if column else 1
    return found


def test_publishes_and_refusals_are_counted_to_the_last_event(story: Story) -> None:
    good = story.rows_of("publish", outcome="ok")
    assert _summed(good, "events") == story.published
    assert _summed(good, "count") == story.asked
    assert all(row["bytes_in"] > row["events"] * len(MARKER) for row in good)
    assert all(0 < row["latency_us"] < 60_000_000 for row in good)
    refused = [row for row in story.rows_of("publish", outcome="refused") if row["reason"] == "forbidden"]
    assert _summed(refused, "") == story.refused
    assert {row["issuer"] for row in good + refused} == {"localhost"}


def test_deliveries_are_what_clients_counted(story: Story) -> None:
    rows = story.rows_of("deliver") + story.rows_of("history")
    assert _summed(rows, "events") == story.delivered
    assert _summed(rows, "bytes_out") == story.delivered_bytes


def test_deliveries_are_few_records_with_the_begin_of_their_minute(story: Story) -> None:
    rows = story.rows_of("deliver")
    assert all(row["time"].second == row["time"].microsecond == 0 for row in rows)
    assert len(rows) < sum(story.delivered.values()) / 10


def test_who_read_what_when_follows_from_sessions(story: Story) -> None:
    came = _summed(story.rows_of("subscribe", outcome="ok"), "")
    assert came == story.joined
    assert _summed(story.rows_of("unsubscribe"), "") == story.joined
    sessions = Counter(row["session"] for row in story.rows_of("connect", outcome="ok"))
    assert set(sessions.values()) == {1}
    assert 0 not in sessions
    assert sessions == Counter(row["session"] for row in story.rows_of("disconnect"))
    assert {row["session"] for row in story.rows_of("subscribe", outcome="ok")} == set(sessions)


def test_strangers_and_nonsense_are_recorded_without_their_words(story: Story) -> None:
    stranger = story.rows_of("publish", reason="unauthenticated")
    assert [(row["principal"], row["rp"], row["outcome"]) for row in stranger] == [("", story.rps[0], "refused")]
    assert [row["rp"] for row in story.rows_of("publish", reason="not-found")] == ["b" * 26]
    assert [row["rp"] for row in story.rows_of("subscribe", reason="not-found")] == [""]
    assert [row["principal"] for row in story.rows_of("unknown", reason="invalid-request")] == ["ann"]


def test_operations_of_the_rest_interface_are_recorded(story: Story) -> None:
    created = story.rows_of("rp.create", outcome="ok", principal="root", client="http")
    assert sorted(row["rp"] for row in created) == sorted(story.rps)
    described = story.rows_of("rp.describe", outcome="ok")
    assert [(row["principal"], row["rp"]) for row in described] == [("tester", story.rps[0])]
    assert all(row["bytes_out"] > 0 and row["latency_us"] > 0 for row in described)
    assert [row["principal"] for row in story.rows if row["reason"] == "not-found" and row["client"] == "http"] == [
        "tester"
    ]


def test_no_token_payload_or_query_is_ever_in_a_file(story: Story) -> None:
    written = b"".join(path.read_bytes() for path in story.root.rglob("*") if path.is_file())
    values = json.dumps(story.rows, default=str)
    for secret in (MARKER, *story.tokens, *(token.rpartition(".")[2][:20] for token in story.tokens)):
        assert secret.encode() not in written
        assert secret not in values  # the files are compressed


def test_a_graceful_stop_leaves_segments_only(story: Story) -> None:
    assert list((story.root / "_spool").iterdir()) == []
    assert len({row["gateway"] for row in story.rows}) == 1
    assert len({row["number"] for row in story.rows}) == len(story.rows)
    assert not story.rows_of("records.lost")


async def test_publishes_that_are_answered_together_are_one_record(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway(records_flush_s=1, records_segment_s=1)
    rps = [live_gateway.create_rp() for _ in range(2)]
    async with Client(live_gateway, admin=True) as client:
        began = time.time()
        asked = [
            await client.send("publish", rp=rps[number % 7 == 0], event=event(f"e-{number}")) for number in range(500)
        ]
        answers = await asyncio.gather(*asked)
        took_us = (time.time() - began) * 1e6
        assert {answer["op"] for answer in answers} == {"ok"}
    live_gateway.terminate_gateway()
    assert live_gateway.wait_stopped() in STOPPED
    rows = [row for row in read_records(live_gateway.config.records_path) if row["operation"] == "publish"]
    for rp, count in ((rps[0], 428), (rps[1], 72)):
        assert sum(row["count"] for row in rows if row["rp"] == rp) == count
        assert sum(row["events"] for row in rows if row["rp"] == rp) == count
    assert all(0 < row["latency_us"] < took_us for row in rows)
    assert len(rows) < 500


async def test_a_killed_gateway_loses_at_most_the_flush_interval(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(records_flush_s=1, records_segment_s=2)
    rp = live_gateway.create_rp()
    answered: list[tuple[float, int]] = []
    async with Client(live_gateway, admin=True) as reader, Client(live_gateway, admin=True) as publisher:
        await reader.ok("subscribe", rp=rp)
        steady_since = last = time.time()
        for number in range(1_000_000):
            await publisher.ok("publish", rp=rp, event=event(f"e-{number}"))
            answered.append((time.time(), number))
            if answered[-1][0] - last > STILL_S:  # the machine stood still, and so did what writes records
                steady_since = answered[-1][0]
            last = answered[-1][0]
            if last - steady_since > 2.8 or last - answered[0][0] > 60:
                break
        live_gateway.kill_gateway()
    killed = answered[-1][0]
    live_gateway.start_gateway()
    durable = sum(when < killed - 2 for when, _ in answered)  # the interval, and as much again for a busy machine
    assert durable > 10

    def recorded(operation: str) -> int:
        rows = read_records(live_gateway.config.records_path)
        return sum(row["events"] for row in rows if row["operation"] == operation and row["rp"] == rp)

    wait_for(lambda: recorded("publish") >= durable, 60, about="the records of the killed gateway")
    assert durable <= recorded("deliver") <= len(answered)
    assert recorded("publish") <= len(answered)
    assert len({row["gateway"] for row in read_records(live_gateway.config.records_path)}) <= 2


def test_with_a_full_disk_publishing_goes_on_and_records_wait(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(records_flush_s=1, records_segment_s=60)
    rp = live_gateway.create_rp()
    gateway = live_gateway.gateway_process()
    hard = gateway.rlimit(resource.RLIMIT_FSIZE)[1]
    spool = live_gateway.config.records_path / "_spool"
    wait_for(lambda: any(path.stat().st_size for path in spool.glob("*")), 60, about="records are written")
    gateway.rlimit(resource.RLIMIT_FSIZE, (8192, hard))  # no file may grow beyond it: EFBIG, as ENOSPC
    with live_gateway.http(admin=True) as http:
        numbers = itertools.count(1)

        def published() -> int:
            content = json.dumps(event(f"full-{(number := next(numbers))}"))
            answer = http.post(f"/api/v1/rps/{rp}/events", content=content, headers=STRUCTURED)
            assert answer.status_code == 201, answer.text
            return number

        def told() -> int:  # with what a busy machine takes more than a minute for, the file is another one
            number = published()
            return number if "Access records cannot be written" in live_gateway.log else 0

        while published() < 300:
            pass
        count = wait_for(told, 120, about="the operator is told")
        live_gateway.publish(rp, 5, prefix="more")
    gateway.rlimit(resource.RLIMIT_FSIZE, (hard, hard))
    wait_for(lambda: "are written to" in live_gateway.log, 60, about="the disk takes them again")
    live_gateway.terminate_gateway()
    assert live_gateway.wait_stopped() in STOPPED
    rows = read_records(live_gateway.config.records_path)
    assert sum(row["events"] for row in rows if row["operation"] == "publish") == count + 5


def test_switched_off_nothing_is_written(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(records=0)
    live_gateway.publish(live_gateway.create_rp(), 3)
    live_gateway.terminate_gateway()
    assert live_gateway.wait_stopped() in STOPPED
    assert not live_gateway.config.records_path.exists()
