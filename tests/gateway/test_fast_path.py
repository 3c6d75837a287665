"""Publishes as clients send them take the fast path, and a head that is remembered is no way around any check."""

from __future__ import annotations

import asyncio
import http.client
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from herald.sync import Client as SyncClient

from demo.harness.servers import ROOT, wait_for
from tests.gateway.raw import Raw
from tests.gateway.server import BATCH, STRUCTURED, LiveGateway, event, ids_of
from tests.telemetry.scraping import scrape, since

FAST, DECLINED = "herald_publish_fast_path_total", "herald_publish_fast_path_declined_total"
TEXT = b"x" * 128
_FETCH = """
const [url, token] = process.argv.slice(1);
for (let n = 0; n < 3; n++) {
  const answer = await fetch(url, {method: "POST", headers: {authorization: `Bearer ${token}`, "content-type": "text/plain"}, body: "hello"});
  await answer.text();
  if (answer.status !== 201) process.exit(1);
}
"""


@pytest.fixture
def token(live_gateway: LiveGateway, rp: str) -> str:
    """A token that the gateway has in memory, as it has the RP."""
    made = live_gateway.token()
    with Raw(live_gateway) as raw:
        raw.send(publish(rp, made, b"warm"))
        assert raw.answer().status == 201
    return made


@pytest.fixture
def counted(live_gateway: LiveGateway, token: str) -> Callable[[], tuple[int, int]]:
    """How many publishes have taken the fast path since the test began, and how many were declined."""
    before = scrape(live_gateway.url())

    def grown() -> tuple[int, int]:
        of = since(before, scrape(live_gateway.url()))
        return int(of(FAST)), int(of(DECLINED))

    return grown


def publish(
    rp: str, token: str, body: bytes, *more: str, kind: str = "text/plain", bearer: str = "Authorization: Bearer"
) -> bytes:
    """A request as wrk sends it."""
    lines = [
        f"POST /api/v1/rps/{rp}/events HTTP/1.1",
        "Host: 127.0.0.1:8000",
        f"Content-Type: {kind}",
        *([f"{bearer} {token}"] if token else []),
        *more,
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def stored(live_gateway: LiveGateway, rp: str) -> list[str]:
    return ids_of(live_gateway.admin.get(f"/api/v1/rps/{rp}/events").json()["events"])


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "application/octet-stream"])
def test_wrk(live_gateway: LiveGateway, rp: str, token: str, counted: Callable[[], tuple[int, int]], kind: str) -> None:
    with Raw(live_gateway) as raw:
        for _ in range(5):
            raw.send(publish(rp, token, b'"' + TEXT + b'"', kind=kind))
            assert raw.answer().status == 201
    assert counted() == (5, 0)


def test_structured_events_batches_and_bodies_of_changing_length(
    live_gateway: LiveGateway, rp: str, token: str, counted: Callable[[], tuple[int, int]]
) -> None:
    with Raw(live_gateway) as raw:
        for number in range(12):
            one = event(f"e-{number}", "x" * (number % 3))
            raw.send(publish(rp, token, json.dumps(one).encode(), kind=STRUCTURED["content-type"]))
            assert raw.answer().status == 201
        for number in range(3):
            batch = json.dumps([event(f"b-{number}-{place}") for place in range(3)]).encode()
            raw.send(publish(rp, token, batch, kind=BATCH["content-type"]))
            assert len(json.loads(raw.answer().body)["results"]) == 3
    assert counted() == (15, 0)
    expected = [f"e-{number}" for number in range(12)] + [f"b-{n}-{place}" for n in range(3) for place in range(3)]
    assert stored(live_gateway, rp)[1:] == expected


def test_other_ways_to_write_a_request(
    live_gateway: LiveGateway, rp: str, token: str, counted: Callable[[], tuple[int, int]]
) -> None:
    with Raw(live_gateway) as raw:
        raw.send(publish(rp, token, TEXT, bearer="authorization: bearer"))
        assert raw.answer().status == 201
        raw.send(publish(rp, token, TEXT, bearer="AUTHORIZATION: BEARER "))
        assert raw.answer().status == 201
        raw.send(publish(rp, token, b"{}", "ce-specversion: 1.0", "ce-id: b", "ce-source: /b", "ce-type: t"))
        assert raw.answer().status == 201
        raw.send(publish(rp, token, TEXT, f"traceparent: 00-{'a' * 32}-{'b' * 16}-01", "x-request-id: mine"))
        assert raw.answer().headers["x-request-id"] == "mine"
        raw.send(publish(rp, token, TEXT, "connection: close"))
        assert raw.answer().status == 201
        assert raw.closed()
    assert counted() == (5, 0)


def test_a_head_and_a_body_that_are_sent_separately(
    live_gateway: LiveGateway, rp: str, token: str, counted: Callable[[], tuple[int, int]]
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", live_gateway.port(), timeout=10)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/plain"}
    for _ in range(3):
        connection.putrequest("POST", f"/api/v1/rps/{rp}/events")
        for name, value in {**headers, "Content-Length": "10"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(b"01234")
        connection.send(b"56789")
        answer = connection.getresponse()
        assert answer.status == 201
        answer.read()
    connection.close()
    assert counted() == (3, 0)


def test_httpx_and_our_own_client(
    live_gateway: LiveGateway, rp: str, token: str, counted: Callable[[], tuple[int, int]]
) -> None:
    with httpx.Client(
        base_url=live_gateway.url(), headers={"Authorization": f"Bearer {token}"}, trust_env=False
    ) as client:
        for _ in range(3):
            assert client.post(f"/api/v1/rps/{rp}/events", content="hello").status_code == 201
            assert client.post(f"/api/v1/rps/{rp}/events", json={"a": 1}).status_code == 201
    with SyncClient(live_gateway.url(), token=token) as client:
        client.publish_http(rp, {"a": 1})
    assert counted() == (7, 0)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(live_gateway: LiveGateway, rp: str, token: str, counted: Callable[[], tuple[int, int]]) -> None:
    url = f"{live_gateway.url()}/api/v1/rps/{rp}/events"
    command = ["curl", "-sf", "--noproxy", "*", "-H", f"Authorization: Bearer {token}", "-d", "It snows.", url, url]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert counted() == (2, 0)


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")
def test_wrk_itself(
    live_gateway: LiveGateway, rp: str, token: str, counted: Callable[[], tuple[int, int]], tmp_path: Path
) -> None:
    script = tmp_path / "publish.lua"
    script.write_text(
        f'wrk.method, wrk.body = "POST", "hello"\nwrk.headers["Content-Type"] = "text/plain"\n'
        f'wrk.headers["Authorization"] = "Bearer {token}"\n'
    )
    url = f"{live_gateway.url()}/api/v1/rps/{rp}/events"
    told = subprocess.run(
        ["wrk", "-t1", "-c4", "-d1s", "-s", str(script), url], check=True, capture_output=True, text=True, timeout=30
    )
    assert "Non-2xx" not in told.stdout
    fast, declined = counted()
    assert fast > 0
    assert declined == 0


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_fetch(live_gateway: LiveGateway, rp: str, token: str, counted: Callable[[], tuple[int, int]]) -> None:
    url = f"{live_gateway.url()}/api/v1/rps/{rp}/events"
    command = ["node", "--input-type=module", "-e", _FETCH, url, token]
    subprocess.run(command, check=True, capture_output=True, timeout=30, cwd=ROOT)
    assert counted() == (3, 0)


def test_no_token_where_anyone_may_publish(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(policy=[{"issuer": "anyone", "allow": ["publish", "describe"]}])
    with Raw(live_gateway) as raw:
        raw.send(publish(rp, "", TEXT))
        assert raw.answer().status == 201
        before = scrape(live_gateway.url())
        for _ in range(3):
            raw.send(publish(rp, "", TEXT))
            assert raw.answer().status == 201
    grown = since(before, scrape(live_gateway.url()))
    assert (grown(FAST), grown(DECLINED)) == (3, 0)


# What is declined is counted by its reason


def test_reasons(live_gateway: LiveGateway, rp: str, token: str) -> None:
    before = scrape(live_gateway.url())
    url = f"/api/v1/rps/{rp}/events"
    with live_gateway.http("somebody-new") as client, Raw(live_gateway) as raw:
        assert client.post(url, content="a").status_code == 201  # their token is not in memory
        assert client.post(f"{url}?x=1", content="a").status_code == 201
        assert client.post(url, content=b"a" * 70_000).status_code == 201
        assert client.post(url, content=iter([b"a" * 35_000] * 2)).status_code == 201  # chunked
        assert client.post("/api/v1/rps/unknown/events", content="a").status_code == 404
        assert client.post(url, content="{}", headers=STRUCTURED).status_code == 400
        raw.send(publish(rp, token, b"1") + publish(rp, token, b"2"))
        assert [raw.answer().status for _ in range(2)] == [201, 201]
    grown = since(before, scrape(live_gateway.url()))
    told = {
        reason: grown(DECLINED, reason=reason) for reason in ("rp", "token", "refused", "query", "body", "pipelined")
    }
    assert told == {"rp": 1, "token": 1, "refused": 1, "query": 1, "body": 2, "pipelined": 1}
    assert grown(FAST) == 1


def test_a_body_that_does_not_come_is_left_to_the_ordinary_path(live_gateway: LiveGateway, rp: str, token: str) -> None:
    whole = publish(rp, token, TEXT)
    with Raw(live_gateway) as raw:
        raw.send(whole[:-1])
        answer = raw.answer()
        assert (answer.status, answer.code) == (408, "timeout")
    with Raw(live_gateway) as raw:  # and one that leaves
        raw.send(whole[:-1])
    with Raw(live_gateway) as raw:
        raw.send(publish(rp, "no.good.token", TEXT)[:-1])
        assert raw.answer().status == 401, "for the verdict on a token nobody waits for the body"


# What is remembered of a head decides nothing


def test_a_revoked_token_is_refused_behind_a_head_that_was_taken(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp()
    token = live_gateway.token("leaving", jti="leaving-1")
    with Raw(live_gateway) as raw:
        request = publish(rp, token, TEXT)
        for _ in range(3):
            raw.send(request)
            assert raw.answer().status == 201
        revoked = live_gateway.admin.post(
            "/api/v1/revocations", json={"kind": "subject", "value": "leaving", "reason": "test"}
        )
        assert revoked.status_code == 201, revoked.text

        def status() -> int:
            raw.send(request)
            return raw.answer().status

        wait_for(lambda: status() == 401, about="the token is refused")


def test_a_deleted_or_paused_rp_takes_nothing_behind_a_head_that_was_taken(
    live_gateway: LiveGateway, rp: str, token: str
) -> None:
    request = publish(rp, token, TEXT)
    with Raw(live_gateway) as raw:
        for _ in range(2):
            raw.send(request)
            assert raw.answer().status == 201
        assert live_gateway.admin.delete(f"/api/v1/rps/{rp}").status_code in (200, 202, 204)

        def status() -> int:
            raw.send(request)
            return raw.answer().status

        wait_for(lambda: status() in (404, 410), about="the RP is gone")


def test_two_heads_on_one_connection_are_told_apart(live_gateway: LiveGateway, rp: str, token: str) -> None:
    other = live_gateway.create_rp()
    with Raw(live_gateway) as raw:
        for number in range(6):
            target = (rp, other)[number % 2]
            body = json.dumps(event(f"e{number}")).encode()
            raw.send(publish(target, token, body, kind=STRUCTURED["content-type"]))
            assert raw.answer().status == 201
        raw.send(raw.head("GET", f"/api/v1/rps/{rp}/events"))
        assert ids_of(json.loads(raw.answer().body)["events"])[1:] == ["e0", "e2", "e4"]
    assert stored(live_gateway, other) == ["e1", "e3", "e5"]


def test_requests_that_overtake_their_answers_stay_in_order(live_gateway: LiveGateway, rp: str, token: str) -> None:
    kind = STRUCTURED["content-type"]
    with Raw(live_gateway) as raw:
        for number in range(3):
            raw.send(publish(rp, token, json.dumps(event(f"w{number}")).encode(), kind=kind))
            raw.answer()
        for number in range(40):
            raw.send(publish(rp, token, json.dumps(event(f"p{number:02}")).encode(), kind=kind))
            if number % 3 == 2:
                raw.send(raw.head("GET", "/livez"))
        answers = [raw.answer() for _ in range(40 + 13)]
    assert {answer.status for answer in answers} <= {200, 201}
    offsets = [json.loads(answer.body)["offset"] for answer in answers if answer.status == 201]
    assert offsets == sorted(offsets)
    assert stored(live_gateway, rp)[4:] == [f"p{number:02}" for number in range(40)]


async def test_clients_that_leave_before_the_answer_do_no_harm(live_gateway: LiveGateway, rp: str, token: str) -> None:
    request = publish(rp, token, TEXT)
    for _ in range(20):
        with Raw(live_gateway) as raw:
            raw.send(request)
            raw.answer()
            raw.send(request)
    await asyncio.sleep(0)
    wait_for(lambda: len(stored(live_gateway, rp)) == 41, about="what was sent is stored")


def test_a_remembered_head_counts_for_rates(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(requests_per_s=5, rate_window_s=2)
    rp = live_gateway.create_rp()
    token = live_gateway.token("busy")
    with Raw(live_gateway) as raw:
        statuses = []
        for _ in range(14):
            raw.send(publish(rp, token, TEXT))
            answer = raw.answer()
            statuses.append(answer.status)
            assert "ratelimit" in answer.headers
    assert statuses[:10] == [201] * 10
    assert 429 in statuses


def test_what_is_wrong_in_the_body_is_refused_behind_a_head_that_was_taken(
    live_gateway: LiveGateway, rp: str, token: str
) -> None:
    kind = STRUCTURED["content-type"]
    good = json.dumps(event("good")).encode()
    with Raw(live_gateway) as raw:
        for body, status in (
            (good, 201),
            (good, 201),
            (b"{" * len(good), 400),
            (b"\xff" * len(good), 400),
            (good, 201),
        ):
            raw.send(publish(rp, token, body, kind=kind))
            assert raw.answer().status == status
    assert stored(live_gateway, rp)[1:] == ["good"]
