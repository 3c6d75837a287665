"""Documents of foreign issuers are fetched within bounds, from public addresses only, over real sockets."""

from __future__ import annotations

import datetime
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from eventing.access.rules.jwks import BYTES_MAX
from eventing.access.verification import fetching
from eventing.access.verification.fetching import FetchFailed, fetch, is_public
from eventing.core.client_address import is_loopback
from eventing.peering.peer_documents import document_fetch
from tests.access.issuer_server import JWKS, IssuerServer

A_LABEL = "xn--bcher-kva.example"  # bücher.example


@pytest.fixture(scope="module")
def issuer() -> Iterator[IssuerServer]:
    with IssuerServer() as running:
        yield running


def fetched(url: str, **options: Any) -> fetching.Fetched:
    return fetch(url, **{"private": True, "fetch_s": 1.0, **options})


@pytest.mark.parametrize(
    ("cache_control", "max_age_s"),
    [
        ("max-age=600", 600),
        ("public, max-age=600, must-revalidate", 600),
        ("Max-Age = 600", 600),
        ("max-age=1", 60),
        ("max-age=999999999", 86_400),
        ("max-age=-5", 60),
        ("no-store, max-age=600", 60),
        ("s-maxage=600", 60),
        ("", 60),
        ("max-age=" + "9" * 5000, 86_400),
    ],
)
def test_an_answer_is_fresh_for_what_it_says_within_bounds(
    issuer: IssuerServer, cache_control: str, max_age_s: int
) -> None:
    issuer.answer("/any", b"{}", {"Cache-Control": cache_control})
    assert fetched(issuer.url + "/any") == fetching.Fetched(b"{}", max_age_s)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_not_followed(issuer: IssuerServer, status: int) -> None:
    issuer.answer("/moved", b"", {"Location": issuer.url + "/target"}, status=status)
    issuer.answer("/target", b'{"keys": []}')
    before = issuer.asked("/target")
    with pytest.raises(FetchFailed, match="redirect"):
        fetched(issuer.url + "/moved")
    assert issuer.asked("/target") == before


@pytest.mark.parametrize("status", [204, 404, 500, 206])
def test_any_other_status_is_refused(issuer: IssuerServer, status: int) -> None:
    issuer.answer("/status", b"{}", status=status)
    with pytest.raises(FetchFailed, match=f"status {status}"):
        fetched(issuer.url + "/status")


def test_a_huge_answer_is_cut_off_where_the_bound_is(issuer: IssuerServer) -> None:
    sent: list[None] = []

    def endless() -> Iterator[bytes]:
        while len(sent) < 10_000:
            sent.append(None)
            yield b" " * 16_384

    issuer.answer("/huge", endless)
    with pytest.raises(FetchFailed, match="longer"):
        fetched(issuer.url + "/huge", fetch_s=5.0)
    assert len(sent) < 3000, "it was not read to its end"
    issuer.answer("/full", b" " * BYTES_MAX)
    assert len(fetched(issuer.url + "/full").content) == BYTES_MAX


def test_a_compressed_answer_is_refused_before_it_is_inflated(issuer: IssuerServer) -> None:
    issuer.answer("/bomb", b"x", {"Content-Encoding": "gzip"})
    with pytest.raises(FetchFailed, match="encoding"):
        fetched(issuer.url + "/bomb")


def test_a_slow_drip_of_the_body_ends_with_the_time_of_the_whole(issuer: IssuerServer) -> None:
    def drip() -> Iterator[bytes]:
        for _ in range(100):
            yield b" "
            time.sleep(0.1)  # the drip

    issuer.answer("/drip", drip)
    began = time.monotonic()
    with pytest.raises(FetchFailed, match=r"within 0\.5 s"):
        fetched(issuer.url + "/drip", fetch_s=0.5)
    assert time.monotonic() - began < 9, "the whole takes 10 s"


@pytest.mark.parametrize("speaks", [b"HTTP/1.1 200 OK\r\n", b""], ids=["headers drip", "silence"])
def test_a_slow_drip_of_the_headers_ends_with_the_time_of_the_whole(speaks: bytes) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        over = threading.Event()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                try:
                    connection.sendall(speaks)
                    while speaks and not over.wait(0.1):
                        connection.sendall(b"X-A: b\r\n")
                    over.wait(30)
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        began = time.monotonic()
        with pytest.raises(FetchFailed, match="within"):
            fetched(f"http://127.0.0.1:{listening.getsockname()[1]}/", fetch_s=0.5)
        assert time.monotonic() - began < 15
        over.set()
        thread.join()


def test_nobody_there_is_a_failure() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(FetchFailed, match="reached"):
            fetched(f"http://127.0.0.1:{bound.getsockname()[1]}/")


# Addresses


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fc00::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1",
        "2001:0:53aa:64c:0:fbff:80ff:fffe", "2001:db8::1",
    ],
)  # fmt: skip
def test_a_private_address_is_not_public_however_it_is_written(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "::ffff:8.8.8.8"])
def test_a_public_address_is(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes names resolve to addresses of the test's own; each call takes the next answer, the last one stays."""
    asked: list[str] = []

    def to(*answers: list[str]) -> list[str]:
        left = list(answers)

        def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
            name = host.decode() if isinstance(host, bytes) else host
            asked.append(name)
            addresses = left.pop(0) if len(left) > 1 else left[0]
            return [
                (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port))
                for one in addresses
            ]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return to


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["10.1.2.3"], ["93.184.216.34", "127.0.0.1"], ["::1"], ["169.254.169.254"], []]
)
def test_a_name_with_any_private_address_is_refused_without_a_connection(resolve: Any, addresses: list[str]) -> None:
    resolve(addresses)
    with pytest.raises(FetchFailed, match=r"not public|no address"):
        fetch("https://id.example/jwks", private=False)


@pytest.mark.parametrize("url", ["http://id.example/jwks", "https://127.0.0.1/x#y", "ftp://id.example/", "file:///etc/passwd",
                                 "https://user:secret@id.example/", "https://id.example/\r\nX: y"])  # fmt: skip
def test_only_https_addresses_are_fetched(resolve: Any, url: str) -> None:
    resolve(["93.184.216.34"])
    with pytest.raises(FetchFailed, match="https"):
        fetch(url, private=False)


@pytest.mark.parametrize("url", ["https://999.1.1.1/jwks", "https://[1:2]/jwks"])
def test_an_address_that_is_none_is_not_fetched(url: str) -> None:
    with pytest.raises(FetchFailed, match="address"):
        fetch(url, private=False)


def test_http_on_loopback_needs_the_setting(issuer: IssuerServer) -> None:
    with pytest.raises(FetchFailed, match="https"):
        fetched(issuer.url + JWKS, private=False)
    assert json.loads(fetched(issuer.url + JWKS, private=True).content)["keys"]


def test_a_domain_on_this_machine_calls_this_machine_and_not_the_private_network(resolve: Any) -> None:
    """`127.` may begin the name of any host: it made a look at it reach every private address."""
    resolve(["10.0.0.1"])
    assert not any(
        is_loopback(host) for host in ("127.attacker.example", "127.1.example", "localhost.example", "10.0.0.1")
    )
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"))
    with pytest.raises(FetchFailed, match="not public"):
        document_fetch("https://127.attacker.example")


def test_link_local_addresses_are_refused_even_where_private_ones_are_allowed(resolve: Any) -> None:
    """What cloud providers tell about a machine is at 169.254.169.254."""
    for address in ("169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "::ffff:169.254.169.254"):
        resolve([address])
        with pytest.raises(FetchFailed, match="not public"):
            fetched("https://id.example/jwks")


# TLS to the address that was checked


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, ssl.SSLContext, list[str | None]]]:
    """A TLS server for the name id.example on loopback: its port, who believes it, and the names that were asked for."""
    folder = tmp_path_factory.mktemp("tls")
    key_path, cert_path = _certificate(folder, "id.example", A_LABEL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert_path, key_path)
    names: list[str | None] = []
    context.sni_callback = lambda connection, name, _: names.append(name)
    with IssuerServer() as server:
        server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
        server.answer("/jwks", b'{"keys": []}')
        yield server._server.server_address[1], ssl.create_default_context(cafile=str(cert_path)), names


def test_rebinding_the_name_after_the_check_changes_nothing(resolve: Any, tls: Any) -> None:
    """The name is resolved once; the connection goes to the checked address, and TLS is about the name."""
    port, context, names = tls
    asked = resolve(["127.0.0.1"], ["203.0.113.1"])
    assert fetched(f"https://id.example:{port}/jwks", context=context, fetch_s=5.0).content == b'{"keys": []}'
    assert asked == ["id.example"]
    assert names[-1] == "id.example"


def test_a_name_beyond_ascii_is_asked_for_as_it_is_in_the_dns(resolve: Any, tls: Any) -> None:
    """By the resolver, in TLS, and in the Host field, which has no place for anything else."""
    port, context, names = tls
    asked = resolve(["127.0.0.1"])
    for url in (f"https://{A_LABEL}:{port}/jwks", f"https://{A_LABEL.upper()}:{port}/jwks"):
        assert fetched(url, context=context, fetch_s=5.0).content == b'{"keys": []}'
    assert {*asked, names[-1]} == {A_LABEL}
    with pytest.raises(FetchFailed, match="reached"):  # what looks like one, and says nothing
        fetched(f"https://xn--a.example:{port}/jwks", context=context, fetch_s=5.0)


def test_a_certificate_of_another_name_is_refused(resolve: Any, tls: Any) -> None:
    port, context, _ = tls
    resolve(["127.0.0.1"])
    with pytest.raises(FetchFailed, match="reached"):
        fetched(f"https://other.example:{port}/jwks", context=context, fetch_s=5.0)


def test_a_certificate_that_nobody_vouches_for_is_refused(resolve: Any, tls: Any) -> None:
    port, _, _ = tls
    resolve(["127.0.0.1"])
    with pytest.raises(FetchFailed, match="reached"):
        fetched(f"https://id.example:{port}/jwks", fetch_s=5.0)


def test_an_address_that_does_not_answer_leaves_time_for_the_next(resolve: Any, tls: Any) -> None:
    port, context, _ = tls
    resolve(["127.0.0.9", "127.0.0.1"])  # the server listens at one of them only
    assert fetched(f"https://id.example:{port}/jwks", context=context, fetch_s=5.0).content == b'{"keys": []}'


def test_the_environments_proxy_is_not_used(issuer: IssuerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert fetched(issuer.url + JWKS).content


def _certificate(folder: Path, name: str, *more: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in (name, *more)]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    key_path, cert_path = folder / "key.pem", folder / "cert.pem"
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    cert_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return key_path, cert_path
