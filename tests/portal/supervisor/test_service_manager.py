"""A service manager passes the listening socket and is notified of readiness: a real supervisor, started as systemd starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from demo.harness.servers import READY_WITHIN_S, ROOT, STOPPED_WITHIN_S, Domain
from portal.supervisor.errors import StartError
from portal.supervisor.parent_watchdog import death_signal
from portal.supervisor.service_manager import ServiceManager, listener_passed
from tests.gateway.server import Prepared

pytestmark = pytest.mark.processes

# What systemd does before it executes a service: descriptors from 3 on, and the pid of the process that may take them.
START = """
import os, sys
for number, passed in enumerate(map(int, sys.argv[1].split(",")), 3):
    os.dup2(passed, number, inheritable=True)
os.environ.update(LISTEN_FDS=str(len(sys.argv[1].split(","))), LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, "manage.py", "run"])
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """The socket that the service manager holds."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as made:
        yield made


def spawn(domain: Domain, *sockets: socket.socket, **variables: str) -> subprocess.Popen[bytes]:
    """Start the supervisor with these sockets."""
    passed = [made.fileno() for made in sockets]
    domain.data_dir.parent.mkdir(parents=True, exist_ok=True)
    with domain.output_path.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-c", START, ",".join(map(str, passed))],
            env={**domain.env, **variables},
            cwd=ROOT,
            pass_fds=passed,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=death_signal(signal.SIGTERM),
        )


def stop(server: subprocess.Popen[bytes]) -> int:
    server.send_signal(signal.SIGTERM)
    return server.wait(STOPPED_WITHIN_S)


@pytest.mark.long
def test_connections_wait_while_the_service_is_exchanged(
    tmp_path: Path, prepared: Prepared, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    domain = Domain(tmp_path / "var", seed=prepared.migrated, port=port, workers=0)
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(READY_WITHIN_S)
        first = spawn(domain, listener, NOTIFY_SOCKET=address)
        assert manager.recv(64) == b"READY=1"
        assert httpx.get(f"{domain.url}/livez", timeout=60, trust_env=False).status_code == 200
        for pid in domain.pids.values():  # children do not take the service manager's variables for theirs
            inherited = Path(f"/proc/{pid}/environ").read_bytes()
            assert b"LISTEN_FDS=" not in inherited
            assert b"NOTIFY_SOCKET=" not in inherited
        assert stop(first) == 0
        assert manager.recv(64) == b"STOPPING=1"
        with socket.create_connection(
            ("127.0.0.1", port), timeout=READY_WITHIN_S
        ) as waiting:  # nothing runs: not refused
            waiting.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            second = spawn(domain, listener, NOTIFY_SOCKET=address)
            try:
                assert waiting.recv(64).startswith(b"HTTP/1.1 200")
                assert manager.recv(64) == b"READY=1"
            finally:
                assert stop(second) == 0


def test_a_socket_at_another_address_than_the_settings_state_is_refused(
    tmp_path: Path, listener: socket.socket
) -> None:
    domain = Domain(tmp_path / "var", port=1 + listener.getsockname()[1] % 65535)
    assert spawn(domain, listener).wait(READY_WITHIN_S) == 1
    assert "state the same address in the socket unit" in domain.output
    assert "Traceback" not in domain.output


def test_several_sockets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", "2")
    with pytest.raises(StartError, match="passed 2 sockets; pass one"):
        listener_passed(("127.0.0.1", 8000))
    assert "LISTEN_FDS" not in os.environ


def test_variables_of_another_process_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that the service manager started may have left them in the environment."""
    monkeypatch.setenv("LISTEN_PID", str(os.getppid()))
    monkeypatch.setenv("LISTEN_FDS", "1")
    assert listener_passed(("127.0.0.1", 8000)) is None
    assert "LISTEN_FDS" not in os.environ


def test_a_service_manager_that_has_gone_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nonexistent/notify")
    ServiceManager().notify("READY=1")
    assert "NOTIFY_SOCKET" not in os.environ
