"""Rates and connection limits at the edge: what is refused is refused whole, says truthfully when to come back, and costs
nobody else anything. The tests' own proxy (HERALD_TRUSTED_PROXIES) gives each its own client addresses."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
import timeit
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace, TracebackType
from typing import Any

import httpx
import pytest
from herald import Client as HeraldClient
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from demo.harness.servers import wait_for
from eventing.access.rules.limits import Limits
from eventing.core.config import Config
from eventing.core.errors import RateLimited, Unauthenticated
from eventing.core.principals import Principal
from eventing.gateway.admission.limits import caller
from tests.gateway.client import Client
from tests.gateway.server import BATCH, PLAIN, STRUCTURED, LiveGateway, Prepared, event

EVENTS_PER_S = 20
RP_EVENTS_PER_S = 30
REQUESTS_PER_S = 40
COMES_BACK_S = 0.3  # in which so little of a budget comes back that it makes no difference
TRIES = 20
SESSIONS = 3
STRANGERS_SESSIONS = 2
ACCEPTS_PER_S = 20
FAILED_AT_ONCE = 10
PUBLISH_COST_S_MAX = 10e-6  # measured: 0.8e-6; the bound leaves room for a busy machine


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """An edge with low limits; each test has principals, RPs and addresses of its own."""
    live_gateway = LiveGateway(
        tmp_path_factory.mktemp("limited") / "var",
        prepared,
        rate_window_s=1,
        publish_events_per_s=EVENTS_PER_S,
        publish_bytes_per_s=20_000,
        rp_events_per_s=RP_EVENTS_PER_S,
        requests_per_s=REQUESTS_PER_S,
        sessions_per_principal=SESSIONS,
        sessions_per_address=STRANGERS_SESSIONS,
        accepts_per_s=ACCEPTS_PER_S,
        failed_tokens_per_s=1,
        trusted_proxies="127.0.0.1",
    )
    with live_gateway:
        yield live_gateway
        assert "Traceback" not in live_gateway.log


def batch(count: int, prefix: str, data: Any = None) -> str:
    return json.dumps([event(f"{prefix}-{number}", data) for number in range(count)])


def post(http: httpx.Client, rp: str, content: str) -> httpx.Response:
    return http.post(f"/api/v1/rps/{rp}/events", content=content, headers=BATCH)


def until_429(ask: Callable[[], httpx.Response]) -> httpx.Response:
    """Repeat a request until it is refused for its rate."""
    with ThreadPoolExecutor(4) as many:
        for _ in range(50):
            for answer in list(many.map(lambda _: ask(), range(REQUESTS_PER_S))):
                if answer.status_code == 429:
                    return answer
    raise AssertionError("no request was refused")


class Attempt:
    """Something that uses a budget up, by principals of a name of their own."""

    def __init__(self, subject: str, number: int) -> None:
        self.succeeded = False
        self._subject, self._number = subject, number
        self._began = 0.0

    def __enter__(self) -> str:
        self._began = time.monotonic()
        return f"{self._subject}-{self._number}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.succeeded = kind is None
        slow = time.monotonic() - self._began > COMES_BACK_S
        return isinstance(error, AssertionError) and slow and self._number < TRIES


def attempts(subject: str) -> Iterator[Attempt]:
    """`for attempt in attempts("ann"): with attempt as name: ...` is repeated, with another name, if it failed because a busy
    machine took so long for it that the budget had come back."""
    for number in range(1, TRIES + 1):
        yield (attempt := Attempt(subject, number))
        if attempt.succeeded:
            return


def offset_of(live_gateway: LiveGateway, rp: str) -> int:
    """How many events the RP holds."""
    with live_gateway.http("counter", admin=True) as http:
        return int(http.get(f"/api/v1/rps/{rp}/events", params={"after": "last", "limit": 1}).json()["offset"])


def fields(header: str) -> dict[str, dict[str, str]]:
    """A list of structured-field items with parameters: name → parameters."""
    items = {}
    for item in header.split(", "):
        match = re.fullmatch(r'"([a-z-]+)"((?:;[a-z]+=(?:[0-9]+|"[a-z-]+"))*)', item)
        assert match, header
        items[match[1]] = dict(part.split("=") for part in match[2].split(";")[1:])
    return items


def test_a_429_tells_the_truth(limited: LiveGateway) -> None:
    for attempt in attempts("truth"):
        rp = limited.create_rp()
        with attempt as name, limited.http(name) as http:
            assert post(http, rp, batch(2 * EVENTS_PER_S, "a")).status_code == 201
            refused = post(http, rp, batch(EVENTS_PER_S, "b"))
            assert refused.status_code == 429
            assert refused.headers["retry-after"] in ("1", "2")
            assert int(fields(refused.headers["ratelimit"])["publish-events"]["r"]) < EVENTS_PER_S
    with limited.http(name) as http:
        problem = refused.json()
        assert problem["type"] == "urn:herald:problem:rate-limited"
        assert problem["limit"] == "publish-events"
        assert problem["violated-policies"] == ["publish-events"]
        policies, left = fields(refused.headers["ratelimit-policy"]), fields(refused.headers["ratelimit"])
        assert policies["publish-events"] == {"q": str(EVENTS_PER_S), "w": "1"}
        assert policies["publish-bytes"] == {"q": "20000", "qu": '"content-bytes"', "w": "1"}
        assert int(left["requests"]["r"]) >= REQUESTS_PER_S - 10
        assert set(left) == set(policies)
        assert offset_of(limited, rp) == 2 * EVENTS_PER_S
        wait_s = int(refused.headers["retry-after"])
        asyncio.run(asyncio.sleep(wait_s))  # as it was told
        again = post(http, rp, batch(EVENTS_PER_S, "b"))
        assert again.status_code == 201
        assert again.json()["offset"] == 3 * EVENTS_PER_S


def test_bytes_are_limited_as_events_are(limited: LiveGateway) -> None:
    for attempt in attempts("bytes"):
        rp = limited.create_rp()
        with attempt as name, limited.http(name) as http:
            assert post(http, rp, batch(4, "a", "x" * 9000)).status_code == 201
            refused = post(http, rp, batch(2, "b", "x" * 9000))
            assert (refused.status_code, refused.json()["limit"]) == (429, "publish-bytes")
    assert offset_of(limited, rp) == 4


def test_a_batch_above_the_burst_is_possible_and_paid_off(limited: LiveGateway) -> None:
    for attempt in attempts("large"):
        rp = limited.create_rp()
        with attempt as name, limited.http(name) as http:
            assert post(http, rp, batch(3 * EVENTS_PER_S, "a")).status_code == 201
            refused = post(http, rp, batch(1, "b"))
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) in (1, 2, 3)
    assert offset_of(limited, rp) == 3 * EVENTS_PER_S


async def test_over_websocket_a_publish_is_stored_whole_or_refused_whole(limited: LiveGateway) -> None:
    second = [event(f"b-{n}") for n in range(EVENTS_PER_S)]
    for attempt in attempts("socket"):
        rp = limited.create_rp()
        with attempt as name:
            async with Client(limited, subject=name) as client:
                first = await client.send("publish", rp=rp, events=[event(f"a-{n}") for n in range(30)])
                refused = await client.ask("publish", rp=rp, events=second)  # read together with the first
                assert (await first)["offset"] == 30
                assert refused["op"] == "error"
    assert refused["type"] == "urn:herald:problem:rate-limited"
    assert refused["retry_after_s"] in (1, 2)
    assert refused["limit"] == "publish-events"
    assert offset_of(limited, rp) == 30
    async with Client(limited, subject=name) as client:
        await asyncio.sleep(refused["retry_after_s"])  # as it was told
        assert (await client.ok("publish", rp=rp, events=second))["offset"] == 30 + EVENTS_PER_S
    assert offset_of(limited, rp) == 30 + EVENTS_PER_S


async def test_operations_over_websocket_count_as_requests(limited: LiveGateway) -> None:
    async with Client(limited, subject="pings") as client:
        answers = [await client.send("ping") for _ in range(4 * REQUESTS_PER_S)]
        outcomes = [(await asyncio.wait_for(answer, 60))["op"] for answer in answers]
        assert outcomes.count("ok") >= REQUESTS_PER_S - 1
        assert outcomes.count("error") > 0


def test_a_busy_rendezvous_point_costs_the_others_nothing(limited: LiveGateway) -> None:
    for attempt in attempts("busy"):
        busy, quiet = limited.create_rp(), limited.create_rp()
        with (
            attempt as name,
            limited.http(name) as one,
            limited.http(f"{name}b") as two,
            limited.http(f"{name}c") as three,
        ):
            assert post(one, busy, batch(2 * RP_EVENTS_PER_S, "a")).status_code == 201
            for http in (two, three):
                refused = post(http, busy, batch(EVENTS_PER_S, "b"))
                assert (refused.status_code, refused.json()["limit"]) == (429, "rp-publish-events")
                assert refused.json()["detail"].endswith(f"Wait {refused.headers['retry-after']} s.")
            taken = post(two, quiet, batch(EVENTS_PER_S, "c"))  # nothing was taken for the refused ones
            assert taken.status_code == 201
    assert offset_of(limited, busy) == 2 * RP_EVENTS_PER_S


async def test_a_flood_is_read_no_further_and_others_notice_nothing(limited: LiveGateway) -> None:
    flooded, rp = limited.create_rp(), limited.create_rp()
    count = 30_000
    headers = {"Authorization": f"Bearer {limited.token('flood')}"}
    answers: dict[str, list[Any]] = {"ok": [], "error": []}

    async def read(ws: Any) -> None:
        async for text in ws:
            answer = json.loads(text)
            answers[answer["op"]].append(answer["offset"] if answer["op"] == "ok" else answer["type"])

    async def flood(ws: Any) -> None:
        for number in range(count):
            frame = {"op": "publish", "id": number, "rp": flooded, "event": event(f"f-{number}")}
            await ws.send(json.dumps(frame))

    async with connect(
        limited.ws_url(), additional_headers=headers, compression=None, max_queue=None, proxy=None
    ) as ws:
        began = time.monotonic()
        tasks = [asyncio.create_task(flood(ws)), asyncio.create_task(read(ws))]
        async with limited.ahttp("calm") as http:
            for number in range(EVENTS_PER_S):
                sent = http.post(f"/api/v1/rps/{rp}/events", content=json.dumps(event(f"{number}")), headers=STRUCTURED)
                answer = await asyncio.wait_for(sent, 30)
                assert answer.status_code == 201
                await asyncio.sleep(0.05)  # the pace of one who keeps to the rates
        async with asyncio.timeout(60):
            while len(answers["error"]) < 200:  # noqa: ASYNC110 - it was refused, and then no longer read
                await asyncio.sleep(0.01)
        most = EVENTS_PER_S * (time.monotonic() - began + 1)
        assert len(answers["ok"]) + len(answers["error"]) < count
        for task in tasks:
            task.cancel()
        ws.transport.abort()
    assert set(answers["error"]) == {"urn:herald:problem:rate-limited"}
    assert len(answers["ok"]) <= most
    assert offset_of(limited, flooded) >= max(answers["ok"]) == len(answers["ok"])  # nothing acknowledged is lost


async def test_connections_of_one_principal_are_limited_whatever_they_are(limited: LiveGateway) -> None:
    rp = limited.create_rp()
    async with Client(limited, subject="many"), Client(limited, subject="many"), limited.ahttp("many") as http:
        async with http.stream("GET", f"/api/v1/rps/{rp}/stream") as stream:
            assert stream.status_code == 200
            with pytest.raises(InvalidStatus) as caught:
                await Client(limited, subject="many").__aenter__()
            assert caught.value.response.status_code == 429
            assert int(caught.value.response.headers["retry-after"]) >= 1
            assert json.loads(caught.value.response.body or b"")["limit"] == "sessions"
            async with Client(limited, subject="few") as other:
                await other.ok("ping")
        async with asyncio.timeout(30):
            while True:
                try:
                    async with Client(limited, subject="many") as third:
                        await third.ok("ping")
                        break
                except InvalidStatus:
                    await asyncio.sleep(0.1)


def test_without_a_token_the_client_address_counts(limited: LiveGateway) -> None:
    rp = limited.create_rp()

    def ask(address: str) -> httpx.Response:
        return http.get(f"/api/v1/rps/{rp}/events", headers={"X-Forwarded-For": address})

    with httpx.Client(base_url=limited.url(), **PLAIN) as http:
        assert ask("198.51.100.7").status_code == 401
        until_429(lambda: ask("6.6.6.6, 198.51.100.7"))
        assert ask("198.51.100.8").status_code == 401
        assert ask("6.6.6.6").status_code == 401  # what the client itself wrote before the proxy was not believed
        hosts = itertools.count(1)
        until_429(lambda: ask(f"2001:db8::{next(hosts)}"))


async def test_strangers_of_one_address_share_their_rates_and_connections(limited: LiveGateway) -> None:
    async def stranger(address: str) -> Any:
        headers = {"X-Forwarded-For": address}
        return await connect(limited.ws_url(), additional_headers=headers, proxy=None)

    async def publish(ws: Any, rp: str, prefix: str) -> str:
        events = [event(f"{prefix}-{number}") for number in range(EVENTS_PER_S)]
        await ws.send(json.dumps({"op": "publish", "id": 1, "rp": rp, "events": events}))
        answer = json.loads(await asyncio.wait_for(ws.recv(), 30))
        return str(answer.get("limit", answer["op"]))

    for number, attempt in enumerate(attempts("stranger")):
        rp = limited.create_rp(policy=[{"issuer": "anyone", "allow": ["publish", "history"]}])
        path = f"{limited.url()}/api/v1/rps/{rp}/events"
        wait_for(lambda path=path: httpx.get(path, **PLAIN).status_code == 200, about="anyone is admitted")  # type: ignore[misc]
        shared = f"198.51.100.{30 + number}"
        one, two = [await stranger(shared) for _ in range(STRANGERS_SESSIONS)]
        with pytest.raises(InvalidStatus) as caught:
            await stranger(shared)
        assert caught.value.response.status_code == 429
        other = await stranger(f"198.51.100.{130 + number}")
        with attempt:
            assert await publish(one, rp, "a") == "ok"
            assert await publish(two, rp, "b") == "publish-events"
            assert await publish(other, rp, "c") in ("ok", "rp-publish-events")
        for ws in (one, two, other):
            await ws.close()


def test_a_flood_of_unknown_tokens_is_refused_unseen_everywhere(limited: LiveGateway) -> None:
    rp = limited.create_rp()

    def ask(token: str, path: str, **headers: str) -> httpx.Response:
        return http.get(path, headers={"Authorization": f"Bearer {token}", **headers})

    events = f"/api/v1/rps/{rp}/events"
    with httpx.Client(base_url=limited.url(), **PLAIN) as http:
        for number, attempt in enumerate(attempts("guesser")):
            good, fresh = limited.token(f"known-{number}"), limited.token(f"fresh-{number}")
            address = {"X-Forwarded-For": f"198.51.100.{150 + number}"}
            with attempt:
                assert ask(good, events).status_code == 200
                guesses = [ask(f"{good[:-4]}{guess:04}", events, **address) for guess in range(FAILED_AT_ONCE + 5)]
                assert [guess.status_code for guess in guesses[:FAILED_AT_ONCE]] == [401] * FAILED_AT_ONCE
                assert guesses[-1].status_code == 429
                assert guesses[-1].json()["limit"] == "failed-tokens"
                assert int(guesses[-1].headers["retry-after"]) >= 1
                assert ask("x.y.z", "/api/v1/rps", **address).status_code == 429
                unseen = ask(fresh, events, **address)  # unknown is unknown: not even a good one is looked at
                assert unseen.status_code == 429
                assert ask(good, events, **address).status_code == 200  # what is known needs no looking
        assert ask(fresh, events, **{"X-Forwarded-For": "198.51.100.21"}).status_code == 200
        assert ask(fresh, events, **address).status_code == 200


async def test_a_refused_flood_of_tokens_costs_no_verification() -> None:
    verified = 0

    async def principal(_: str) -> Principal:
        nonlocal verified
        verified += 1
        raise Unauthenticated("No.")

    limits = Limits(Config(failed_tokens_per_s=1), lambda: 1000.0)
    gateway: Any = SimpleNamespace(limits=limits, tokens=SimpleNamespace(peek=lambda _: None, principal=principal))
    refused = 0
    for number in range(1000):
        headers = [(b"authorization", b"Bearer guess-%d" % number)]
        scope = {"headers": headers, "client": ("198.51.100.1", 1), "query_string": b""}
        with pytest.raises((Unauthenticated, RateLimited)) as caught:
            await caller(gateway, scope)
        refused += isinstance(caught.value, RateLimited)
    assert verified == FAILED_AT_ONCE
    assert refused == 1000 - verified


def test_rest_requests_count_before_django_and_refused_ones_too(limited: LiveGateway) -> None:
    with limited.http("rest") as http:
        first = http.get("/api/v1/nothing")
        assert first.status_code == 404
        assert set(fields(first.headers["ratelimit"])) == {"requests"}
        refused = until_429(lambda: http.get("/api/v1/rps/none/events"))
        assert (refused.status_code, refused.json()["limit"]) == (429, "requests")
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.headers["retry-after"] == "1"
        asyncio.run(asyncio.sleep(1))  # as it was told
        assert http.get("/api/v1/rps").status_code == 200


async def test_the_limits_that_are_read_are_those_that_are_enforced(limited: LiveGateway) -> None:
    for attempt in attempts("reader"):
        rp = limited.create_rp()
        with attempt as name, limited.http(name) as http:
            async with Client(limited, subject=name), Client(limited, subject=name):
                assert post(http, rp, batch(15, "a")).status_code == 201
                document = http.get("/api/v1/limits", params={"rp": rp}).json()
                states = {state["name"]: state for state in document["limits"]}
                events = states["publish-events"]
                assert post(http, rp, batch(events["remaining"], "b")).status_code == 201
                assert post(http, rp, batch(EVENTS_PER_S, "c")).status_code == 429
        assert (document["principal"], document["counted_as"], document["domain"]) == (name, "principal", None)
        assert (events["limit"], events["window_s"], events["counted"]) == (EVENTS_PER_S, 1, "gateway")
        assert 5 <= events["remaining"] <= EVENTS_PER_S
        assert events["used"] == EVENTS_PER_S - events["remaining"]
        assert events["reset_s"] in (0, 1)
        assert (states["sessions"]["used"], states["sessions"]["remaining"]) == (2, SESSIONS - 2)
        assert states["requests"]["limit"] == REQUESTS_PER_S
        assert {state["name"]: state["limit"] for state in document["rp"]}["rp-publish-events"] == RP_EVENTS_PER_S
    with limited.http("other-reader") as http:
        others = {state["name"]: state for state in http.get("/api/v1/limits").json()["limits"]}
        assert others["publish-events"]["used"] == 0
    administrators = {state["name"] for state in limited.admin.get("/api/v1/limits").json()["domain"]}
    assert {
        "domain-requests",
        "domain-publish-events",
        "accepts",
        "domain-rps",
        "domain-history-bytes",
    } <= administrators


async def test_the_client_library_waits_and_everything_is_stored_once(limited: LiveGateway) -> None:
    rp, count = limited.create_rp(), EVENTS_PER_S + 8
    async with HeraldClient(limited.url(), token=limited.token("library")) as client:
        confirmed = await asyncio.gather(*(client.publish(rp, {"n": n}) for n in range(count)))
        assert sorted(one.offset for one in confirmed) == list(range(1, count + 1))
        with limited.http("library") as http:
            until_429(lambda: http.get("/api/v1/rps/none/events"))  # which costs little, also on a busy machine
        await client.rps.get(rp)  # refused at first, and repeated as it was told
    assert offset_of(limited, rp) == count


def test_what_is_counted_costs_a_microsecond_or_so() -> None:
    many = 10**9
    limits = Limits(Config(publish_events_per_s=many, rp_events_per_s=many), lambda: 1000.0)
    ann = limits.principal("ann")
    best = min(timeit.repeat(lambda: limits.publish(ann, "rp", 1, 1), number=2000, repeat=20)) / 2000
    assert best < PUBLISH_COST_S_MAX


async def test_too_many_new_connections_are_put_off_with_503(limited: LiveGateway) -> None:
    """Last: it empties the bucket that all connections of the process share."""

    async def open_one(token: str) -> Any:
        try:
            async with connect(limited.ws_url(access_token=token), proxy=None):
                return None
        except InvalidStatus as error:
            return error.response

    for attempt in attempts("herd"):
        with attempt as name:
            tokens = [limited.token(f"{name}-{number}") for number in range(6 * ACCEPTS_PER_S)]
            answers = await asyncio.gather(*(open_one(token) for token in tokens))
            refused = [answer for answer in answers if answer is not None]
            assert len(refused) >= ACCEPTS_PER_S
            assert len(answers) - len(refused) >= ACCEPTS_PER_S or name != "herd-1"
    assert {answer.status_code for answer in refused} == {503}
    told = sorted(int(answer.headers["retry-after"]) for answer in refused)
    assert told[0] == 1
    assert told[-1] > told[0]  # they are not all told to come at once
    problem = json.loads(refused[0].body or b"")
    assert (problem["type"], problem["limit"]) == ("urn:herald:problem:unavailable", "accepts")
    await asyncio.sleep(1)  # as the soonest were told
    assert await open_one(tokens[0]) is None
    assert wait_for(lambda: limited.admin.get("/readyz").status_code in (200, 503), about="requests are still served")
