"""Our calls of other domains against servers that lie: nothing is believed that the peer did not sign as an answer to it."""

from __future__ import annotations

import dataclasses
import json
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from eventing.access.models import DomainKey
from eventing.access.services.keys import ensure_domain_key
from eventing.conf import config
from eventing.core.signing import Signed
from eventing.peering.rules.domain_documents import read
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.services.domain_documents import document_pin
from eventing.peering.wire import client, signatures
from eventing.peering.wire.client import PeerError, call
from tests.peering.played_domain import Server, document, new_key, on_the_wire

EXCHANGE = "/federation/v1/exchange"
US, THEM, SUSPENDED, STRANGER = "localhost", "peer.example", "suspended.example", "stranger.example"
BUSY, ROTATING = "busy.example", "rotating.example"
KEY, SUSPENDED_KEY, STRANGER_KEY, BUSY_KEY = new_key(), new_key(), new_key(), new_key()
OLD_KEY, NEXT_KEY = new_key(), new_key()


def signed(
    request: signatures.SignedRequest,
    body: bytes = b"yes",
    *,
    status: int = 200,
    retry_after_s: int | None = None,
    **more: Any,
) -> bytes:
    """The signed answer to `request`, as it goes over the wire."""
    given: dict[str, Any] = {"key": KEY, "origin": THEM, "nonce": secrets.token_urlsafe(18), "now": time.time(), **more}
    answer = signatures.answer_signed(
        request, status, body, content_type=signatures.CONTENT_TYPE, retry_after_s=retry_after_s, **given
    )
    return on_the_wire(status, answer.headers, body)


@pytest.fixture
def peer(db: None, shared_stores: None) -> Iterator[Callable[..., Server]]:
    """Starts a server of the domain that this test plays, whose document is trusted here."""
    ensure_domain_key()
    made: list[Server] = []

    def start(behave: Callable[[socket.socket, signatures.SignedRequest, bytes], None]) -> Server:
        made.append(Server(behave))
        document_pin(document(THEM, KEY, url=made[-1].url), fingerprint=KEY["kid"])
        return made[-1]

    yield start
    for one in made:
        one.close()


def answering(make_answer: Callable[[signatures.SignedRequest, bytes], bytes]) -> Callable[..., None]:
    return lambda connection, request, body: connection.sendall(make_answer(request, body))


def failed(server: Server, timeout_s: float = 5.0) -> PeerError:
    with pytest.raises(PeerError) as raised:
        call(server.url, THEM, EXCHANGE, b"body", timeout_s)
    return raised.value


def test_a_call_brings_back_the_peer_s_answer_over_one_connection(peer: Callable[..., Server]) -> None:
    seen: list[tuple[str, str, bytes]] = []

    def answer(request: signatures.SignedRequest, body: bytes) -> bytes:
        seen.append((request.headers["herald-from"], request.headers["herald-to"], body))
        return signed(request, b"answer to " + body)

    server = peer(answering(answer))
    assert [call(server.url, THEM, EXCHANGE, b"%d" % number, 5.0) for number in range(3)] == [
        b"answer to 0",
        b"answer to 1",
        b"answer to 2",
    ]
    assert seen[0] == (config().domain, THEM, b"0")
    assert server.connections == 1


def test_a_domain_whose_name_is_beyond_ascii_is_called_by_its_name_in_the_dns(
    peer: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts: list[str] = []

    def answer(request: signatures.SignedRequest, body: bytes) -> bytes:
        hosts.append(request.headers["host"])
        return signed(request)

    port = peer(answering(answer)).url.rpartition(":")[2]
    asked: list[str] = []

    def getaddrinfo(name: str, *_: Any, **__: Any) -> Any:
        asked.append(name)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", int(port)))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(client, "is_address", lambda _: True)  # http, though not to a loopback name
    for name in ("xn--bcher-kva.example", "xn--a.example"):  # the second one is none that could be shown
        assert call(f"http://{name}:{port}", THEM, EXCHANGE, b"body", 5.0) == b"yes"
        assert (asked[-1], hosts[-1]) == (name, f"{name}:{port}")


def test_calls_of_several_threads_do_not_meet(peer: Callable[..., Server], transactional_db: None) -> None:
    ensure_domain_key()
    server = peer(answering(lambda request, body: signed(request, body)))

    def one(number: int) -> bytes:
        try:
            return call(server.url, THEM, EXCHANGE, b"%d" % number, 10.0)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(one, range(20))) == [b"%d" % number for number in range(20)]


def test_an_answer_of_another_request_played_back_is_refused(peer: Callable[..., Server]) -> None:
    kept: list[bytes] = []

    def answer(request: signatures.SignedRequest, body: bytes) -> bytes:
        kept.append(signed(request))
        return kept[0]

    server = peer(answering(answer))
    assert call(server.url, THEM, EXCHANGE, b"body", 5.0) == b"yes"
    error = failed(server)
    assert (error.kind, error.code) == ("unreachable", "wrong")


def test_an_unsigned_answer_is_refused(peer: Callable[..., Server]) -> None:
    for status, kind in ((200, "unreachable"), (401, "unreachable"), (403, "unreachable"), (503, "busy")):
        server = peer(
            answering(lambda request, body, status=status: on_the_wire(status, {"retry-after": "999"}, b"yes"))  # type: ignore[misc]
        )
        error = failed(server)
        assert (error.kind, error.code, error.retry_after_s) == (kind, "unsigned", 60 if status == 503 else None)


def test_a_tampered_answer_is_refused(peer: Callable[..., Server]) -> None:
    server = peer(answering(lambda request, body: signed(request, b"yes").replace(b"\r\n\r\nyes", b"\r\n\r\nyea")))
    assert failed(server).code == "wrong"


def test_an_answer_of_another_domain_or_key_is_refused(peer: Callable[..., Server]) -> None:
    assert failed(peer(answering(lambda request, body: signed(request, origin=STRANGER)))).code == "wrong"
    other = {**STRANGER_KEY, "kid": KEY["kid"]}
    assert failed(peer(answering(lambda request, body: signed(request, key=other)))).code == "wrong"


def test_an_answer_with_a_new_key_is_believed_once_the_peer_publishes_it(
    peer: Callable[..., Server], transactional_db: None
) -> None:
    """In the same call: the document is fetched on another thread, and the answer looked at again."""
    ensure_domain_key()
    server = peer(answering(lambda request, body: signed(request, key=NEXT_KEY, origin=ROTATING)))
    document_pin(document(ROTATING, OLD_KEY, url=server.url), fingerprint=OLD_KEY["kid"])
    server.document = document(ROTATING, OLD_KEY, NEXT_KEY, url=server.url, serial=2)
    assert call(server.url, ROTATING, EXCHANGE, b"body", 5.0) == b"yes"
    assert NEXT_KEY["kid"] in domain_keys(ROTATING)


def test_a_redirect_is_refused(peer: Callable[..., Server]) -> None:
    target = peer(answering(lambda request, body: signed(request)))
    headers = {"location": f"{target.url}{EXCHANGE}"}
    error = failed(peer(answering(lambda request, body: on_the_wire(307, headers, b""))))
    assert (error.kind, error.code, target.connections) == ("unreachable", "redirect", 0)


def test_a_huge_answer_is_refused_before_it_is_all_here(peer: Callable[..., Server]) -> None:
    sent: list[int] = []

    def behave(connection: socket.socket, request: signatures.SignedRequest, body: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
        while True:
            connection.sendall(bytes(65536))
            sent.append(65536)

    assert failed(peer(behave)).code == "too-large"
    assert sum(sent) < 4 * client.ANSWER_BYTES_MAX


@pytest.mark.parametrize("where", ["head", "body"])
def test_a_slow_answer_takes_no_more_than_the_time_it_was_given(peer: Callable[..., Server], where: str) -> None:
    """A byte now and then keeps every bound between two bytes; the bound on the whole time ends it."""

    def behave(connection: socket.socket, request: signatures.SignedRequest, body: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + (b"" if where == "head" else b"content-length: 1000\r\n\r\n"))
        while True:
            connection.sendall(b"x")
            time.sleep(0.05)  # a drip

    began = time.monotonic()
    error = failed(peer(behave), timeout_s=0.5)
    assert error.kind == "unreachable"
    assert "within 0.5 s" in error.detail
    assert time.monotonic() - began < 15.0, "the bytes come for ever"


def test_a_peer_that_closes_every_connection_at_once_is_unreachable(peer: Callable[..., Server]) -> None:
    server = peer(lambda connection, *_: connection.close())
    listening = socket.create_server(("127.0.0.1", 0))

    def hang_up() -> None:
        for _ in range(10):
            listening.accept()[0].close()

    with ThreadPoolExecutor(1) as thread:
        hanging_up = thread.submit(hang_up)
        for url in (server.url, *[f"http://127.0.0.1:{listening.getsockname()[1]}"] * 10):
            with pytest.raises(PeerError) as raised:
                call(url, THEM, EXCHANGE, b"body", 5.0)
            assert (raised.value.kind, raised.value.code) == ("unreachable", client.NO_ANSWER)
        hanging_up.result()
    listening.close()


def test_a_peer_that_is_not_there_is_unreachable(peer: Callable[..., Server]) -> None:
    server = peer(answering(lambda request, body: b""))
    server.url = "http://127.0.0.1:9"
    assert failed(server).kind == "unreachable"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((400, "invalid"), (401, "invalid"), (413, "invalid")),
        *((403, "refused"), (404, "refused"), (409, "refused")),
        *((429, "busy"), (503, "busy"), (500, "busy")),
    ],
)
def test_a_signed_refusal_says_what_to_do_about_it(peer: Callable[..., Server], status: int, kind: str) -> None:
    problem = json.dumps({"type": "urn:herald:problem:its-code", "detail": "Because\nso."}).encode()
    error = failed(peer(answering(lambda request, body: signed(request, problem, status=status, retry_after_s=99_999))))
    assert (error.kind, error.code, error.status) == (kind, "its-code", status)
    assert error.retry_after_s == client.RETRY_AFTER_S_MAX
    assert error.detail.endswith("Becauseso."), "what the other side wrote is one printable line"


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [(401, "unknown-key", "busy"), (401, "clock", "busy"), (409, "replay", "busy"), (401, "wrong", "invalid")],
)
def test_a_refusal_whose_reason_passes_is_no_reason_to_stop(
    peer: Callable[..., Server], status: int, reason: str, kind: str
) -> None:
    problem = json.dumps({"type": "urn:herald:problem:x", "detail": "So.", "reason": reason}).encode()
    assert failed(peer(answering(lambda request, body: signed(request, problem, status=status)))).kind == kind


def test_a_problem_document_that_is_none_does_no_harm(peer: Callable[..., Server]) -> None:
    for junk in (b"", b"[]", b"\xff", b"[" * 100_000, json.dumps({"type": 1, "detail": {}}).encode()):
        error = failed(peer(answering(lambda request, body, junk=junk: signed(request, junk, status=403))))  # type: ignore[misc]
        assert (error.kind, error.retry_after_s) == ("refused", None)


@pytest.mark.parametrize(
    "url", ["https://999.1.1.1", "https://[1:2]", "https://[::1", "https://b.test:99999", "ftp://b"]
)
def test_an_address_that_is_none_is_unreachable(db: None, url: str) -> None:
    ensure_domain_key()
    with pytest.raises(PeerError) as raised:
        call(url, THEM, EXCHANGE, b"body", 1.0)
    assert raised.value.kind == "unreachable"


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has every name resolve to an address."""

    def resolve(address: str) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(family, 1, 6, "", (address, 443))])

    return resolve


@pytest.mark.parametrize(
    ("address", "private"),
    [("10.0.0.1", False), ("169.254.169.254", True), ("::ffff:10.0.0.1", False), ("0.0.0.0", True)],
)
def test_a_peer_at_a_private_address_is_not_called(
    resolved: Callable[[str], None], address: str, private: bool
) -> None:
    resolved(address)
    with (
        override_settings(HERALD=dataclasses.replace(config(), allow_private_peers=private)),
        pytest.raises(PeerError, match="HERALD_ALLOW_PRIVATE_PEERS"),
    ):
        client._checked(client._target("https://b.example/"))


def test_a_peer_at_a_private_address_is_called_where_that_is_allowed(resolved: Callable[[str], None]) -> None:
    resolved("10.0.0.1")
    with override_settings(HERALD=dataclasses.replace(config(), allow_private_peers=True)):
        assert client._checked(client._target("https://b.example/")) == ["10.0.0.1"]
        with pytest.raises(PeerError, match="http is spoken"):
            client._checked(client._target("http://b.example/"))


def test_a_domain_of_the_network_does_not_call_this_machine_s_own_addresses() -> None:
    with (
        override_settings(HERALD=dataclasses.replace(config(), public_url="https://a.example")),
        pytest.raises(PeerError, match="not public"),
    ):
        client._checked(client._target("http://127.0.0.1:8000/"))


# Both together


def document_pin_as(domain: str, statement: Signed) -> None:
    with override_settings(HERALD=dataclasses.replace(config(), domain=domain)):
        document_pin(statement, fingerprint=read(statement).fingerprint)


def use_key(key: dict[str, Any]) -> None:
    """Have this process's domain sign with `key`."""
    jwk = {name: key[name] for name in ("kty", "crv", "x", "d")}
    began = datetime.fromtimestamp(key["nbf"], UTC)
    DomainKey.objects.create(kid=key["kid"], private_jwk=jwk, public_jwk=jwk, not_before=began, created_at=began)
