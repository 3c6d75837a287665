"""Probing: the ways to peers that gave no answer at all are looked at every PROBE_S, so that healing waits for no back-off.

A refused connection, or one that is never answered, costs nobody anything: whoever is cut off is asked for a sign of life
(client.py: `answers`) every PROBE_S, whatever the pause after the last failure. The first sign has one request tried at once
(wakeups.py: `probe`), and that one's success alone ends the failure. Where it fails all the same, the next looks at that peer
come after pauses that double to PROBE_S_MAX, until the way is seen to be cut again: a peer that gives signs of life and takes
no request is tried no more often than by the back-off.

The sweep says which peers are cut off (`watch`), each second. One event loop on a thread of its own, in the process that
forwards, looks at them: at most PROBES_AT_ONCE at a time, those that have waited longest first.
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

from redis.exceptions import RedisError

from eventing.peering.wire import client
from eventing.replication.forwarding import wakeups

PROBE_S = 2.0
"""Seconds from one look at a way that is cut to the next, and for a look at most."""
PROBE_S_MAX = 60.0
"""Seconds between two looks at a peer that gives signs of life and takes no request: as forwarding's longest back-off."""
PROBES_AT_ONCE = 64
"""Looks under way at a time; more peers than these are looked at less often."""
RESOLVERS = 8
"""Threads that resolve names."""
FUTILE_MAX = 8
TICK_S = 0.25

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Way:
    """The way to one peer.

    Attributes:
        due_at: when it is looked at next, as time.monotonic tells.
        futile: how many signs of life in a row were followed by a request that failed.
        alive: whether the last look saw a sign of life.
        looking: whether a look is under way.
    """

    url: str
    due_at: float = 0.0
    futile: int = 0
    alive: bool = False
    looking: bool = False

    def looked(self, alive: bool, began: float) -> None:
        """Take in what a look has shown that began then, and say when the next one is due."""
        self.futile = min(self.futile + 1, FUTILE_MAX) if alive and self.alive else 0
        self.alive = alive
        self.due_at = began + min(PROBE_S * 2.0**self.futile, PROBE_S_MAX)


class Prober:
    """Looks at ways; see the module."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ways: dict[str, Way] = {}
        self._running = False
        self._under_way: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="probing")

    def watch(self, cut_off: Mapping[str, str]) -> None:
        """Look at the ways to these peers, by name their addresses, and at no others any more."""
        with self._lock:
            for name in self._ways.keys() - cut_off.keys():
                del self._ways[name]
            for name, url in cut_off.items():
                if name not in self._ways or self._ways[name].url != url:
                    self._ways[name] = Way(url)
            if self._ways and not self._running:
                self._running = True
                threading.Thread(target=self._run, name="probing", daemon=True).start()

    def _run(self) -> None:
        asyncio.run(self._look_on())

    async def _look_on(self) -> None:
        """Look at what is due until nothing is cut off."""
        while True:
            now = time.monotonic()
            with self._lock:
                if not self._ways and not self._under_way:
                    self._running = False
                    return
                due = [(way.due_at, name) for name, way in self._ways.items() if not way.looking and way.due_at <= now]
                some = heapq.nsmallest(PROBES_AT_ONCE - len(self._under_way), due)
                ways = [(name, self._ways[name]) for _, name in some]
                for _, way in ways:
                    way.looking = True
            for name, way in ways:
                task = asyncio.create_task(self._look(name, way, now))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
            await asyncio.sleep(TICK_S)

    async def _look(self, name: str, way: Way, began: float) -> None:
        try:
            alive = await client.answers(way.url, PROBE_S, self._threads)
            way.looked(alive, began)
            if alive:
                client.give_up(name, begun_before=began - PROBE_S)
                await asyncio.to_thread(_alive, name)
        finally:
            way.looking = False


def _alive(peer: str) -> None:
    """Have one request tried at once."""
    try:
        wakeups.probe(peer)
    except RedisError as error:
        log.debug("The sign of life of %s is not noted: %s", peer, error)


_prober = Prober()


def watch(cut_off: Mapping[str, str]) -> None:
    """Have this process look at the ways to these peers, by name their addresses, and at no others any more."""
    _prober.watch(cut_off)
