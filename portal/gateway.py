"""One gateway process: uvicorn with Herald's WebSocket protocol class, serving portal.asgi.

`python -m portal.gateway --fd N` takes the listening socket that the supervisor bound; without it the gateway binds
HERALD_HOST and HERALD_PORT itself, for those who run processes their own way.

How it ends (docs/decisions/0122):

| signal | what happens |
|---|---|
| SIGTERM | not ready for HERALD_DRAIN_LEAD_S, then the sessions are closed over HERALD_DRAIN_S |
| SIGHUP | the sessions are closed over HERALD_DRAIN_S: another process accepts from the same socket |
| SIGINT, and any second signal | the sessions are closed at once |
"""

# ruff: noqa: E402 - the gateway's modules may be imported only after django.setup()

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence
from types import FrameType

import django
import uvicorn

from portal.measured import loaded, measure_as

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
measure_as("gateway")
django.setup()

from eventing.conf import config
from eventing.gateway.delivery.draining import pause
from eventing.gateway.gateway import gateway_of
from eventing.gateway.server.protocol import HeraldHttpProtocol
from eventing.gateway.server.websocket_protocol import HeraldWebSocketProtocol
from eventing.telemetry import tracing
from portal.file_limit import raise_file_limit
from portal.logs.log_lines import catch_the_rest
from portal.security import refusal
from portal.supervisor.listening import BACKLOG
from portal.supervisor.newer_schema import refuse_newer_schema
from portal.supervisor.parent_watchdog import report_ready

LOOP = "uvloop"
"""uvloop or asyncio. Measured: equal on fan-out and single publishes, uvloop 10 % ahead on batches, per CPU-second."""

FRAME_SLACK_BYTES = 64 * 1024  # bound: bytes of a frame beyond `HERALD_BATCH_BYTES_MAX`; the connection is closed: 1009
"""A publish frame holds a batch and the words around it."""

GRACEFUL_STOP_S = 5  # bound: seconds for open requests after SIGTERM; the connections are closed
"""Requests and sessions that are still open so long after SIGTERM are cut."""


FIRST_REQUEST_S = (
    2.0  # bound: seconds for the first request of a connection that was accepted before the stop; it is closed
)
LOOK_S = 0.02
log = logging.getLogger(__name__)


class GatewayServer(uvicorn.Server):
    """uvicorn server that notifies the supervisor when it accepts connections, and leaves its sessions to other gateways in time.

    Args:
        ready_text: what is reported to the supervisor then.
        stopping: called when the server begins to stop.
    """

    def __init__(
        self, config: uvicorn.Config, ready_text: str = "", stopping: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(config)
        self._ready_text, self._stopping = ready_text, stopping
        self._sockets: list[socket.socket] = []
        self._signals: list[int] = []
        self._draining: asyncio.Task[None] | None = None
        self._cut = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._sockets = sockets or []
        await super().startup(sockets)
        if self.started:
            calm_the_collector()
            report_ready(self._ready_text)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note a signal; `on_tick` acts on it."""
        self._signals.append(sig)
        if sig == signal.SIGINT or len(self._signals) > 1:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Begin to drain, on the first signal."""
        if self._signals and self._draining is None and not self.should_exit:
            self._draining = asyncio.create_task(self._drain(self._signals[0]))
        return await super().on_tick(counter)

    async def _drain(self, number: int) -> None:
        self._stopping()
        gateway = gateway_of(asyncio.get_running_loop())
        try:
            if gateway is not None:
                lead_s = config().drain_lead_s if number == signal.SIGTERM else 0
                await gateway.drain(lead_s, config().drain_s, self._stop_accepting, self._cut)
        except Exception:
            log.exception("Closing the sessions over time failed; they are closed at once")
        finally:
            super().handle_exit(number, None)

    async def _stop_accepting(self) -> None:
        """Close the listening socket, and wait for the first requests of connections that were accepted: closing these would reset
        them."""
        for server in self.servers:
            server.close()
        for sock in self._sockets:
            sock.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FIRST_REQUEST_S
        while loop.time() < deadline and not self._cut.is_set() and any(map(_is_silent, self.server_state.connections)):
            await pause(LOOK_S, self._cut)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._cut.set()
        if self._draining is None:
            self._stopping()
        else:
            await self._draining
        gateway = gateway_of(asyncio.get_running_loop())
        if gateway is not None:
            gateway.end_sessions()  # they send their own close frames before uvicorn closes connections
        await super().shutdown(sockets)


def _is_silent(connection: object) -> bool:
    """Return whether a connection has not sent a request yet."""
    return isinstance(connection, HeraldHttpProtocol) and connection.cycle is None


def uvicorn_config() -> uvicorn.Config:
    """Return uvicorn's configuration. Django configures logging (portal.settings), the hub sends pings, and compression
    would cost a copy per session."""
    return uvicorn.Config(
        "portal.asgi:application",
        host=config().host,
        port=config().port,
        loop=LOOP,
        http=HeraldHttpProtocol,
        ws=HeraldWebSocketProtocol,
        ws_max_size=config().batch_bytes_max + FRAME_SLACK_BYTES,
        ws_per_message_deflate=False,
        ws_ping_interval=None,
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACEFUL_STOP_S,
    )


COLLECT_AFTER = (700, 10, 100)
"""Of Python's three generations: net new objects, and rounds of the generation before. Python's own are 700, 10 and 10."""


def calm_the_collector() -> None:
    """Exclude objects of the start from garbage collection, and collect the others less often.

    It walks everything whenever ten of its smaller rounds have grown the process: 0.2 s with 8,000 channels and 1,000
    sessions, every four seconds while their histories fill up, which was a tenth of what publishing to them cost. Little
    needs it: requests to Django, which the smaller rounds find, and connections of HTTP that have ended. Sessions do not.
    """
    loaded()
    gc.set_threshold(*COLLECT_AFTER)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="python -m portal.gateway", description="One gateway process of a Herald domain."
    )
    parser.add_argument("--fd", type=int, help="descriptor of a listening socket to accept from")
    options = parser.parse_args(arguments)
    if reason := refusal(config()):
        parser.error(reason)
    catch_the_rest(config().log_format)
    refuse_newer_schema()
    raise_file_limit()
    sockets = None if options.fd is None else [socket.socket(fileno=options.fd)]
    server = GatewayServer(uvicorn_config())
    for number in (signal.SIGTERM, signal.SIGHUP):  # uvicorn raises the signal again when it has stopped
        signal.signal(number, server.handle_exit)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=sockets)
    tracing.stop()


if __name__ == "__main__":
    main()
