"""A small domain in one process: gateway, forwarder and deliverer (docs/decisions/0110). `python -m portal.small_domain --fd N`.

    prepare SQL -> threads of forwarder and deliverer -> the gateway's event loop, on the main thread -> SIGTERM -> all of them end

Each part is the one that runs as a process of its own elsewhere. They share the interpreter, so that a turn of forwarding can delay a
publish by a fraction of a millisecond (SWITCH_S), and a part that fails ends the process: the supervisor starts all of it again.
"""

# ruff: noqa: E402 - it must have joined the metrics' folder before our modules are imported

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence

import django

from portal.measured import measure_as

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
measure_as("domain")
django.setup()

from django.db import connections

from eventing.conf import config
from eventing.telemetry import tracing
from portal.celery import app as celery
from portal.deliverer import DeliveryThread
from portal.file_limit import raise_file_limit
from portal.gateway import GatewayServer, uvicorn_config
from portal.logs.log_lines import catch_the_rest
from portal.security import refusal
from portal.small_forwarder import SmallForwarder
from portal.supervisor.errors import StartError
from portal.supervisor.preparation import login_url, prepare_database, prepare_identity

# By default a thread that computes keeps the interpreter for 5 ms whenever the gateway's loop wants it back.
SWITCH_S = 0.0005
END_S = 2.0
"""Seconds for forwarder and deliverer to end after the gateway has; what they were at is done again after the next start."""
TURN_S = 1.0
TICKS_PER_TURN = 10
"""uvicorn's ticks in TURN_S: it renews the date at every tenth."""
END_STATUS = os.EX_SOFTWARE
log = logging.getLogger(__name__)


class SmallServer(GatewayServer):
    """The gateway's server, which looks each second instead of ten times whether it is to stop: the other nine wake an idle process."""

    async def main_loop(self) -> None:
        """Wait for the end, and keep the date in answers current."""
        turn = 0
        while not await self.on_tick(turn * TICKS_PER_TURN):
            await asyncio.sleep(TURN_S)
            turn = (turn + 1) % 86_400


def prepared() -> str:
    """Prepare what is in SQL. Returns what the supervisor prints about it, as JSON. Raises StartError."""
    database = prepare_database(config().migrate)
    prepare_identity()
    said = {"database": database, "login": login_url(config())}
    connections.close_all()
    return json.dumps(said)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve, forward and deliver until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m portal.small_domain", description="A small domain in one process.")
    parser.add_argument("--fd", type=int, required=True, help="descriptor of a listening socket to accept from")
    options = parser.parse_args(arguments)
    if reason := refusal(config()):
        parser.error(reason)
    catch_the_rest(config().log_format)
    raise_file_limit()
    sys.setswitchinterval(SWITCH_S)
    try:
        said = prepared()
    except StartError as error:
        sys.exit(str(error))
    importlib.import_module(
        "portal.asgi"
    )  # modules are loaded before there are threads, which would load them in each other's way
    celery.loader.import_default_modules()
    forwarder, delivery = SmallForwarder(), DeliveryThread()
    parts = [_part("forwarder", forwarder.run)]
    if config().push:
        parts.append(_part("deliverer", delivery.run))

    def stopping() -> None:
        forwarder.stop()
        delivery.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(
            number, lambda *_: None
        )  # uvicorn raises the signal again when it has stopped; the others have not yet
    server = SmallServer(uvicorn_config(), ready_text=said, stopping=stopping)
    signal.signal(signal.SIGHUP, server.handle_exit)
    server.run(sockets=[socket.socket(fileno=options.fd)])
    stopping()
    deadline = time.monotonic() + END_S
    for part in parts:
        part.join(max(0.0, deadline - time.monotonic()))
    tracing.stop()
    logging.shutdown()
    os._exit(0)  # threads that wait in Redis or for a peer are not waited for


def _part(name: str, run: Callable[[], None]) -> threading.Thread:
    """Start a part on a thread of its own. If the part fails, the process ends: the supervisor starts it again."""

    def guarded() -> None:
        try:
            run()
        except Exception:
            log.exception("The %s failed; the domain's process is started again", name)
            os._exit(END_STATUS)

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread


if __name__ == "__main__":
    main()
