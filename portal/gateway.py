"""One gateway process: uvicorn with Herald's WebSocket protocol class, serving portal.asgi.

`python -m portal.gateway --fd N` takes the listening socket that the supervisor bound; without it the gateway binds
HERALD_HOST and HERALD_PORT itself, for those who run processes their own way.
"""

# ruff: noqa: E402 - the gateway's modules may be imported only after django.setup()

from __future__ import annotations

import argparse
import gc
import os
import socket
from collections.abc import Sequence

import django
import uvicorn

from portal.measured import measure_as

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
measure_as("gateway")
django.setup()

from eventing.conf import config
from eventing.gateway.gateway import drain_gateway
from eventing.gateway.server.protocol import HeraldHttpProtocol
from eventing.gateway.server.websocket_protocol import HeraldWebSocketProtocol
from eventing.telemetry import tracing
from portal.file_limit import raise_file_limit
from portal.logs.log_lines import catch_the_rest
from portal.security import refusal
from portal.supervisor.listening import BACKLOG
from portal.supervisor.parent_watchdog import report_ready

LOOP = "uvloop"
"""uvloop or asyncio. Measured: equal on fan-out and single publishes, uvloop 10 % ahead on batches, per CPU-second."""

FRAME_SLACK_BYTES = 64 * 1024  # bound: bytes of a frame beyond `HERALD_BATCH_BYTES_MAX`; the connection is closed: 1009
"""A publish frame holds a batch and the words around it."""

GRACEFUL_STOP_S = 5  # bound: seconds for open requests after SIGTERM; the connections are closed
"""Requests and sessions that are still open so long after SIGTERM are cut."""


class GatewayServer(uvicorn.Server):
    """uvicorn server that notifies the supervisor when it accepts connections."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            calm_the_collector()
            report_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        drain_gateway()  # sessions send their own close frames before uvicorn closes connections
        await super().shutdown(sockets)


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
    gc.collect()
    gc.freeze()
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
    raise_file_limit()
    sockets = None if options.fd is None else [socket.socket(fileno=options.fd)]
    GatewayServer(uvicorn_config()).run(sockets=sockets)
    tracing.stop()


if __name__ == "__main__":
    main()
