"""A plain Channels group consumer over channels_redis, served by daphne (channels_app.py), with a Redis of its own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import wire
from bench.load import ConnectionScript
from bench.peers.base import HTTP_ANSWERS, BenchServer, Route
from bench.peers.redis_server import redis_program

_ROOT = Path(__file__).resolve().parent.parent.parent


class Channels(BenchServer):
    """A group drops messages silently where a consumer's channel is over capacity; that shows as lost events."""

    name = "channels"
    label = "Channels group (daphne)"
    durability = "memory of Redis, dropped over capacity"
    routes = {Route.HTTP: HTTP_ANSWERS}
    fanout_route = Route.HTTP
    sessions_max = 2_000

    @classmethod
    def missing(cls) -> str | None:
        for module in ("channels_redis", "daphne"):
            if importlib.util.find_spec(module) is None:
                return f"{module} is not installed (requirements/dev.txt)"
        return None if redis_program() else "no redis-server or valkey-server on PATH"

    def start(self) -> None:
        socket = self.folder / "channels.sock"
        self.processes.start(
            "redis",
            [str(redis_program()), "--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no"],
        )
        self.processes.await_condition(socket.exists, "redis")
        self.processes.start(
            "daphne",
            [
                *(sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port)),
                *("-v", "0", "bench.peers.channels_app:application"),
            ],
            env={"BENCH_REDIS_URL": f"unix://{socket}", "PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        )
        self.processes.await_port(self.port)

    def reader(self, streams: Sequence[int], *, from_start: bool = False) -> ConnectionScript:
        (stream,) = streams
        assert not from_start
        return ConnectionScript(wire.upgrade(self.port, f"/sub/{stream}"))

    def publisher(self, route: Route) -> ConnectionScript:
        return ConnectionScript()

    def request(self, route: Route, stream: int, events: int = 1) -> bytes:
        assert events == 1
        return wire.post(self.port, f"/pub/{stream}", wire.data(stream))

    def resident_bytes(self) -> int:
        return self.processes.resident_bytes("daphne")
