"""Digest of a run: a hash over all messages and events, equal in all runs with one seed."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from eventing.sim.world import World


class EventDigest:
    """Hashes all that a world's domains put out; attached before the run, beside what observes the world already."""

    def __init__(self, world: World) -> None:
        self._hash = blake2b(digest_size=16)
        self._world = world
        self._observe, self._meter = world.observe, world.meter
        world.observe, world.meter = self._event, self._message

    def hexdigest(self) -> str:
        """The hash so far."""
        return self._hash.hexdigest()

    def _event(self, domain: int, event: Any, now: float) -> None:
        self._hash.update(f"{now:.3f} {domain} {event!r}\n".encode())
        if self._observe is not None:
            self._observe(domain, event, now)

    def _message(self, source: int, target: int, message: Any) -> None:
        self._hash.update(f"{self._world.now:.3f} {source} {target} {message!r}\n".encode())
        if self._meter is not None:
            self._meter(source, target, message)
