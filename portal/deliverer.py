"""The process that delivers to endpoints of subscribers: `python -m portal.deliverer`. One event loop, no tasks of Celery.

A task per delivery would cost more than the delivery (docs/decisions/0075). The work of a domain is done by one such
process at a time; further ones wait for its lease.
"""

# ruff: noqa: E402 - it must have joined the metrics' folder before our modules are imported

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading

import django
import uvloop

from portal.measured import loaded, measure_as

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
measure_as("deliverer")
django.setup()

from eventing.conf import config
from eventing.store.errors import RedisError
from eventing.store.presence import present
from eventing.subscriptions.push.process.deliverer import deliver
from eventing.telemetry.process import measure_in_background
from portal.file_limit import raise_file_limit
from portal.logs.log_lines import catch_the_rest
from portal.supervisor.newer_schema import refuse_newer_schema
from portal.supervisor.parent_watchdog import prove_work, report_ready

PRESENT_S = 2.0
# By default a thread that computes, as transactions do, keeps the interpreter for 5 ms whenever the loop wants it back.
SWITCH_S = 0.0005
log = logging.getLogger(__name__)


async def main() -> None:
    """Deliver until SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.call_soon(_settled)
    await deliver_until(stop)


def _settled() -> None:
    loaded()
    report_ready()


async def deliver_until(stop: asyncio.Event) -> None:
    """Deliver until the event is set, and note the presence of the deliverer."""
    delivering = asyncio.get_running_loop().create_task(deliver(stop.is_set))
    while not stop.is_set():
        if not delivering.done():
            prove_work()
        try:
            await asyncio.to_thread(present, "deliverer")
        except RedisError as error:
            log.debug("The presence of the deliverer is not noted: %s", error)
        try:
            async with asyncio.timeout(PRESENT_S):
                await stop.wait()
        except TimeoutError:
            continue
    await delivering


class DeliveryThread:
    """The deliverer on a thread of a process that does other work too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._stopped = False

    def run(self) -> None:
        """Deliver until `stop`, in an event loop of its own."""
        uvloop.run(self._deliver())

    def stop(self) -> None:
        """Have `run` end soon. Called from another thread."""
        with self._lock:
            self._stopped = True
            if self._loop is not None and self._stop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._stop.set)

    async def _deliver(self) -> None:
        stop = asyncio.Event()
        with self._lock:
            if self._stopped:
                return
            self._loop, self._stop = asyncio.get_running_loop(), stop
        try:
            await deliver_until(stop)
        finally:
            with self._lock:
                self._loop = None


if __name__ == "__main__":
    catch_the_rest(config().log_format)
    refuse_newer_schema()
    raise_file_limit()
    sys.setswitchinterval(SWITCH_S)
    measure_in_background()
    uvloop.run(main())
