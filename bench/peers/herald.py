"""Herald: a whole domain, started by the users' command `manage.py run`, with its default settings.

The gateway and Redis are counted; worker and forwarder run beside them, on the same core. Redis runs with the
options of an embedded domain: append-only file, fsync before every answer. RPs are created by REST with the default
acknowledgement level `stored`.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import wire, wrk
from bench.load import ConnectionScript
from bench.peers.base import HTTP_ANSWERS, AnswerPatterns, BenchServer, Route
from bench.processes import CannotStart, ServerProcesses

ROOT = Path(__file__).resolve().parent.parent.parent
_EVENT_ROOM_BYTES = 1024  # of history, reserved for each event
_CREATORS = 8  # connections that create RPs
LEASE_S = 36_000
COUNTED = ("gateway", "redis")
READY_WITHIN_S = 60.0
REST_S = 0.5
REST_CPU_MAX = 0.15  # share of a core that a whole domain may use and count as at rest: start-up is over


class Processes(ServerProcesses):
    """The supervisor process `manage.py run`, and the processes that it has started, by its own table."""

    def __init__(self, folder: Path, data: Path) -> None:
        super().__init__(folder)
        self._data = data

    def pids(self, *names: str) -> list[int]:
        """Return the processes of the domain with these names; gateway and Redis if none is given."""
        table = json.loads((self._data / "processes.json").read_text())["processes"]
        return [int(of["pid"]) for name, of in table.items() if name.partition("-")[0] in (names or COUNTED)]

    def everything_cpu_s(self) -> float:
        """Return the CPU seconds of all processes of the domain."""
        return self.cpu_of(super().pids())


class Herald(BenchServer):
    """A Herald domain; its gateway and Redis are counted together."""

    all_cores = False
    name = "herald"
    label = "Herald"
    durability = "stored: fsynced before the answer"
    routes = {
        Route.HTTP: HTTP_ANSWERS,
        Route.WEBSOCKET: AnswerPatterns('"op":"ok"', ('"op":"error"', '"op":"closing"')),
    }
    fanout_route = Route.WEBSOCKET
    batches = True
    ready = '"op":"ok"'
    ready_each = True
    offset = '"offset":'
    replay_events_max = 10_000_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.called = self.label  # in messages
        self.data = folder / "herald"
        self.processes: Processes = Processes(folder, self.data)
        self.rps: list[str] = []
        self._token = ""
        self._runs = itertools.count(1)
        self.source = "/bench"
        self.describe: dict[str, Any] = {}  # further members of every RP that is created

    @classmethod
    def missing(cls) -> str | None:
        return None

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HERALD_")}
        return inherited | {
            "HERALD_DATA_DIR": str(self.data),
            "HERALD_PORT": str(self.port),
            "HERALD_PROFILE": "standard",  # also on a small machine: results of different machines are compared
            "PYTHONPATH": str(ROOT),
        }

    def spawn(self) -> None:
        """Start it without waiting."""
        command = [sys.executable, str(ROOT / "manage.py"), "run"]
        self.processes.start("run", command, env=self._environment(), all_cores=self.all_cores)

    def wait_up(self) -> None:
        """Wait until it serves after `spawn`."""
        self._until(lambda: self._status("/readyz") == 200, READY_WITHIN_S, "ready")
        if not self._token:
            self._token = self._manage("token_create", "--admin", "--lease-s", str(LEASE_S)).strip()

    def start(self) -> None:
        self.spawn()
        self.wait_up()
        self._until(self._rests, READY_WITHIN_S, "at rest")

    def _rests(self) -> bool:
        used, since = self.processes.everything_cpu_s(), time.monotonic()
        time.sleep(REST_S)
        return self.processes.everything_cpu_s() - used < REST_CPU_MAX * (time.monotonic() - since)

    def _until(self, holds: Any, within_s: float, what: str) -> None:
        deadline = time.monotonic() + within_s
        while not holds():
            if time.monotonic() > deadline:
                raise CannotStart(f"{self.called} was not {what} within {within_s:g} s: {self.processes.tail('run')}")
            time.sleep(0.05)

    def _status(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    def _manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise CannotStart(f"manage.py {arguments[0]} failed: {done.stderr.strip()[-1500:]}")
        return done.stdout

    def prepare(self, streams: int, history_events: int = 1000) -> None:
        description = {
            **self.describe,
            "lease_s": LEASE_S,
            "history": {"max_events": history_events, "max_bytes": history_events * _EVENT_ROOM_BYTES},
        }
        body = json.dumps(description).encode()

        def create(count: int) -> list[str]:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            created = [self._ask(connection, "POST", "/api/v1/rps", body)["id"] for _ in range(count)]
            connection.close()
            return created

        shares = [len(range(worker, streams, _CREATORS)) for worker in range(_CREATORS)]
        with ThreadPoolExecutor(_CREATORS) as pool:
            self.rps += list(itertools.chain.from_iterable(pool.map(create, filter(None, shares))))

    def _ask(self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> Any:
        headers = {**dict(self._authorization()), "Content-Type": "application/json"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise CannotStart(f"{method} {path} was answered {answer.status}: {text[:500]!r}")
        return json.loads(text)

    def _authorization(self) -> list[tuple[str, str]]:
        return [("Authorization", f"Bearer {self._token}")]

    def reader(self, streams: Sequence[int], *, from_start: bool = False) -> ConnectionScript:
        place = "earliest" if from_start else "now"
        return self._client(
            {"op": "subscribe", "id": number, "rp": self.rps[stream], "from": place}
            for number, stream in enumerate(streams, 1)
        )

    def publisher(self, route: Route) -> ConnectionScript:
        return ConnectionScript() if route is Route.HTTP else self._client([])

    def _client(self, messages: Iterable[dict[str, Any]]) -> ConnectionScript:
        headers = [*self._authorization(), ("Sec-WebSocket-Protocol", "herald.v1")]
        hello = b"".join(wire.frame(json.dumps(message).encode()) for message in messages)
        return ConnectionScript(wire.upgrade(self.port, "/ws", headers), hello)

    def request(self, route: Route, stream: int, events: int = 1) -> bytes:
        run = next(self._runs)  # ids differ between runs, or they would be recognised as repeated
        bodies = [
            b'{"specversion":"1.0","id":"%d-%d-id#%010d","source":"%s","type":"bench.sample","data":"%s"}'
            % (run, place, 0, self.source.encode(), wire.data(stream))
            for place in range(events)
        ]
        if route is Route.HTTP:
            kind = "application/cloudevents+json" if events == 1 else "application/cloudevents-batch+json"
            body = bodies[0] if events == 1 else b"[%s]" % b",".join(bodies)
            path = f"/api/v1/rps/{self.rps[stream]}/events"
            return wire.post(self.port, path, body, [*self._authorization(), ("Content-Type", kind)])
        what = b'"event":%s' % bodies[0] if events == 1 else b'"events":[%s]' % b",".join(bodies)
        return wire.frame(b'{"op":"publish","id":1,"rp":"%s",%s}' % (self.rps[stream].encode(), what))

    def posts(self, stream: int) -> Sequence[wrk.Post]:
        path = f"/api/v1/rps/{self.rps[stream]}/events"
        run = next(self._runs)
        event = {"specversion": "1.0", "id": f"wrk-{run}-{wrk.NUMBER}", "source": self.source, "type": "bench.sample"}
        shapes = {
            "text/plain": "x" * wire.DATA_BYTES,
            "application/json": json.dumps({"sample": "x" * (wire.DATA_BYTES - len('{"sample": ""}'))}),
            "application/cloudevents+json": json.dumps({**event, "data": "x" * wire.DATA_BYTES}),
        }
        return [
            wrk.Post(kind, path, [*self._authorization(), ("Content-Type", kind)], body)
            for kind, body in shapes.items()
        ]

    def beside_cpu_s(self) -> float:
        return self.processes.everything_cpu_s() - self.processes.cpu_s()

    def resident_bytes(self) -> int:
        return self.processes.resident_bytes("gateway")

    def stored(self, stream: int) -> int | None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        answer = self._ask(connection, "GET", f"/api/v1/rps/{self.rps[stream]}/events?after=last&limit=1")
        connection.close()
        return int(answer["offset"])
