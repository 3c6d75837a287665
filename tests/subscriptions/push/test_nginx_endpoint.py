"""nginx as an endpoint that misbehaves: each answer costs its bound, and is what it says; and servers that hang before HTTP."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from demo.harness.servers import free_port, wait_for
from eventing.subscriptions.push.rules.addresses import EndpointUrl
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, PushAnswer, judged
from eventing.subscriptions.push.wire import client, connection
from tests.subscriptions.push.receiver import Receiver
from tests.subscriptions.push.test_push_wire import send

pytestmark = pytest.mark.processes

HUGE_BYTES = 100 * 1024 * 1024
SOON_S, LATE_S, IN_TIME_S = 0.5, 90.0, 45.0
BOUNDS = ((connection, "ANSWER_S"), (connection, "BODY_S"), (client, "CONNECT_S"), (client, "TLS_S"))
Hasten = Callable[[ModuleType, str], None]
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: apt install nginx-light)")
CONFIGURATION = """
daemon off; user root; pid nginx.pid; error_log error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  keepalive_requests 3;
  server {{
    listen 127.0.0.1:{port};
    location /metadata {{ return 302 http://169.254.169.254/latest/meta-data/; }}
    location /private {{ return 307 http://10.0.0.1/; }}
    location /moved {{ return 308 http://127.0.0.1:{behind}/ok; }}
    location /closed {{ return 444; }}
    location /gone {{ return 410; }}
    location /busy {{ add_header Retry-After 7 always; return 429; }}
    location /huge {{ root files; error_page 405 =200 $uri; }}
    location /drip {{ root files; error_page 405 =200 $uri; limit_rate 1; }}
    location /drip-body {{ root files; error_page 405 =200 $uri; limit_rate 1; limit_rate_after 1k; }}
    location / {{ proxy_pass http://127.0.0.1:{behind}; proxy_read_timeout 90; proxy_buffering off; }}
    location /dead {{ proxy_pass http://127.0.0.1:1; }}
    location /ok {{ return 204; }}
  }}
}}
"""


@pytest.fixture(scope="module")
def behind() -> Iterator[Receiver]:
    """What nginx passes requests on to."""
    with Receiver() as running:
        yield running


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory, behind: Receiver) -> Iterator[int]:
    """The port of a running nginx."""
    assert NGINX is not None
    folder, found = tmp_path_factory.mktemp("nginx"), free_port()
    (folder / "files").mkdir()
    for name in ("huge", "drip", "drip-body"):
        with (folder / "files" / name).open("wb") as file:
            file.truncate(HUGE_BYTES)
    configuration = folder / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(port=found, behind=behind.port))
    process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(configuration), "-e", str(folder / "error.log")])
    try:
        wait_for(lambda: _accepts(found), about="nginx serves")
        yield found
    finally:
        process.terminate()
        process.wait(10)


def _accepts(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def hasten(monkeypatch: pytest.MonkeyPatch) -> Hasten:
    """Shortens one bound of a request, and extends the others: none of those ends it in time."""

    def shortened(module: ModuleType, name: str) -> None:
        for bound in BOUNDS:
            monkeypatch.setattr(*bound, SOON_S if bound == (module, name) else LATE_S)

    return shortened


def answer_of(port: int, path: str, scheme: str = "http") -> tuple[PushAnswer, float]:
    """Return the answer to a request, and its seconds."""
    began = time.monotonic()
    (answer,) = send(EndpointUrl(scheme, "127.0.0.1", port, path))
    return answer, time.monotonic() - began


@needs_nginx
@pytest.mark.parametrize(
    ("path", "reason", "verdict"),
    [
        ("/metadata", "http-302", AttemptVerdict.FAILED),
        ("/private", "http-307", AttemptVerdict.FAILED),
        ("/moved", "http-308", AttemptVerdict.FAILED),
        ("/closed", "connection-closed", AttemptVerdict.FAILED),
        ("/dead", "http-502", AttemptVerdict.THROTTLED),
        ("/busy", "http-429", AttemptVerdict.THROTTLED),
        ("/gone", "http-410", AttemptVerdict.GONE),
        ("/huge", "http-200", AttemptVerdict.DELIVERED),
        ("/ok", "http-204", AttemptVerdict.DELIVERED),
    ],
)
def test_an_answer_of_nginx_is_judged_by_its_status_and_no_redirect_is_followed(
    port: int, behind: Receiver, path: str, reason: str, verdict: AttemptVerdict
) -> None:
    asked = len(behind.received)
    answer, _ = answer_of(port, path)
    assert (answer.reason, judged(answer)) == (reason, verdict)
    assert len(answer.excerpt) <= connection.KEPT_BYTES_MAX
    assert len(behind.received) == asked


@needs_nginx
@pytest.mark.parametrize(
    ("path", "how", "bound", "reason"),
    [
        ("/hang", "hang", "ANSWER_S", "answer-timeout"),
        ("/hang-body", "hang-body", "BODY_S", "http-200"),
        ("/reset", "reset-after-200", "BODY_S", "http-200"),
        ("/nonsense", b"nonsense\r\n\r\n", "BODY_S", "malformed-answer"),
    ],
)
def test_a_server_behind_nginx_that_misbehaves_costs_its_bound(
    port: int, behind: Receiver, hasten: Hasten, path: str, how: str | bytes, bound: str, reason: str
) -> None:
    behind.answer[path] = how
    hasten(connection, bound)
    answer, took_s = answer_of(port, path)
    assert answer.reason == reason
    assert took_s < IN_TIME_S


@needs_nginx
@pytest.mark.parametrize(
    ("path", "bound", "reason"), [("/drip", "ANSWER_S", "answer-timeout"), ("/drip-body", "BODY_S", "http-200")]
)
def test_of_an_answer_that_drips_a_byte_a_second_only_the_header_section_is_waited_for(
    port: int, hasten: Hasten, path: str, bound: str, reason: str
) -> None:
    hasten(connection, bound)
    answer, took_s = answer_of(port, path)
    assert answer.reason == reason
    assert took_s < IN_TIME_S


@needs_nginx
def test_connections_that_nginx_closes_after_three_requests_cost_no_failure(port: int) -> None:
    answers = send(EndpointUrl("http", "127.0.0.1", port, "/ok"), 10)
    assert [one.status for one in answers] == [204] * 10


def test_a_server_that_accepts_no_connection_is_given_up_in_time(hasten: Hasten) -> None:
    hasten(client, "CONNECT_S")
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for filling in (first, second):  # the queue of connections is full: further ones are not answered
            filling.setblocking(False)
            filling.connect_ex(full.getsockname())
        answer, took_s = answer_of(full.getsockname()[1], "/")
    assert answer.reason == "connect-timeout"
    assert took_s < IN_TIME_S


def test_a_server_that_hangs_in_the_tls_handshake_is_given_up_in_time(hasten: Hasten) -> None:
    hasten(client, "TLS_S")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel accepts, nothing answers
        answer, took_s = answer_of(silent.getsockname()[1], "/", "https")
    assert answer.reason == "tls-failed"
    assert took_s < IN_TIME_S


@pytest.mark.parametrize(
    "address", ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::"]
)
def test_a_name_that_resolves_to_a_wrapped_private_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, behind: Receiver, address: str
) -> None:
    async def resolved(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, behind.port, 0, 0))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolved)
    asked = behind.connections
    (answer,) = send(EndpointUrl("http", "hooks.example.org", behind.port, "/ok"), private=False)
    assert (answer.reason, answer.address) == ("address-refused", address)
    assert behind.connections == asked
