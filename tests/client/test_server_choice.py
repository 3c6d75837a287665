"""Clients move to better servers, and follow redirects, between scripted replicas (fake_gateway.py) that hold the same logs."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import AsyncIterator, Iterator

import herald.best_server
import pytest
from herald import Client, Move
from herald.rollover import learnable

from tests.client.fake_gateway import FakeGateway
from tests.client.test_client import data, take, until

Three = tuple[FakeGateway, FakeGateway, FakeGateway]
FORBIDDEN = {"type": "urn:herald:problem:forbidden", "title": "Operation not permitted", "detail": "Ask Ann."}
SLOW_S = 0.25  # of a measurement: far above what a busy machine adds to one


@pytest.fixture
async def three(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Three]:
    """Three domains that name each other; measurements follow each other soon."""
    monkeypatch.setattr(herald.best_server, "FIRST_S", 0.05)
    monkeypatch.setattr(herald.best_server, "CONFIRM_S", 0.05)
    monkeypatch.setattr(herald.best_server, "MEASURE_S", 0.2)
    async with FakeGateway() as a, FakeGateway() as b, FakeGateway() as c:
        b.logs = c.logs = a.logs
        urls = [a.url, b.url, c.url]
        for one in (a, b, c):
            one.alternatives = [url for url in urls if url != one.url]
            one.others = [other for other in (a, b, c) if other is not one]
        yield a, b, c


async def advise(at: FakeGateway, *to: FakeGateway, hops: int = 1, valid_s: float = 60.0) -> None:
    await at.say(op="redirect", rp="r", to=[one.url for one in to], hops=hops, valid_s=valid_s)


async def test_readers_and_publishers_move_to_a_clearly_faster_domain_and_lose_and_double_nothing(three: Three) -> None:
    a, b, c = three
    a.delay_s = c.delay_s = SLOW_S
    moves: list[Move] = []
    async with Client(a.url, on_move=moves.append) as client:
        subscription = await client.subscribe("r")
        count = 0
        while len(b.connections) < 2 or a.connections:
            await client.publish("r", count)
            count += 1
            await asyncio.sleep(0.005)
        await client.publish("r", count)
        assert data(await take(subscription, count + 1)) == list(range(count + 1))
    sent = [frame["event"]["id"] for one in three for frame in one.frames if frame["op"] == "publish"]
    assert len(sent) == len(set(sent)) == count + 1, "what was sent is answered before the move"
    assert [(move.new, move.reason, move.back) for move in moves] == [(b.url, "is slower", False)]
    assert not c.connections


async def test_the_next_domain_is_connected_to_before_the_present_one_is_left(three: Three) -> None:
    a, b, _ = three
    async with Client(a.url) as client:
        await client.subscribe("r")
        b.refuse_handshakes = [(503, dict(FORBIDDEN), None)]
        await advise(a, b)
        await until(lambda: b.handshakes)
        await client.publish("r", 1)
        assert a.connections, "a client that cannot connect stays, without an interruption"
        assert not any(frame["op"] == "unsubscribe" for frame in a.frames)
        assert sum(frame["op"] == "subscribe" for frame in a.frames) == 1


async def test_advice_is_followed_by_readers_and_publishers_and_the_next_domain_is_told_the_hops(three: Three) -> None:
    a, b, c = three
    async with Client(a.url) as client:
        subscription = await client.subscribe("r")
        await client.publish("r", 1)
        assert set(a.hops) == {"0"}
        await advise(a, b, c)
        await until(lambda: not a.connections and len([*b.connections, *c.connections]) == 2)
        await client.publish("r", 2)
        assert data(await take(subscription, 2)) == [1, 2]
        assert {*b.hops, *c.hops} == {"1"}


async def test_domains_that_point_to_each_other_end_after_two_hops_and_the_client_is_served(three: Three) -> None:
    a, b, c = three
    moves: list[Move] = []

    async def lie() -> None:
        while True:
            for one, others in ((a, (b, c)), (b, (a, c)), (c, (a, b))):
                await advise(one, *others, hops=0)
            await asyncio.sleep(0.01)

    async with Client(a.url, on_move=moves.append) as client:
        subscription = await client.subscribe("r")
        lying = asyncio.create_task(lie())
        for number in range(200):
            await client.publish("r", number)
            await asyncio.sleep(0.005)
        lying.cancel()
        assert data(await take(subscription, 200)) == list(range(200))
    asked = sum(frame["op"] == "subscribe" for one in three for frame in one.frames)
    assert asked <= 3, "the reader was at three domains at most"
    assert all(one in ("0", "1", "2") for gateway in three for one in gateway.hops)


async def test_advice_that_expired_or_is_malformed_moves_nobody(three: Three) -> None:
    a, b, _ = three
    async with Client(a.url) as client:
        subscription = await client.subscribe("r")
        for wrong in ({"valid_s": 0}, {"valid_s": -1}, {"valid_s": "60"}, {"hops": 3}, {"hops": "1"}, {"hops": None}):
            await a.say(**{"op": "redirect", "rp": "r", "to": [b.url], "hops": 1, "valid_s": 60, **wrong})
        await a.say(op="redirect", rp="r", to=["http://user:secret@127.0.0.1:1", 7, None], hops=1, valid_s=60)
        await a.say(op="alternatives", rp="r", alternatives={"url": b.url})
        await a.append("r", 1)
        assert data(await take(subscription, 1)) == [1]
        assert a.connections
        assert not b.handshakes


async def test_a_domain_that_the_token_is_not_for_is_no_alternative(three: Three) -> None:
    a, b, c = three
    a.delay_s = SLOW_S
    async with Client(a.url, token="secret") as client:
        await client.subscribe("r")
        await advise(a, b, c)
        await client.publish("r", 1)
        assert a.measurements == 0
    assert not b.handshakes
    async with Client(a.url, token={a.url: "for a", c.url: "for c"}) as client:
        await client.subscribe("r")
        await advise(a, b, c)
        await until(lambda: c.connections and not a.connections)
    assert set(c.handshakes) == {"for c"}
    assert not b.handshakes


async def test_a_connection_with_an_rp_that_only_the_present_domain_serves_stays(three: Three) -> None:
    a, b, _ = three
    a.delay_s = SLOW_S
    async with Client(a.url) as client:
        a.alternatives = []
        await client.subscribe("alone")
        a.alternatives = [b.url]
        await client.subscribe("r")
        await client.publish("r", 1)  # the publisher may move
        await until(lambda: b.connections)
        assert {"alone", "r"} in a.readers.values()


async def test_a_reading_that_the_chosen_domain_refuses_goes_on_where_it_was_served(three: Three) -> None:
    a, b, _ = three
    async with Client(a.url) as client:
        subscription = await client.subscribe("r")
        b.refusals = [dict(FORBIDDEN)]
        await advise(a, b)
        await until(lambda: any(frame["op"] == "subscribe" for frame in b.frames))
        await until(lambda: any("r" in rps for one in three for rps in one.readers.values()))
        await client.publish("r", 1)
        assert data(await take(subscription, 1)) == [1]


async def test_a_client_that_is_to_stay_states_no_hops_and_does_not_measure(three: Three) -> None:
    a, b, _ = three
    a.delay_s = SLOW_S
    async with Client(a.url, best_server=False) as client:
        await client.subscribe("r")
        await advise(a, b)
        await client.publish("r", 1)
    assert set(a.hops) == {None}
    assert a.measurements == 0


class AdvisingDomain(http.server.BaseHTTPRequestHandler):
    """Answers a publish that states hops by 307, and stores any other."""

    to: list[str] = []
    stored: list[str] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        advised = self.headers["Herald-Hops"] is not None and bool(self.to)
        document = {"type": "urn:herald:problem:moved", "to": self.to, "hops": 1, "valid_s": 60}
        body = json.dumps(document if advised else {"epoch": "e", "offset": 1}).encode()
        if not advised:
            self.stored.append(self.headers["Host"])
        self.send_response(307 if advised else 201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def advising() -> Iterator[list[str]]:
    """The URLs of two domains that advise to publish at each other."""
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), AdvisingDomain) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    urls = [f"http://127.0.0.1:{server.server_port}" for server in servers]
    AdvisingDomain.to, AdvisingDomain.stored = urls, []
    yield urls
    for server in servers:
        server.shutdown()
        server.server_close()


async def test_a_publish_over_http_follows_one_redirect_and_is_stored_once(advising: list[str]) -> None:
    first, second = advising
    async with Client(first) as client:
        await client.publish_http("r" * 26, 1)
    async with Client(first, token={first: "t"}) as client:
        await client.publish_http("r" * 26, 2)  # no token for the second
    async with Client(first, best_server=False) as client:
        await client.publish_http("r" * 26, 3)
    assert AdvisingDomain.stored == [url.removeprefix("http://") for url in (second, first, first)]


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1",
        "https://10.1.2.3/herald",
        "https://169.254.169.254",
        "https://[::1]:8000",
        "https://[fd00::1]",
        "https://[::ffff:10.0.0.1]",
        "https://localhost",
        "https://a.localhost.",
        "https://2130706433",
        "https://0x7f.1",
        "https://user@b.example",
        "https://b.example/?x=1",
        "https://b.example/#x",
        "ftp://b.example",
        "http://b.example",
        "https://" + "b" * 2048,
        "https://[b",
        7,
        None,
    ],
)
def test_an_address_in_a_private_network_or_of_no_domain_is_not_learned_from_a_domain_outside(url: object) -> None:
    assert learnable([url, "https://c.example"], "https://a.example") == ["https://c.example"]
    if isinstance(url, str) and url.startswith("https://127"):
        assert learnable([url], "https://localhost:8000") == [url], "within one network it is"
