"""The client between two scripted replicas (fake_gateway.py) that hold the same logs: tokens, refusals, returns, the command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import herald.rollover
import herald.session
import pytest
from click.testing import CliRunner
from herald import Client, Move, Problem
from herald.commands import cli

from tests.client.fake_gateway import FakeGateway
from tests.client.test_client import data, take, until

FORBIDDEN = {"type": "urn:herald:problem:forbidden", "title": "Operation not permitted", "detail": "Ask Ann."}
UNAUTHENTICATED = {"type": "urn:herald:problem:unauthenticated", "title": "No good token", "status": 401}
NOT_FOUND = {"type": "urn:herald:problem:not-found", "title": "Resource not found", "detail": "There is none."}
Pair = tuple[FakeGateway, FakeGateway]


@pytest.fixture
async def replicas(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    monkeypatch.setattr(herald.rollover, "HOLD_S", 0.2)
    monkeypatch.setattr(herald.rollover, "PROBE_S", 0.1)
    async with FakeGateway() as a, FakeGateway() as b:
        b.logs = a.logs
        yield a, b


def urls(replicas: Pair) -> list[str]:
    return [replica.url for replica in replicas]


async def test_everything_goes_on_at_the_second_when_the_first_is_away_and_back_when_it_answers(replicas: Pair) -> None:
    a, b = replicas
    moves: list[Move] = []
    async with Client(urls(replicas), token="t", on_move=moves.append) as client:
        subscription = await client.subscribe("r")
        await client.publish("r", 1)
        await a.stop()
        await client.publish("r", 2)
        await until(lambda: b.readers and any("r" in rps for rps in b.readers.values()))
        await client.publish("r", 3)
        assert data(await take(subscription, 3)) == [1, 2, 3]
        assert [(move.new, move.back) for move in moves] == [(b.url, False)]
        await a.start()
        await until(lambda: a.connections and not b.connections)
        assert [(move.new, move.back) for move in moves[1:]] == [(a.url, True)]
        await until(lambda: any("r" in rps for rps in a.readers.values()))
        await client.publish("r", 4)
        assert data(await take(subscription, 1)) == [4]
    assert b.probes == 0


async def test_a_replica_that_is_up_but_not_ready_is_not_gone_back_to(replicas: Pair) -> None:
    a, b = replicas
    async with Client(urls(replicas)) as client:
        await a.stop()
        await client.publish("r", 1)
        a.ready = False
        await a.start()
        await until(lambda: a.probes >= 3)
        assert b.connections
        assert not a.connections
        a.ready = True
        await until(lambda: not b.connections)
        await client.publish("r", 2)
        assert a.connections


async def test_going_back_waits_for_what_was_sent_and_repeats_no_publish(replicas: Pair) -> None:
    a, b = replicas
    async with Client(urls(replicas)) as client:
        await a.stop()
        await client.publish("r", 0)
        await a.start()
        for number in range(1, 100_000):
            await client.submit("r", [number])
            if a.connections and not b.connections:
                break
            await asyncio.sleep(0.002)
        await client.flush()
        frames = [frame["event"]["id"] for gateway in replicas for frame in gateway.frames if frame["op"] == "publish"]
        assert len(frames) == len(set(frames)) == number + 1
        assert [event["data"] for event in a.log("r").events] == list(range(number + 1))


async def test_each_replica_is_shown_the_token_that_is_for_it(replicas: Pair) -> None:
    a, b = replicas
    asked: list[str] = []

    def token_for(url: str) -> str:
        asked.append(url)
        return f"token of {url}"

    for source in ({a.url + "/": "for a", b.url: "for b"}, token_for):
        a.refuse_handshakes = [(403, FORBIDDEN, None)]
        async with Client(urls(replicas), token=source) as client:
            await client.publish("r", 1)
    assert a.handshakes == ["for a", f"token of {a.url}"]
    assert b.handshakes == ["for b", f"token of {b.url}"]
    assert asked == [a.url, b.url]


async def test_a_token_is_not_shown_to_domains_that_the_program_did_not_name(replicas: Pair) -> None:
    a, b = replicas
    async with Client(a.url, token="secret") as client:
        await client.publish("r", 1)
        await a.say(op="redirect", rp="r", to=[b.url])
        await a.say(op="closing", reason="server-restarting", retry=True)
        await a.stop()
        await client.publish("r", 2)
    assert a.handshakes == ["secret"]
    assert b.handshakes == [""]


async def test_when_all_replicas_refuse_the_error_says_which_said_what(replicas: Pair) -> None:
    a, b = replicas
    a.refuse_handshakes, b.refuse_handshakes = [(401, UNAUTHENTICATED, None)], [(403, FORBIDDEN, None)]
    async with Client(urls(replicas)) as client:
        with pytest.raises(Problem) as caught:
            await client.publish("r", 1)
    assert caught.value.code == "unauthenticated"
    assert f"{a.url.removeprefix('http://')}: No good token." in caught.value.detail
    assert f"{b.url.removeprefix('http://')}: Ask Ann." in caught.value.detail


async def test_what_one_replica_does_not_serve_is_read_and_published_at_another_in_order(replicas: Pair) -> None:
    a, b = replicas
    b.logs = {}
    async with Client(urls(replicas)) as client, client.subscribe("here") as here:
        a.refusals = [dict(NOT_FOUND)] * 5
        answers = [await client.submit("there", [number]) for number in range(5)]
        for answer in answers:
            await answer
        assert [event["data"] for event in b.log("there").events] == [0, 1, 2, 3, 4]
        there = await client.subscribe("there", from_="earliest")  # it is known by now where that is
        assert data(await take(there, 5)) == [0, 1, 2, 3, 4]
        await client.publish("here", "x")
        assert data(await take(here, 1)) == ["x"]
    assert a.log("there").events == []


def renewals(gateway: FakeGateway) -> list[dict[str, Any]]:
    return [frame for frame in gateway.frames if frame["op"] == "renew"]


async def test_a_durable_subscription_is_renewed_where_it_is_read_though_the_first_url_is_away(replicas: Pair) -> None:
    a, b = replicas
    b.acked["s"], b.lease_s = ("r", 0), 1.0
    await a.stop()
    async with Client(urls(replicas)) as client, client.attach("s") as attached:
        await until(lambda: len(renewals(b)) >= 3)
        await b.append("r", 1)
        assert data(await take(attached, 1)) == [1]
    assert {(frame["subscription"], frame["lease_s"]) for frame in renewals(b)} == {("s", 1)}


async def test_a_durable_subscription_is_renewed_at_the_replica_that_took_over_while_it_was_read(
    replicas: Pair,
) -> None:
    a, b = replicas
    for gateway in replicas:
        gateway.acked["s"], gateway.lease_s = ("r", 0), 1.0
    async with Client(urls(replicas)) as client, client.attach("s") as attached:
        await until(lambda: renewals(a))
        await a.stop()
        await until(lambda: len(renewals(b)) >= 2)
        await b.append("r", 1)
        assert data(await take(attached, 1)) == [1]


@pytest.mark.parametrize("named", [True, False], ids=["named", "nowhere"])
async def test_a_renewal_that_is_sent_elsewhere_is_made_there_or_again_and_ends_no_reading(
    replicas: Pair, named: bool
) -> None:
    a, b = replicas
    for gateway in replicas:
        gateway.acked["s"], gateway.lease_s = ("r", 0), 1.0
    async with Client(a.url) as client, client.attach("s") as attached:
        await until(lambda: renewals(a))
        a.refusals = [{"type": "urn:herald:problem:moved", "title": "Elsewhere", "to": [b.url] if named else []}]
        seen = len(renewals(a))
        await until(lambda: len(renewals(b)) >= 1 if named else len(renewals(a)) >= seen + 2)
        await a.append("r", 1)
        assert data(await take(attached, 1)) == [1]


async def test_closing_the_client_while_a_renewal_is_unanswered_ends_a_reading_without_error(replicas: Pair) -> None:
    a, _ = replicas
    a.acked["s"], a.renews = ("r", 0), False
    client = Client(a.url)
    attached = await client.attach("s")
    await until(lambda: renewals(a))
    await client.aclose()
    assert [item async for item in attached] == []


async def test_what_no_replica_serves_is_refused_with_both_answers(replicas: Pair) -> None:
    a, b = replicas
    a.refusals, b.refusals = [dict(NOT_FOUND)], [dict(FORBIDDEN)]
    async with Client(urls(replicas)) as client:
        with pytest.raises(Problem, match=r"There is none\. .*Ask Ann\."):
            await client.subscribe("r")


async def test_what_one_refuses_is_refused_when_the_other_cannot_be_asked(replicas: Pair) -> None:
    a, b = replicas
    await b.stop()
    a.refusals = [dict(NOT_FOUND)]
    async with Client(urls(replicas), first_patience_s=0) as client:
        with pytest.raises(Problem) as caught:
            await client.subscribe("r")
    assert caught.value.code == "not-found"


async def test_a_client_of_one_url_is_refused_as_ever(replicas: Pair) -> None:
    a, _ = replicas
    a.refusals = [dict(NOT_FOUND)]
    async with Client(a.url) as client:
        with pytest.raises(Problem) as caught:
            await client.subscribe("r")
    assert caught.value.detail == "There is none."


async def test_a_replica_that_answers_nothing_but_unavailable_is_left(
    replicas: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(herald.session, "TROUBLED_S", 0.3)
    a, _ = replicas
    a.refusals = [{"type": "urn:herald:problem:unavailable", "title": "Not right now"}] * 1000
    a.ready = False
    async with Client(urls(replicas)) as client:
        await client.publish("r", 1, timeout_s=60)
    assert len(a.refusals) > 900


def test_the_command_says_once_where_it_goes_on(threaded_gateway: FakeGateway) -> None:
    away = "http://127.0.0.1:9"
    arguments = ["pub", "r", "hello", "--url", away, "--url", threaded_gateway.url, "--json"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    here = threaded_gateway.url.removeprefix("http://")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == f"herald: 127.0.0.1:9 does not answer; going on at {here}.\n"
    assert json.loads(done.stdout)["offset"] == 1


def test_the_command_takes_urls_and_tokens_from_the_environment_with_commas(
    threaded_gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERALD_URL", f"http://127.0.0.1:9, {threaded_gateway.url}")
    monkeypatch.setenv("HERALD_TOKEN", "first,second")
    assert CliRunner().invoke(cli, ["pub", "r", "hello"], catch_exceptions=False).exit_code == 0
    assert threaded_gateway.handshakes == ["second"]
    monkeypatch.setenv("HERALD_TOKEN", "1,2,3")
    refused: Any = CliRunner().invoke(cli, ["pub", "r", "hello"], catch_exceptions=False)
    assert (refused.exit_code, "one token for all, or one for each" in refused.stderr) == (2, True)
