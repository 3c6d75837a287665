"""The hot path as processes, lighter than a whole domain (demo/harness/servers.py): one Redis and its gateways, no workers.

    with Edge(folder, prepared) as edge:
        rp = edge.create_rp(history={"max_events": 10})
        edge.kill_redis(); edge.start_redis()
        edge.kill_gateway(); edge.start_gateway()

The test process holds the listening sockets, as the supervisor does, so a gateway comes back on its port.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import psutil
import redis

from demo.harness.servers import ROOT, wait_for
from eventing.access.rules import tokens
from eventing.core.config import Config
from eventing.store import keys
from portal.supervisor import redis_server
from portal.supervisor.parent_watchdog import death_signal
from tests.gateway.at_rest import await_rest
from tests.store.cluster_process import ClusterProcesses
from tests.store.listening import subscribers

ADMIN = "root"
UP_WITHIN_S = 90.0
STOPPED_WITHIN_S = 30.0
_PREPARE = """
import json, os, django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.db import connection
connection.cursor().execute("VACUUM INTO %s", [os.environ["MIGRATED"]])
from eventing.access.services.tokens import ensure_domain_key
from eventing.access.selectors.keys import signing_key
ensure_domain_key()
print(json.dumps(signing_key()))
"""


@dataclass(frozen=True)
class Prepared:
    """A data folder with a migrated database, to copy from, and the key that signs its tokens.

    `migrated` is the database from before it had a key, for domains that are to make their own.
    """

    data_dir: Path
    key: dict[str, Any]
    migrated: Path


def environment(data_dir: Path, **settings: Any) -> dict[str, str]:
    """The environment of a domain's processes; `settings` are HERALD_* by their field names."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HERALD_")}
    own = {"HERALD_DATA_DIR": str(data_dir), "DJANGO_SETTINGS_MODULE": "portal.settings"}
    return {**inherited, **own, **{f"HERALD_{name.upper()}": str(value) for name, value in settings.items()}}


def prepare(data_dir: Path) -> Prepared:
    """Make the folder that edges are copied from."""
    data_dir.mkdir(parents=True)
    migrated = data_dir.with_name(f"{data_dir.name}-migrated.sqlite3")
    made = subprocess.run(
        [sys.executable, "-c", _PREPARE],
        env={**environment(data_dir), "MIGRATED": str(migrated)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return Prepared(data_dir, json.loads(made.stdout), migrated)


# HTTP without TLS: to load the certificates would take 20 ms for each client.
PLAIN: dict[str, Any] = {"trust_env": False, "verify": False, "timeout": 30.0}
GATEWAY = ("-m", "portal.gateway", "--fd")
DAPHNE = ("-m", "daphne", "portal.asgi:application", "--fd")


class LiveGateway:
    """One Redis and `gateways` gateway processes (`program` with the number of their socket) in a folder of their own."""

    def __init__(
        self,
        data_dir: Path,
        prepared: Prepared,
        *,
        gateways: int = 1,
        program: Sequence[str] = GATEWAY,
        cluster: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.cluster: ClusterProcesses | None = None
        self._cluster_settings = cluster  # of ClusterProcesses
        shutil.copytree(prepared.data_dir, data_dir)
        self.data_dir = data_dir
        self._key = prepared.key
        self._program = program
        self._sockets = [_listening_socket() for _ in range(gateways)]
        self._env = environment(data_dir, port=self.port(), **settings) | {"PYTHONFAULTHANDLER": "1"}
        self.config = Config.from_env(self._env)
        self.log_path = data_dir / "gateway.log"
        self._redis: subprocess.Popen[bytes] | None = None
        self._gateways: list[subprocess.Popen[bytes] | None] = [None] * gateways
        self._admin: httpx.Client | None = None

    # Where it is

    def port(self, gateway: int = 0) -> int:
        port: int = self._sockets[gateway].getsockname()[1]
        return port

    def url(self, gateway: int = 0) -> str:
        return f"http://127.0.0.1:{self.port(gateway)}"

    def ws_url(self, gateway: int = 0, /, **members: str) -> str:
        return str(httpx.URL(f"ws://127.0.0.1:{self.port(gateway)}/ws", params=members))

    @property
    def log(self) -> str:
        """All that the gateways have logged."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def redis(self) -> redis.Redis:
        """A client of its Redis; the caller closes it."""
        if self.cluster is not None:
            return self.cluster.client()
        return redis.Redis.from_url(self.config.effective_redis_url)

    def gateway_process(self, gateway: int = 0) -> psutil.Process:
        process = self._gateways[gateway]
        assert process is not None
        return psutil.Process(process.pid)

    # Start, stop, faults

    def start(self) -> Self:
        self.start_redis()
        for gateway in range(len(self._gateways)):
            self.spawn_gateway(gateway)
        for gateway in range(len(self._gateways)):
            self.wait_gateway(gateway)
        return self

    def start_redis(self) -> None:
        """Start Redis as `make run` does, and wait until it has loaded its data; with HERALD_TEST_PLANE=cluster, or settings of a
        cluster, a cluster of three primaries."""
        if self.cluster is not None:
            self.cluster.start()
            return
        if self._cluster_settings is not None or os.environ.get("HERALD_TEST_PLANE") == "cluster":
            self.cluster = ClusterProcesses(self.data_dir / "cluster", **(self._cluster_settings or {}))
            self._env |= {"HERALD_REDIS_URL": self.cluster.url, "HERALD_BROKER_URL": "redis://127.0.0.1:1/0"}
            self.config = Config.from_env(self._env)
            return
        (self.data_dir / "redis").mkdir(exist_ok=True)
        redis_server.prepare_socket(self.config)
        with (self.data_dir / "redis.log").open("ab") as output:
            self._redis = subprocess.Popen(
                redis_server.command(redis_server.find_server(), self.config),
                stdout=output,
                stderr=output,
                preexec_fn=death_signal(signal.SIGKILL),
            )
        client = redis_server.connect(self.config)
        wait_for(lambda: redis_server.is_up(client), UP_WITHIN_S, about="Redis answers")
        client.close()

    def kill_redis(self) -> None:
        """SIGKILL."""
        if self.cluster is not None:
            self.cluster.kill()
            return
        assert self._redis is not None
        self._redis.kill()
        self._redis.wait()

    def pause_redis(self, paused: bool) -> None:
        """SIGSTOP, or SIGCONT: it keeps its connections and does nothing."""
        if self.cluster is not None:
            for node in self.cluster.nodes:
                node.pause(paused)
            return
        assert self._redis is not None
        self._redis.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def spawn_gateway(self, gateway: int = 0) -> None:
        descriptor = self._sockets[gateway].fileno()
        with self.log_path.open("ab") as output:
            self._gateways[gateway] = subprocess.Popen(
                [sys.executable, *self._program, str(descriptor)],
                env=self._env,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                pass_fds=(descriptor,),
                preexec_fn=death_signal(signal.SIGKILL),
            )

    def pause_gateway(self, paused: bool, gateway: int = 0) -> None:
        """SIGSTOP, or SIGCONT: it keeps its connections and does nothing."""
        process = self._gateways[gateway]
        assert process is not None
        process.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def python(self, *arguments: str) -> subprocess.Popen[str]:
        """Python with these arguments as a process of the domain, speaking over pipes; the caller ends it."""
        return subprocess.Popen(
            [sys.executable, *arguments],
            env={**self._env, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "client")])},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=death_signal(signal.SIGKILL),
        )

    def wait_gateway(self, gateway: int = 0) -> None:
        httpx.get(self.url(gateway) + "/livez", **{**PLAIN, "timeout": UP_WITHIN_S}).raise_for_status()

    def await_rest(self, gateway: int = 0) -> None:
        """Wait until it has read all that was sent to it and can do no more with it."""
        process = self._gateways[gateway]
        assert process is not None
        await_rest(process.pid, self.port(gateway))

    def start_gateway(self, gateway: int = 0) -> None:
        self.spawn_gateway(gateway)
        self.wait_gateway(gateway)

    def kill_gateway(self, gateway: int = 0) -> None:
        """SIGKILL."""
        process = self._gateways[gateway]
        assert process is not None
        process.kill()
        process.wait()

    def terminate_gateway(self, gateway: int = 0) -> None:
        """SIGTERM; returns at once."""
        process = self._gateways[gateway]
        assert process is not None
        process.terminate()

    def wait_stopped(self, gateway: int = 0) -> int:
        """The exit code."""
        process = self._gateways[gateway]
        assert process is not None
        try:
            return process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # faulthandler writes into the log what each thread was at
            process.wait(STOPPED_WITHIN_S)
            raise

    def stop(self) -> None:
        if self._admin is not None:
            self._admin.close()
        for process in (*self._gateways, self._redis):
            if process is not None and process.poll() is None:
                process.terminate()
                try:
                    process.wait(STOPPED_WITHIN_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        if self.cluster is not None:
            self.cluster.kill()
        for listening in self._sockets:
            listening.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Use

    def token(self, subject: str = "tester", *, lease_s: float = 3600, **claims: Any) -> str:
        """A token of this domain; `claims` are added or, as None, left out."""
        now = time.time()
        made = {
            "iss": self.config.domain,
            "aud": self.config.domain,
            "sub": subject,
            "iat": now,
            "exp": now + lease_s,
            **claims,
        }
        return tokens.sign({name: value for name, value in made.items() if value is not None}, self._key)

    def http(self, subject: str = "tester", *, gateway: int = 0, **claims: Any) -> httpx.Client:
        """A client with a token; the caller closes it."""
        headers = {"Authorization": f"Bearer {self.token(subject, **claims)}"}
        return httpx.Client(base_url=self.url(gateway), headers=headers, **PLAIN)

    def ahttp(self, subject: str = "tester", *, gateway: int = 0, **claims: Any) -> httpx.AsyncClient:
        """As `http`, asynchronous."""
        headers = {"Authorization": f"Bearer {self.token(subject, **claims)}"}
        return httpx.AsyncClient(base_url=self.url(gateway), headers=headers, **PLAIN)

    @property
    def admin(self) -> httpx.Client:
        """An administrator's client."""
        if self._admin is None:
            self._admin = self.http(ADMIN, admin=True)
        return self._admin

    def create_rp(self, **asked: Any) -> str:
        """A new RP of the administrator; `asked` as in POST /api/v1/rps."""
        answer = self.admin.post("/api/v1/rps", json=asked)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def followed(self, rp: str) -> None:
        """Wait until a gateway listens for events of the RP, as it does once somebody waits for them."""
        with self.redis as client:
            await asyncio.to_thread(
                wait_for,
                lambda: subscribers(client, keys.notification_channel(rp)) > 0,
                about="somebody waits for events",
            )

    def publish(self, rp: str, count: int = 1, *, data: Any = None, prefix: str = "e", begin: int = 1) -> list[str]:
        """Publish `count` events PREFIX-N in batches; their ids."""
        ids = [f"{prefix}-{number}" for number in range(begin, begin + count)]
        for at in range(0, count, 500):
            batch = [event(event_id, data) for event_id in ids[at : at + 500]]
            answer = self.admin.post(f"/api/v1/rps/{rp}/events", content=json.dumps(batch), headers=BATCH)
            assert answer.status_code == 201, answer.text
        return ids


BATCH = {"content-type": "application/cloudevents-batch+json"}
STRUCTURED = {"content-type": "application/cloudevents+json"}


def event(event_id: str, data: Any = None, **more: Any) -> dict[str, Any]:
    """A small CloudEvent."""
    made = {"specversion": "1.0", "id": event_id, "source": "/tests", "type": "test", **more}
    return made if data is None else {**made, "data": data}


def ids_of(events: Sequence[dict[str, Any]]) -> list[str]:
    return [str(one["id"]) for one in events]


def _listening_socket() -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", 0))
    made.listen(2048)
    made.set_inheritable(True)
    return made
