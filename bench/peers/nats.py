"""nats-server over its WebSocket port: core NATS, subjects in memory, nothing stored."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from bench import wire
from bench.load import ConnectionScript
from bench.peers.base import AnswerPatterns, BenchServer, Route
from bench.processes import free_port

_BINARY = 2
_CONFIGURATION = """
listen: "127.0.0.1:{native_port}"
max_connections: 20000
websocket {{
    listen: "127.0.0.1:{port}"
    no_tls: true
    compression: false
}}
"""


class Nats(BenchServer):
    """NATS with `verbose`: publishers request `+OK` per message, so that their requests are answered like the others'."""

    name = "nats"
    label = "nats-server"
    durability = "not stored"
    routes = {Route.WEBSOCKET: AnswerPatterns("+OK", ("-ERR",), "PONG")}
    fanout_route = Route.WEBSOCKET
    ready = "PONG"

    @classmethod
    def missing(cls) -> str | None:
        return None if cls._program() else "nats-server is not installed (Debian: apt install nats-server)"

    @staticmethod
    def _program() -> str | None:
        return shutil.which("nats-server", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

    def start(self) -> None:
        configuration = self.folder / "nats.conf"
        configuration.write_text(_CONFIGURATION.format(port=self.port, native_port=free_port()))
        # The Go runtime takes its number of processors from the one core it is pinned to.
        self.processes.start("nats-server", [str(self._program()), "-c", str(configuration)])
        self.processes.await_port(self.port)

    def reader(self, streams: Sequence[int], *, from_start: bool = False) -> ConnectionScript:
        assert not from_start
        subscriptions = "".join(f"SUB s{stream:06d} {number}\r\n" for number, stream in enumerate(streams, 1))
        return self._client(False, f"{subscriptions}PING\r\n")

    def publisher(self, route: Route) -> ConnectionScript:
        return self._client(True, "PING\r\n")

    def _client(self, verbose: bool, commands: str) -> ConnectionScript:
        connect = f'CONNECT {{"verbose":{str(verbose).lower()},"pedantic":false,"lang":"bench","version":"1"}}\r\n'
        return ConnectionScript(wire.upgrade(self.port, "/"), wire.frame((connect + commands).encode(), _BINARY))

    def request(self, route: Route, stream: int, events: int = 1) -> bytes:
        assert events == 1
        data = wire.data(stream)
        return wire.frame(b"PUB s%06d %d\r\n%s\r\n" % (stream, len(data), data), _BINARY)
