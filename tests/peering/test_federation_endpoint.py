"""Requests of other domains as they really come: our gateways against a domain that this test plays.

What the signatures themselves keep out is in test_signatures.py; what our own calls do not fall for, in test_federation_client.py.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import secrets
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.test import override_settings

from demo.harness.servers import ROOT, eventually, wait_for
from eventing.access.models import DomainKey
from eventing.conf import config
from eventing.core.ed25519 import public_key_text
from eventing.core.errors import Unavailable
from eventing.core.ids import canonical_json
from eventing.core.signing import DOMAIN, Signed, sign
from eventing.gateway.endpoints import federation
from eventing.peering.rules.domain_documents import from_published, read, thumbprint
from eventing.peering.services.domain_documents import document_pin
from eventing.peering.wire import endpoints, signatures
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError, call
from tests.core.ed25519_vectors import NOT_CANONICAL, SMALL_ORDER
from tests.gateway.server import PLAIN, LiveGateway, Prepared, environment
from tests.peering.played_domain import Server, document, new_key

EXCHANGE = "/federation/v1/exchange"
US, THEM, SUSPENDED, STRANGER = "localhost", "peer.example", "suspended.example", "stranger.example"
BUSY, ROTATING = "busy.example", "rotating.example"
_PEERS = """
import base64, json, sys, django
django.setup()
from datetime import timedelta
from django.utils import timezone
from eventing.peering.rules.domain_documents import read
from eventing.core.signing import Signed
from eventing.peering.models import Peer
from eventing.access.models import DomainKey
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.services.domain_documents import document_pin
now = timezone.now()
for state, requests_per_s, payload, kid, signature in json.load(sys.stdin):
    document = read(Signed(base64.b64decode(payload), kid, base64.b64decode(signature)))
    document_pin(Signed(base64.b64decode(payload), kid, base64.b64decode(signature)), fingerprint=document.fingerprint)
    Peer.objects.create(
        name=document.domain, url=document.url, state=state, fingerprint=document.fingerprint,
        requests_per_s=requests_per_s, created_at=now,
        changed_at=now, granted_s=3600, warn_at=now + timedelta(hours=1), expires_at=now + timedelta(hours=1))
"""


KEY, SUSPENDED_KEY, STRANGER_KEY, BUSY_KEY = new_key(), new_key(), new_key(), new_key()
OLD_KEY, NEXT_KEY = new_key(), new_key()


@pytest.fixture(scope="module")
def rotating() -> Iterator[Server]:
    """The server of a peer that has made a new key and told nobody; it publishes it."""
    server = Server(lambda connection, request, body: None)
    server.document = document(ROTATING, OLD_KEY, NEXT_KEY, url=server.url, serial=2)
    yield server
    server.close()


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared, rotating: Server) -> Iterator[LiveGateway]:
    """Two gateway processes of one domain, which has some peers, one of them suspended."""
    peers = [
        ("active", 1000, document(THEM, KEY)),
        ("active", 5, document(BUSY, BUSY_KEY)),
        ("active", 1000, document(ROTATING, OLD_KEY, url=rotating.url)),
        ("suspended", 1000, document(SUSPENDED, SUSPENDED_KEY)),
    ]
    given = [(state, rate, _base64(one.payload), one.kid, _base64(one.signature)) for state, rate, one in peers]
    live_gateway = LiveGateway(tmp_path_factory.mktemp("edge") / "var", prepared, gateways=2, request_timeout_s=3)
    made = subprocess.run(
        [sys.executable, "-c", _PEERS],
        env=environment(live_gateway.data_dir),
        cwd=ROOT,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    with live_gateway as running:
        yield running
        assert "Traceback" not in running.log


@pytest.fixture(scope="module")
def our_document(gateways: LiveGateway) -> Signed:
    """What the gateways' domain publishes of itself."""
    published = httpx.get(f"{gateways.url()}/.well-known/herald", **PLAIN).json()
    assert published["versions"] == ["herald.v1"], "what was published before the documents is still there"
    return from_published(published["document"])


def a_request(
    live_gateway: LiveGateway, path: str = endpoints.PROBE, body: bytes = b"", **changed: Any
) -> signatures.SignedRequest:
    """A request of the peer, signed for the first gateway."""
    given: dict[str, Any] = {"origin": THEM, "destination": US, "key": KEY, "nonce": secrets.token_urlsafe(18)}
    return signatures.request_signed(f"{live_gateway.url()}{path}", body, **{**given, "now": time.time(), **changed})


def send(
    live_gateway: LiveGateway,
    request: signatures.SignedRequest,
    body: bytes = b"",
    *,
    path: str = endpoints.PROBE,
    gateway: int = 0,
) -> httpx.Response:
    """Bring a request to a gateway, whichever it was signed for: a proxy passes on the Host field too."""
    headers = {**request.headers, "host": f"127.0.0.1:{live_gateway.port()}"}
    return httpx.post(f"{live_gateway.url(gateway)}{path}", content=body, headers=headers, **PLAIN)


def proven(response: httpx.Response, request: signatures.SignedRequest, ours: Signed) -> httpx.Response:
    """The response, whose signature is that of the gateways' domain and binds it to `request`."""
    fields = [(name.decode(), value.decode()) for name, value in response.headers.raw]
    answer = signatures.SignedAnswer(response.status_code, signatures.fields_read(fields), request)
    signatures.answer_verified(answer, response.content, origin=US, jwks=read(ours).jwks, now=time.time())
    return response


def refused(response: httpx.Response, request: signatures.SignedRequest, ours: Signed) -> tuple[int, str, str]:
    """Status, code and reason of a refusal, which is a signed problem document."""
    assert response.headers["content-type"] == "application/problem+json"
    problem = proven(response, request, ours).json()
    return response.status_code, problem["type"].removeprefix("urn:herald:problem:"), problem.get("reason", "")


# What our gateways take, and what they refuse


def test_a_peer_s_request_is_answered_and_the_answer_is_signed(gateways: LiveGateway, our_document: Signed) -> None:
    request = a_request(gateways)
    response = proven(send(gateways, request), request, our_document)
    assert (response.status_code, response.content) == (200, wire.encode([wire.VERSION]))


def test_a_tampered_body_is_refused(gateways: LiveGateway, our_document: Signed) -> None:
    request = a_request(gateways, body=b"what was said")
    assert refused(send(gateways, request, b"what was sent"), request, our_document) == (
        401,
        "unauthenticated",
        "digest",
    )


def test_a_dropped_digest_is_refused(gateways: LiveGateway, our_document: Signed) -> None:
    request = a_request(gateways)
    del request.headers["content-digest"]
    assert refused(send(gateways, request), request, our_document)[:2] == (401, "unauthenticated")


@pytest.mark.parametrize(
    "changed",
    [
        {"destination": "other.example"},
        {"later_s": -300},
        {"later_s": 300},
        {"origin": STRANGER},
        {"origin": US},
        {"origin": "no domain"},
        {"key": {**STRANGER_KEY, "kid": KEY["kid"]}},
    ],
    ids=["other destination", "stale", "future", "unknown domain", "our own name", "no name", "another key"],
)
def test_a_request_that_is_not_a_peer_s_to_us_now_is_refused(
    gateways: LiveGateway, our_document: Signed, changed: dict[str, Any]
) -> None:
    stated = dict(changed)
    if "later_s" in stated:
        stated["now"] = time.time() + stated.pop("later_s")
    request = a_request(gateways, **stated)
    assert refused(send(gateways, request), request, our_document)[:2] == (401, "unauthenticated")


def test_a_request_signed_for_another_path_is_refused(gateways: LiveGateway, our_document: Signed) -> None:
    request = a_request(gateways, path=EXCHANGE)
    assert refused(send(gateways, request), request, our_document) == (401, "unauthenticated", "wrong")


def test_a_request_signed_for_another_authority_is_refused(gateways: LiveGateway, our_document: Signed) -> None:
    request = a_request(gateways)
    response = httpx.post(f"{gateways.url(1)}{endpoints.PROBE}", headers=request.headers, **PLAIN)
    assert refused(response, request, our_document) == (401, "unauthenticated", "wrong")


def test_a_replayed_request_is_refused_by_the_gateway_that_took_it_and_by_the_other(
    gateways: LiveGateway, our_document: Signed
) -> None:
    request = a_request(gateways)
    assert send(gateways, request).status_code == 200
    for gateway in (0, 1):
        again = send(gateways, request, gateway=gateway)
        assert refused(again, request, our_document) == (409, "conflict", "replay")


def test_a_nonce_is_remembered_for_as_long_as_its_request_is_good(gateways: LiveGateway) -> None:
    request = a_request(gateways, nonce="remembered-for-long-enough")
    assert send(gateways, request).status_code == 200
    redis = gateways.redis
    left_ms = redis.pttl(f"herald:nonce:{THEM}:remembered-for-long-enough")
    redis.close()
    assert 2 * signatures.WINDOW_S * 1000 < left_ms <= 3 * signatures.WINDOW_S * 1000


def test_a_stripped_signature_is_refused_and_the_refusal_is_not_signed(gateways: LiveGateway) -> None:
    request = a_request(gateways)
    del request.headers["signature"]
    response = send(gateways, request)
    assert (response.status_code, response.json()["reason"]) == (401, "unsigned")
    assert "signature" not in response.headers, "there is nothing that it could be bound to"


def test_two_signatures_are_refused(gateways: LiveGateway, our_document: Signed) -> None:
    request, other = a_request(gateways), a_request(gateways)
    for name in ("signature", "signature-input"):
        request.headers[name] += ", " + other.headers[name].replace("herald=", "second=", 1)
    assert refused(send(gateways, request), request, our_document)[:2] == (401, "unauthenticated")


@pytest.mark.parametrize("fields", [{"signature": "x" * 300}, {f"x-{number}": "" for number in range(80)}])
def test_oversized_headers_are_refused(gateways: LiveGateway, fields: dict[str, str]) -> None:
    request = a_request(gateways)
    request.headers.update(fields)
    response = send(gateways, request)
    assert (response.status_code, response.json()["type"]) == (400, "urn:herald:problem:invalid-request")


def test_a_request_with_a_host_that_is_none_is_refused_and_the_refusal_is_not_signed(gateways: LiveGateway) -> None:
    response = httpx.post(
        f"{gateways.url()}{endpoints.PROBE}", headers={**a_request(gateways).headers, "host": "not a host"}, **PLAIN
    )
    assert response.status_code == 400
    assert response.json()["type"].endswith("invalid-request")
    assert "signature" not in response.headers


def test_a_peer_that_sends_more_than_its_rate_is_told_to_wait(gateways: LiveGateway, our_document: Signed) -> None:
    """It has 5 per second, and two seconds' worth at once."""
    answers = []
    with httpx.Client(headers={"host": f"127.0.0.1:{gateways.port()}"}, **PLAIN) as connection:
        for _ in range(200):
            request = a_request(gateways, origin=BUSY, key=BUSY_KEY)
            answers.append((connection.post(f"{gateways.url()}{endpoints.PROBE}", headers=request.headers), request))
            if answers[-1][0].status_code != 200:
                break
    last, request = answers[-1]
    assert refused(last, request, our_document)[:2] == (429, "rate-limited")
    assert int(last.headers["retry-after"]) >= 1
    assert 10 < len(answers) < 200
    wait_for(lambda: ("flooding", BUSY, "") in counted(gateways), about="the flood is counted")


def test_what_peers_do_is_counted_under_them_and_what_others_do_in_their_name_is_not(
    gateways: LiveGateway, our_document: Signed
) -> None:
    """After the tests above; what is held in memory is written within a second."""
    wanted = {
        ("replayed", THEM, ""),
        ("oversize", THEM, ""),
        ("tampered", THEM, ""),
        ("forged", "", THEM),
        ("replayed", "", THEM),
    }
    for name in (SUSPENDED, STRANGER):  # a stranger's own keys in these names, brought along in a hello
        hello = wire.encode([document(name, STRANGER_KEY), 1, "proposes", 0])
        framing = a_request(gateways, path=endpoints.HELLO, body=hello, origin=name, key=STRANGER_KEY)
        for body in (hello[:-1] + b"\x07", hello):
            send(gateways, framing, body, path=endpoints.HELLO)
    for path, body, sent in ((endpoints.PROBE, b"a", b"b"), (EXCHANGE, b"", b"")):
        send(gateways, a_request(gateways, path=path, body=body), sent)
    send(gateways, a_request(gateways, destination="other.example"))
    again = a_request(gateways)
    long = bytes(wire.BODY_BYTES_MAX + 1)
    for request, body in ((again, b""), (again, b""), (a_request(gateways, body=long), long)):
        send(gateways, request, body)
    wait_for(lambda: wanted <= counted(gateways), about="the misbehaviour is counted")
    assert not any(STRANGER in row for row in counted(gateways)), "anybody can invent names"
    assert not any(SUSPENDED in row for row in counted(gateways)), "and make keys in another domain's"


def test_a_suspended_peer_is_refused(gateways: LiveGateway, our_document: Signed) -> None:
    request = a_request(gateways, origin=SUSPENDED, key=SUSPENDED_KEY)
    assert refused(send(gateways, request), request, our_document)[:2] == (403, "forbidden")


def test_a_key_that_a_peer_never_published_is_refused_after_its_document_was_asked_for(
    gateways: LiveGateway, our_document: Signed
) -> None:
    """The first one is told to come again, while the peer's document is fetched; nothing is there, so then it is refused."""
    answers = []
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        request = a_request(gateways, key=STRANGER_KEY)
        answers.append(refused(send(gateways, request), request, our_document))
        if answers[-1][0] == 401:
            break
    assert answers[0] == (503, "unavailable", "unknown-key")
    assert answers[-1] == (401, "unauthenticated", "unknown-key")


def test_a_peer_s_new_key_is_learned_from_what_it_publishes(gateways: LiveGateway, our_document: Signed) -> None:
    """The first request with it is told to come again; the next ones are good, and so are those with the key before it."""
    request = a_request(gateways, origin=ROTATING, key=NEXT_KEY)
    assert refused(send(gateways, request), request, our_document) == (503, "unavailable", "unknown-key")
    wait_for(lambda: send(gateways, a_request(gateways, origin=ROTATING, key=NEXT_KEY)).status_code == 200)
    assert send(gateways, a_request(gateways, origin=ROTATING, key=OLD_KEY)).status_code == 200


def test_other_paths_methods_types_and_queries_are_refused(gateways: LiveGateway, our_document: Signed) -> None:
    request = a_request(gateways, path="/federation/v1/nothing")
    assert refused(send(gateways, request, path="/federation/v1/nothing"), request, our_document)[:2] == (
        404,
        "not-found",
    )
    request = a_request(gateways)
    request.headers["content-type"] = "application/json"
    assert refused(send(gateways, request), request, our_document)[:2] == (400, "invalid-request")
    assert httpx.get(f"{gateways.url()}{endpoints.PROBE}", **PLAIN).status_code == 405
    assert send(gateways, a_request(gateways), path=f"{endpoints.PROBE}?more=1").status_code == 400


def test_a_body_that_is_too_long_is_refused(gateways: LiveGateway, our_document: Signed) -> None:
    body = bytes(wire.BODY_BYTES_MAX + 1)
    request = a_request(gateways, body=body)
    assert refused(send(gateways, request, body), request, our_document)[:2] == (413, "too-large")


def test_what_a_handler_does_not_understand_is_a_signed_refusal(gateways: LiveGateway, our_document: Signed) -> None:
    request = a_request(gateways, path=EXCHANGE, body=b"no message")
    response = send(gateways, request, b"no message", path=EXCHANGE)
    assert refused(response, request, our_document)[:2] == (400, "invalid-request")


MALFORMED = {
    "text that is not UTF-8": b"\x94\x93\xc4\x01x\xa2\xff\xfe\xc4\x00\x01\xa0\x00",
    "an RP that is not UTF-8": b"\x92\x01\x91\x92\xa2\xff\xfe\x80",
    "a statement's key that is not UTF-8": b"\x94\x01\x93\xc4\x01x\xa2\xff\xfe\xc4\x00\x90\x91\xa1x",
    "a record's key that is not UTF-8": b"\x93\x01\x91\x93\xc4\x01x\xa2\xff\xfe\xc4\x00\x90",
    "text alone that is not UTF-8": b"\xa1\xff",
    "texts that are not UTF-8": b"\x94" + b"\xa2\xff\xfe" * 4,
    "a surrogate in UTF-8": b"\x94\x93\xc4\x01x\xa3\xed\xa0\x80\xc4\x00\x01\xa0\x00",
    "deep nesting": b"\x91" * 60_000,
    "deep nesting behind the version": b"\x98\x01" + b"\x91" * 60_000,
    "NaN": b"\x98" + b"\xcb\x7f\xf8" + bytes(6) + b"\x01" * 7,
    "a huge integer": b"\x98" + b"\xcf" + b"\xff" * 8 + b"\x01" * 7,
    "more items than there are": b"\xdd\xff\xff\xff\xff",
    "JSON": b'{"version": 1}',
}


@pytest.mark.parametrize("path", sorted(set(endpoints.HANDLERS) - {endpoints.PROBE}))
@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_body_is_a_signed_refusal_whoever_sends_it(
    gateways: LiveGateway, our_document: Signed, path: str, body: bytes
) -> None:
    """A refusal of the request, never a failure of ours: 503 and a traceback for whatever a stranger likes to send."""
    request = a_request(gateways, path=path, body=body)
    assert refused(send(gateways, request, body, path=path), request, our_document)[:2] == (400, "invalid-request")
    if path == endpoints.HELLO:
        request = a_request(gateways, path=path, body=body, origin=STRANGER, key=STRANGER_KEY)
        assert refused(send(gateways, request, body, path=path), request, our_document)[:2] == (400, "invalid-request")


def test_a_stranger_s_hello_is_verified_with_the_document_in_it(gateways: LiveGateway, our_document: Signed) -> None:
    """Not with anybody else's: a document in another domain's name, or one that the key is not in, helps nothing."""
    for in_it, code in (
        (document(THEM, KEY), "wrong"),
        (document(STRANGER, new_key()), "unknown-key"),
    ):
        body = wire.encode([in_it, 1, "", 0])
        request = a_request(gateways, path=endpoints.HELLO, body=body, origin=STRANGER, key=STRANGER_KEY)
        response = send(gateways, request, body, path=endpoints.HELLO)
        assert refused(response, request, our_document) == (401, "unauthenticated", code)
    request = a_request(gateways, path=endpoints.HELLO, body=b"junk", origin=STRANGER, key=STRANGER_KEY)
    response = send(gateways, request, b"junk", path=endpoints.HELLO)
    assert refused(response, request, our_document)[:2] == (400, "invalid-request")


@pytest.mark.parametrize("text", [SMALL_ORDER[0], SMALL_ORDER[4], NOT_CANONICAL[2]])
def test_a_hello_with_a_key_that_others_can_sign_for_is_refused_with_the_reason(
    gateways: LiveGateway, our_document: Signed, text: str
) -> None:
    x = public_key_text(bytes.fromhex(text))
    said = json.loads(document(STRANGER, STRANGER_KEY).payload)
    said["keys"].append({"kid": thumbprint(x), "x": x, "nbf": 0})
    signed = sign(DOMAIN, canonical_json(said), STRANGER_KEY)
    body = wire.encode([signed, 1, "approves", 0])
    request = a_request(gateways, path=endpoints.HELLO, body=body, origin=STRANGER, key=STRANGER_KEY)
    response = send(gateways, request, body, path=endpoints.HELLO)
    assert refused(response, request, our_document)[:2] == (400, "invalid-request")
    assert "not usable" in response.json()["detail"]


def test_strangers_with_slow_bodies_take_no_place_from_peers(gateways: LiveGateway, our_document: Signed) -> None:
    slow = [_half_a_hello(gateways) for _ in range(5)]
    try:
        turned_away = slow[-1].recv(4096)
        assert b" 503 " in turned_away
        assert b"\r\nretry-after:" in turned_away.lower()
        request = a_request(gateways)
        assert proven(send(gateways, request), request, our_document).status_code == 200
    finally:
        for one in slow:
            one.close()


@pytest.mark.parametrize("busy", ["b.test", ""], ids=["a peer", "strangers"])
async def test_who_keeps_its_threads_busy_leaves_threads_to_the_others(
    monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    let_go, begun = threading.Event(), []

    def serve(admitted: endpoints.Admitted, body: bytes) -> bytes:
        if admitted.sender is None or admitted.sender.domain == busy:
            begun.append(admitted)
            assert let_go.wait(60)
        return body

    async def is_begun() -> bool:
        return bool(begun)

    async def body() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x"}

    async def sent(domain: str) -> bytes:
        request = signatures.SignedRequest("POST", "https://us.test", {})
        sender = endpoints.Sender(domain, "k", None) if domain else None
        gateway: Any = SimpleNamespace(config=config())
        admitted = endpoints.Admitted(request, EXCHANGE, sender)
        return (await federation._admitted(gateway, {"headers": []}, body, admitted)).body

    monkeypatch.setattr(endpoints, "serve", serve)
    monkeypatch.setattr(endpoints, "answered", lambda request, body: endpoints.EndpointAnswer(200, {}, body))
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(sent(busy)) for _ in range(4)]
        try:
            await eventually(is_begun)
            with pytest.raises(Unavailable):
                await sent(busy)
            for _ in range(4):
                assert await asyncio.wait_for(sent("c.test"), 20) == b"x"
        finally:
            let_go.set()
    assert [one.result() for one in waiting] == [b"x"] * 4, "who waited is answered"


def test_redis_away_refuses_all_rather_than_to_take_a_replay(gateways: LiveGateway, our_document: Signed) -> None:
    request, later = a_request(gateways), a_request(gateways)
    gateways.kill_redis()
    try:
        response = send(gateways, request)
        assert refused(response, request, our_document)[:2] == (503, "unavailable")
    finally:
        gateways.start_redis()
    assert send(gateways, later).status_code == 200


def counted(live_gateway: LiveGateway) -> set[tuple[str, str, str]]:
    """Kind, carrier and origin of the misbehaviour that the gateways have counted."""
    database = sqlite3.connect(live_gateway.data_dir / "herald.sqlite3", timeout=60)
    try:
        return set(database.execute("SELECT kind, carrier, origin FROM eventing_misbehaviour"))
    finally:
        database.close()


def _half_a_hello(live_gateway: LiveGateway) -> socket.socket:
    """A connection with a stranger's hello whose body does not come."""
    request = a_request(live_gateway, path=endpoints.HELLO, body=b"late", origin=STRANGER, key=STRANGER_KEY)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    made = socket.create_connection(("127.0.0.1", live_gateway.port()), timeout=10)
    made.sendall(f"POST {endpoints.HELLO} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n{head}\r\n".encode())
    return made


# Our client against servers that this test plays


def test_our_client_and_our_gateways_understand_each_other(
    db: None, gateways: LiveGateway, our_document: Signed
) -> None:
    """A handler's answer, and a refusal."""
    document_pin_as(THEM, our_document)
    with override_settings(HERALD=dataclasses.replace(config(), domain=THEM)):
        use_key(KEY)
        assert call(gateways.url(), US, endpoints.PROBE, b"", 10.0) == wire.encode([wire.VERSION])
        with pytest.raises(PeerError) as raised:
            call(gateways.url(), US, "/federation/v1/nothing", b"", 10.0)
        assert (raised.value.kind, raised.value.code) == ("refused", "not-found")


def document_pin_as(domain: str, statement: Signed) -> None:
    with override_settings(HERALD=dataclasses.replace(config(), domain=domain)):
        document_pin(statement, fingerprint=read(statement).fingerprint)


def use_key(key: dict[str, Any]) -> None:
    """Have this process's domain sign with `key`."""
    jwk = {name: key[name] for name in ("kty", "crv", "x", "d")}
    began = datetime.fromtimestamp(key["nbf"], UTC)
    DomainKey.objects.create(kid=key["kid"], private_jwk=jwk, public_jwk=jwk, not_before=began, created_at=began)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
