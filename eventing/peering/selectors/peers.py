"""Reads of peers: all, one, and what the hot path asks of every request between domains, from memory for CACHE_S.

A peer row from the cache is shared: read it only. Services that change a row read it themselves, under its lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import datetime

from django.db.models import Q

from eventing.core.errors import NotFound
from eventing.core.names import DOMAIN_PATTERN
from eventing.peering.models import Peer
from eventing.peering.rules.peers import State

CACHE_S = 1.0  # how long a suspension may go unnoticed by another process; its tokens and requests are refused then


class _Cache:
    """All peers (at most PEERS_MAX + ASKED_MAX rows of a few hundred bytes), read at most once in CACHE_S."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: Mapping[str, Peer] = {}
        self._read_at = float("-inf")

    def rows(self) -> Mapping[str, Peer]:
        """The peers by name. Raises django.db.Error."""
        if time.monotonic() - self._read_at < CACHE_S:
            return self._rows
        with self._lock:
            if time.monotonic() - self._read_at >= CACHE_S:
                began_at = time.monotonic()
                rows = Peer.objects.defer("asked_document").order_by("name")
                self._rows = {row.name: row for row in rows}
                self._read_at = began_at  # whoever wrote later than that is not in it
            return self._rows

    def forget(self) -> None:
        self._read_at = float("-inf")


_cache = _Cache()


def peer_get(name: str) -> Peer | None:
    """The peer of this name, whatever its state, as it was at most CACHE_S ago; None if there is none. Reads only."""
    return _cache.rows().get(name)


def peers_active() -> list[Peer]:
    """The peers that events are exchanged with, by name, as it was at most CACHE_S ago."""
    return [row for row in _cache.rows().values() if row.active]


def peers_forget() -> None:
    """Have this process read the peers anew: it has just changed one."""
    _cache.forget()


def peer_row(name: str) -> Peer:
    """The peer as it is now. Raises NotFound."""
    row = Peer.objects.filter(name=name).first() if DOMAIN_PATTERN.fullmatch(name) else None
    if row is None:
        raise NotFound("There is no such peer. `herald peer list` shows all.")
    return row


def peers_all() -> list[Peer]:
    """All peers as they are now, by name; PEERS_MAX + ASKED_MAX bound how many there are."""
    return list(Peer.objects.defer("asked_document").order_by("name"))


def peers_to_greet(*, expected: Mapping[State, str], now: datetime, limit: int) -> list[str]:
    """The names of peers that a hello is due to: its time has come, or they have not been told what is so now.

    Args:
        expected: for each state, what `hello_told` is when nothing is new.
    """
    told = Q()
    for state, text in expected.items():
        told |= Q(state=state, hello_told=text)
    wanted = Peer.objects.filter(hello_at__isnull=False).filter(Q(hello_at__lte=now) | (Q(hello_failures=0) & ~told))
    return list(wanted.order_by("hello_failures", "hello_at").values_list("name", flat=True)[:limit])
