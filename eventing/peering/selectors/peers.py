"""Reads of peers: all, one, and the cached reads (CACHE_S) that the hot path makes for each request between domains.

A peer row from the cache is shared between threads: do not change it. Services that change a row read it themselves,
under its lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import datetime

from django.db.models import Q

from eventing.core.container import per_process
from eventing.core.errors import NotFound
from eventing.core.names import DOMAIN_PATTERN
from eventing.peering.models import Peer
from eventing.peering.rules.peers import PeeringState
from eventing.sql.remembered import remembered

CACHE_S = 1.0  # after this time a suspension has effect in every process: the peer's tokens and requests are refused


class _Cache:
    """All peers (at most PEERS_MAX + ASKED_MAX rows of a few hundred bytes), read at most once in CACHE_S."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: Mapping[str, Peer] = {}
        self._read_at = float("-inf")

    def rows(self) -> Mapping[str, Peer]:
        """Return the peers by name. Raises django.db.Error."""
        if time.monotonic() - self._read_at < CACHE_S:
            return self._rows
        with self._lock:
            if time.monotonic() - self._read_at >= CACHE_S:
                began_at = time.monotonic()
                self._rows = {row.name: row for row in peers_all()}
                self._read_at = began_at  # writes after this time are not in it
            return self._rows

    def forget(self) -> None:
        self._read_at = float("-inf")


_cache = per_process(_Cache)


def peer_get(name: str) -> Peer | None:
    """Return the peer of this name, in any state, at most CACHE_S old; None if there is none. Read only."""
    return _cache().rows().get(name)


def peers_active() -> list[Peer]:
    """Return the peers that events are exchanged with, by name, at most CACHE_S old."""
    return [row for row in _cache().rows().values() if row.active]


def peers_forget() -> None:
    """Discard this process's cached peers after a change."""
    _cache().forget()


def peer_found(name: str) -> Peer | None:
    """Return the present row of the peer; None if there is none."""
    return Peer.objects.filter(name=name).first()


def peer_row(name: str) -> Peer:
    """Return the present row of the peer. Raises NotFound."""
    row = peer_found(name) if DOMAIN_PATTERN.fullmatch(name) else None
    if row is None:
        raise NotFound("There is no such peer. `herald peer list` shows all peers.")
    return row


@remembered
def peers_all() -> list[Peer]:
    """Return the present rows of all peers, by name; PEERS_MAX + ASKED_MAX bound their number."""
    return list(Peer.objects.defer("asked_document").order_by("name"))


def peers_to_greet(*, expected: Mapping[PeeringState, str], now: datetime, limit: int) -> list[str]:
    """Return the names of peers that a hello is due to: by time, or because the present state is not confirmed yet.

    Args:
        expected: for each state, the value of `hello_told` when the peer has confirmed everything.
    """
    told = Q()
    for state, text in expected.items():
        told |= Q(state=state, hello_told=text)
    wanted = Peer.objects.filter(hello_at__isnull=False).filter(Q(hello_at__lte=now) | (Q(hello_failures=0) & ~told))
    return list(wanted.order_by("hello_failures", "hello_at").values_list("name", flat=True)[:limit])
