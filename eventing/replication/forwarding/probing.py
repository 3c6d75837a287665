"""Probing: peers without any answer are probed every PROBE_S, so that recovery waits for no back-off.

A refused connection, or one that is never answered, costs nobody anything: an unreachable peer is probed for a sign of
life (wire/client.py: `answers`) every PROBE_S, whatever the pause after the last failure. The first sign starts one
request at once (wakeups.py: `probe`), and only its success ends the failure. If it fails nevertheless, the next probes
of that peer follow after pauses that double up to PROBE_S_MAX, until the peer is unreachable again: a peer that gives
signs of life and accepts no request is tried no more often than by the back-off.

The sweep states the unreachable peers (`watch`), each second. One event loop on a thread of its own, in the process
that forwards, probes them: at most PROBES_AT_ONCE at a time, those that have waited longest first.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from eventing.core.container import per_process
from eventing.peering.wire import client
from eventing.replication.forwarding import wakeups
from eventing.store.errors import RedisError

PROBE_S = 2.0  # bound: seconds of a probe, and between two probes of a peer; the peer still counts as unreachable
"""Seconds between two probes of an unreachable peer, and for a probe at most."""
# bound: seconds between probes of a peer that is alive but accepts no request; the peer is probed again
PROBE_S_MAX = 60.0
"""Seconds between two probes of a peer that gives signs of life and accepts no request: as forwarding's longest
back-off.
"""
PROBES_AT_ONCE = 64  # bound: concurrent probes; the others wait; the longest waiting are first
"""Probes in flight at a time; with more peers, each is probed less often."""
RESOLVERS = 8
"""Threads that resolve names."""
FUTILE_MAX = 8
TICK_S = 0.25

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PeerRoute:
    """The route to one peer.

    Attributes:
        due_at: time of the next probe, by time.monotonic.
        futile: consecutive signs of life that were followed by a failed request.
        alive: whether the last probe found a sign of life.
        probing: whether a probe is in flight.
    """

    url: str
    due_at: float = 0.0
    futile: int = 0
    alive: bool = False
    probing: bool = False

    def probed(self, alive: bool, began: float) -> None:
        """Apply the result of a probe that began then, and set the time of the next."""
        self.futile = min(self.futile + 1, FUTILE_MAX) if alive and self.alive else 0
        self.alive = alive
        self.due_at = began + min(PROBE_S * 2.0**self.futile, PROBE_S_MAX)


class Prober:
    """Probes routes; see the module."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._routes: dict[str, PeerRoute] = {}
        self._running = False
        self._under_way: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="probing")

    def watch(self, cut_off: Mapping[str, str]) -> None:
        """Probe the routes to these peers (addresses by name), and to no others any more."""
        with self._lock:
            for name in self._routes.keys() - cut_off.keys():
                del self._routes[name]
            for name, url in cut_off.items():
                if name not in self._routes or self._routes[name].url != url:
                    self._routes[name] = PeerRoute(url)
            if self._routes and not self._running:
                self._running = True
                threading.Thread(target=self._run, name="probing", daemon=True).start()

    def _run(self) -> None:
        asyncio.run(self._probe_due())

    async def _probe_due(self) -> None:
        """Probe what is due until no peer is unreachable."""
        while True:
            now = time.monotonic()
            with self._lock:
                if not self._routes and not self._under_way:
                    self._running = False
                    return
                due = [
                    (route.due_at, name)
                    for name, route in self._routes.items()
                    if not route.probing and route.due_at <= now
                ]
                some = heapq.nsmallest(PROBES_AT_ONCE - len(self._under_way), due)
                routes = [(name, self._routes[name]) for _, name in some]
                for _, route in routes:
                    route.probing = True
            for name, route in routes:
                task = asyncio.create_task(self._probe(name, route, now))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
            await asyncio.sleep(TICK_S)

    async def _probe(self, name: str, route: PeerRoute, began: float) -> None:
        try:
            alive = await client.answers(route.url, PROBE_S, self._threads)
            route.probed(alive, began)
            if alive:
                client.give_up(name, begun_before=began - PROBE_S)
                await asyncio.to_thread(_alive, name)
        finally:
            route.probing = False


def _alive(peer: str) -> None:
    """Start one request at once."""
    try:
        wakeups.probe(peer)
    except RedisError as error:
        log.debug("The sign of life of %s could not be recorded: %s", peer, error)


_prober = per_process(Prober)


def watch(cut_off: Mapping[str, str]) -> None:
    """Have this process probe the routes to these peers (addresses by name), and to no others any more."""
    _prober().watch(cut_off)
