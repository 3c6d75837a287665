"""The HTTP client of push against real sockets: TLS, kept connections, proxies, names that resolve to something else."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventing.subscriptions.push.modes import PushRequest
from eventing.subscriptions.push.rules.addresses import EndpointUrl
from eventing.subscriptions.push.rules.client_identities import client_identity
from eventing.subscriptions.push.rules.verdicts import PushAnswer
from eventing.subscriptions.push.wire.client import PushClient, PushNetwork
from eventing.subscriptions.push.wire.tls import TlsContexts
from tests.subscriptions.push.certificates import certificate_made, demanding
from tests.subscriptions.push.receiver import Receiver

REQUEST = PushRequest("POST", (("Content-Type", "application/json"),), b"{}")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint."""
    with Receiver() as running:
        yield running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and its own certificate for localhost, in one PEM file."""
    made, key = certificate_made()
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_text(key + made)
    return path


def network(**stated: Any) -> PushNetwork:
    return PushNetwork(**{"private": True, "own_port": 1, "proxy": "", "tls": TlsContexts(), **stated})


def send(url: EndpointUrl, times: int = 1, **stated: Any) -> list[PushAnswer]:
    """Send requests one after the other by one client."""

    async def work() -> list[PushAnswer]:
        client = PushClient(network(**stated))
        try:
            return [await client.send(url, REQUEST) for _ in range(times)]
        finally:
            client.close()

    return asyncio.run(work())


def to(receiver: Receiver, path: str = "/ok", host: str = "127.0.0.1") -> EndpointUrl:
    return EndpointUrl("http", host, receiver.port, path)


def test_a_connection_is_kept_for_the_next_request(receiver: Receiver) -> None:
    assert [one.status for one in send(to(receiver), 5)] == [204] * 5
    assert receiver.connections == 1


def test_a_kept_connection_that_its_server_closed_is_replaced_without_a_failure(receiver: Receiver) -> None:
    receiver.answer["/close"] = b"HTTP/1.1 204 No Content\r\n\r\n"  # and closes, without saying so
    assert [one.status for one in send(to(receiver, "/close"), 3)] == [204] * 3


def test_informational_answers_are_no_verdict(receiver: Receiver) -> None:
    receiver.answer["/early"] = (
        b"HTTP/1.1 103 Early Hints\r\nRetry-After: 9\r\n\r\nHTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno"
    )
    (answer,) = send(to(receiver, "/early"))
    assert (answer.status, answer.header("retry-after"), answer.excerpt) == (429, "7", b"no")


def test_endless_informational_answers_are_malformed(receiver: Receiver) -> None:
    receiver.answer["/early"] = b"HTTP/1.1 100 Continue\r\n\r\n" * 50
    assert send(to(receiver, "/early"))[0].reason == "malformed-answer"


def test_of_a_huge_body_only_the_begin_is_read(receiver: Receiver) -> None:
    receiver.answer["/huge"] = "huge"
    (answer,) = send(to(receiver, "/huge"))
    assert answer.status == 200
    assert len(answer.excerpt) <= 4096


def test_nobody_listening_is_a_failure_with_its_reason() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert send(EndpointUrl("http", "127.0.0.1", port, "/"))[0].reason == "not-connected"


def test_a_server_without_tls_is_a_failure_with_its_reason(receiver: Receiver) -> None:
    assert send(EndpointUrl("https", "127.0.0.1", receiver.port, "/"))[0].reason == "tls-failed"


@pytest.mark.parametrize(("trusted", "outcome"), [(True, 204), (False, "tls-failed")])
def test_tls_is_verified_against_the_authorities(certificate: Path, trusted: bool, outcome: int | str) -> None:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate)
    trusting = TlsContexts(str(certificate) if trusted else "")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def work() -> PushAnswer:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=served)
        client = PushClient(network(tls=trusting))
        found = await client.send(EndpointUrl("https", "localhost", server.sockets[0].getsockname()[1], "/"), REQUEST)
        client.close()
        server.close()
        return found

    found = asyncio.run(work())
    assert (found.status or found.reason) == outcome


def test_a_client_certificate_is_presented_to_a_server_that_demands_it(certificate: Path) -> None:
    mine, others = (client_identity(*certificate_made()) for _ in range(2))

    async def work(url: EndpointUrl) -> list[str]:
        client = PushClient(network(tls=TlsContexts(str(certificate))))
        found = [await client.send(url, REQUEST, identity) for identity in (mine, None, others, mine)]
        client.close()
        return [one.reason for one in found]

    with Receiver(tls=demanding(certificate, mine.certificate)) as receiver:
        reasons = asyncio.run(work(EndpointUrl("https", "localhost", receiver.port, "/ok")))
        assert (reasons[0], reasons[3]) == ("http-204", "http-204")
        assert not [reason for reason in reasons[1:3] if reason.startswith("http")], "no connection is shared"
        assert len(receiver.received) == 2


@pytest.mark.parametrize("private", [True, False])
def test_a_name_is_checked_at_each_connection_on_the_address_that_is_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, private: bool
) -> None:
    """The name's answer changes between public and not: nothing that is not public is ever connected to."""
    answers = iter([["127.0.0.1", "169.254.169.254"], ["::ffff:10.0.0.1"], ["127.0.0.1"]])

    async def resolved(self: Any, host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in next(answers)]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolved)
    found = send(to(receiver, host="hooks.example.org"), 3, private=private)
    if private:
        assert [one.reason for one in found][::2] == ["address-refused", "http-204"]
    else:
        assert {one.reason for one in found} == {"address-refused"}
        assert receiver.connections == 0


def test_the_gateway_of_this_domain_is_no_endpoint(receiver: Receiver) -> None:
    assert send(to(receiver), own_port=receiver.port)[0].reason == "address-refused"
    assert receiver.connections == 0


def test_with_a_proxy_requests_go_through_its_tunnel(receiver: Receiver) -> None:
    asked: list[bytes] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        there, back = await asyncio.open_connection("127.0.0.1", receiver.port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pipe(reader, back), pipe(there, writer), return_exceptions=True)

    async def work() -> list[int]:
        server = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        client = PushClient(network(private=False, proxy=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
        url = EndpointUrl("http", "hooks.example.org", 80, "/ok")
        found = [(await client.send(url, REQUEST)).status for _ in range(2)]
        client.close()
        server.close()
        return found

    assert asyncio.run(work()) == [204, 204]
    assert [one.split(b"\r\n")[0] for one in asked] == [b"CONNECT hooks.example.org:80 HTTP/1.1"]
