"""The short way of a publish over HTTP answers as the ordinary way does, and leaves to that whatever is not in order."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from demo.harness.servers import wait_for
from tests.gateway.raw import Raw
from tests.gateway.server import BATCH, STRUCTURED, LiveGateway, event, ids_of

VARYING = {"date", "ratelimit", "x-request-id"}


@pytest.fixture
def http(live_gateway: LiveGateway, rp: str) -> Iterator[httpx.Client]:
    """A client whose token and RP the gateway knows, so that its publishes may go the short way."""
    with live_gateway.http() as made:
        assert publish(made, rp, "warm").status_code == 201
        yield made


def publish(http: httpx.Client, rp: str, event_id: str, *, query: str = "", **headers: str) -> httpx.Response:
    """A request with a query, even one that means nothing, goes the ordinary way."""
    content = json.dumps(event(event_id))
    return http.post(f"/api/v1/rps/{rp}/events{query}", content=content, headers={**STRUCTURED, **headers})


def stored(live_gateway: LiveGateway, rp: str) -> list[str]:
    return ids_of(live_gateway.admin.get(f"/api/v1/rps/{rp}/events").json()["events"])


def test_both_ways_answer_with_the_same_headers_and_members(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    short = publish(http, rp, "a")
    ordinary = publish(http, rp, "b", query="?x=1")
    assert short.status_code == ordinary.status_code == 201
    fixed = [[pair for pair in one.headers.items() if pair[0] not in VARYING] for one in (short, ordinary)]
    assert sorted(fixed[0]) == sorted(fixed[1])
    assert short.headers.keys() == ordinary.headers.keys()
    assert short.json().keys() == ordinary.json().keys()
    assert short.json()["offset"] + 1 == ordinary.json()["offset"]


def test_a_batch_and_a_wrapped_text_go_the_short_way_too(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    batch = http.post(f"/api/v1/rps/{rp}/events", content=json.dumps([event("a"), event("b")]), headers=BATCH)
    assert [result["offset"] for result in batch.json()["results"]] == [2, 3]
    text = http.post(f"/api/v1/rps/{rp}/events", content="hello", headers={"content-type": "text/plain"})
    assert text.status_code == 201
    assert text.json()["source"] == "/localhost/principals/tester"


def test_the_clients_request_id_is_answered_and_a_bad_one_is_not(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    assert publish(http, rp, "a", **{"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert publish(http, rp, "b", **{"x-request-id": "mine 1"}).headers["x-request-id"] != "mine 1"


def test_requests_in_one_packet_are_answered_in_their_order(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    one = b"".join(request(live_gateway, rp, f"p{number}") for number in range(5))
    with Raw(live_gateway) as raw:
        raw.socket.sendall(one)
        offsets = [json.loads(raw.answer().body)["offset"] for _ in range(5)]
    assert offsets == sorted(offsets)
    assert stored(live_gateway, rp)[1:] == [f"p{number}" for number in range(5)]


def test_a_body_in_pieces_goes_the_ordinary_way(live_gateway: LiveGateway, rp: str, http: httpx.Client) -> None:
    whole = request(live_gateway, rp, "pieces")
    with Raw(live_gateway) as raw:
        for at in range(0, len(whole), 40):
            raw.socket.sendall(whole[at : at + 40])
        assert raw.answer().status == 201


def test_a_client_that_asks_for_it_gets_its_connection_closed(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    with Raw(live_gateway) as raw:
        raw.socket.sendall(request(live_gateway, rp, "last", b"connection: close\r\n"))
        answer = raw.answer()
        assert answer.status == 201
        assert answer.headers["connection"] == "close"
        assert raw.socket.recv(1) == b""


def test_what_is_refused_is_refused_by_the_ordinary_way_and_counted_once(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    before = remaining(publish(http, rp, "before"))
    bad = http.post(f"/api/v1/rps/{rp}/events", content="{}", headers=STRUCTURED)
    assert bad.status_code == 400
    assert bad.headers["content-type"] == "application/problem+json"
    assert remaining(publish(http, rp, "after")) <= before, "a refused event takes nothing of the events' rate twice"


def test_a_log_that_does_not_answer_is_a_problem_document(
    live_gateway: LiveGateway, rp: str, http: httpx.Client
) -> None:
    live_gateway.kill_redis()
    try:
        answer = publish(http, rp, "lost")
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x-request-id"]
        assert int(answer.headers["retry-after"]) >= 1
    finally:
        live_gateway.start_redis()
    wait_for(lambda: publish(http, rp, "again").status_code == 201, about="publishing again after Redis came back")


def remaining(answer: httpx.Response) -> int:
    """What is left of the rate of events, as the answer tells."""
    return next(
        int(part.split("r=")[1].split(";")[0])
        for part in answer.headers["ratelimit"].split(", ")
        if part.startswith('"publish-events"')
    )


def request(live_gateway: LiveGateway, rp: str, event_id: str, more: bytes = b"") -> bytes:
    body = json.dumps(event(event_id)).encode()
    head = (
        f"POST /api/v1/rps/{rp}/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {live_gateway.token()}\r\n"
        f"content-type: {STRUCTURED['content-type']}\r\ncontent-length: {len(body)}\r\n"
    )
    return head.encode() + more + b"\r\n" + body
