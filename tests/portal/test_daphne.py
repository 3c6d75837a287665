"""The same ASGI application under daphne, on its own and as Django's runserver: publish, WebSocket, SSE with a real Redis."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from demo.harness.servers import ROOT, Domain, free_port, manage, wait_for
from eventing.core.config import Config
from portal.supervisor import redis_server
from portal.supervisor.parent_watchdog import death_signal

pytestmark = pytest.mark.processes

PORT_TRIES = 5
EVENT = {"specversion": "1.0", "id": "1", "source": "/tests/daphne", "type": "test", "data": {"n": 1}}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    """A domain's Redis and migrated database, and nothing else of it."""
    domain = Domain(tmp_path_factory.mktemp("daphne") / "var")
    config = Config.from_env(domain.env)
    (domain.data_dir / "redis").mkdir(parents=True)
    process = subprocess.Popen(
        redis_server.command(redis_server.find_server(), config),
        stdout=subprocess.DEVNULL,
        preexec_fn=death_signal(signal.SIGTERM),
    )
    try:
        assert manage("migrate", "--verbosity=0", env=domain.env).returncode == 0
        assert manage("token_create", "--subject", "first", env=domain.env).returncode == 0  # makes the first key
        client = redis_server.connect(config)
        wait_for(lambda: redis_server.is_up(client), about="Redis answers")
        client.close()
        yield domain
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(params=["daphne", pytest.param("runserver", marks=pytest.mark.long)])
def served(stores: Domain, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Domain]:
    """`stores`, served at their port; at another if a process has taken it, as a socket of the fixture does at first."""
    with socket.socket() as another:
        another.bind(("127.0.0.1", 0))
        stores.port = another.getsockname()[1]
        for attempt in range(1, PORT_TRIES + 1):
            output = tmp_path / f"output{attempt}"
            with serving(stores, request.param, output) as process:
                wait_for(lambda: process.poll() is not None or answers(stores), 60, about="the server answers")
                if process.poll() is None:
                    yield stores
                    assert "Did you mean HERALD_SESSIONS_MAX?" in output.read_text()
                    return
            assert "already in use" in output.read_text(), output.read_text()
            stores.port = free_port()
    pytest.fail(f"other processes took {PORT_TRIES} ports")


@contextmanager
def serving(domain: Domain, server: str, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The server's process, for the duration of the block. The environment has a misspelt setting, to be reported at start."""
    if server == "daphne":
        command = ["-m", "daphne", "-b", "127.0.0.1", "-p", str(domain.port), "portal.asgi:application"]
    else:
        command = ["manage.py", "runserver", "--noreload", f"127.0.0.1:{domain.port}"]
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, *command],
            env={**domain.env, "HERALD_SESIONS_MAX": "5"},
            cwd=ROOT,
            stdout=file,
            stderr=file,
            preexec_fn=death_signal(signal.SIGKILL),
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def answers(domain: Domain) -> bool:
    """Whether this domain answers: another server at its port refuses the token."""
    try:
        with domain.http() as client:
            return client.get("/api/v1/rps").status_code == 200
    except httpx.HTTPError:
        return False


def test_publish_reaches_a_websocket_and_a_stream(served: Domain) -> None:
    with served.http(admin=True) as client:
        made = client.post("/api/v1/rps", json={"lease_s": 600, "history": {"max_events": 100}})
        assert made.status_code == 201, made.text
        rp = made.json()["id"]
        socket = connect(
            served.ws_url,
            subprotocols=[Subprotocol("herald.v1")],
            additional_headers={"Authorization": f"Bearer {served.token(admin=True)}"},
            open_timeout=60,
            proxy=None,
        )
        with socket:
            socket.send(json.dumps({"op": "subscribe", "id": 1, "rp": rp, "from": "earliest"}))
            assert json.loads(socket.recv(timeout=30))["op"] == "ok"
            stored = client.post(
                f"/api/v1/rps/{rp}/events", json=EVENT, headers={"Content-Type": "application/cloudevents+json"}
            )
            assert stored.status_code == 201, stored.text
            frame = json.loads(socket.recv(timeout=30))
            assert (frame["op"], frame["offset"], frame["event"]["data"]) == ("event", 1, {"n": 1})
            socket.send(json.dumps({"op": "publish", "id": 2, "rp": rp, "event": {**EVENT, "id": "2"}}))
            frames = [json.loads(socket.recv(timeout=30)) for _ in range(2)]
            assert {frame["op"] for frame in frames} == {"ok", "event"}
        with client.stream("GET", f"/api/v1/rps/{rp}/stream", params={"after": "earliest"}) as stream:
            assert stream.status_code == 200
            seen = [json.loads(line[5:])["id"] for line in itertools.islice(data_lines(stream), 2)]
        assert seen == ["1", "2"]


def data_lines(stream: httpx.Response) -> Iterator[str]:
    return (line for line in stream.iter_lines() if line.startswith("data:"))
