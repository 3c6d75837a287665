"""Reads of partners: the domains that events are exchanged with, which are active peers and acquaintances.

A row from the cache is shared between threads: do not change it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TypeAlias

from eventing.core.container import per_process
from eventing.peering.models import Acquaintance, Peer
from eventing.peering.selectors.peers import peer_get, peers_active
from eventing.sql.remembered import remembered

Partner: TypeAlias = Peer | Acquaintance
CACHE_S = 1.0  # after this time the end of an acquaintance has effect in every process


class _Cache:
    """All acquaintances (at most ACQUAINTANCES_MAX rows), read at most once in CACHE_S."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: Mapping[str, Acquaintance] = {}
        self._read_at = float("-inf")

    def rows(self) -> Mapping[str, Acquaintance]:
        """Return the acquaintances by name. Raises django.db.Error."""
        if time.monotonic() - self._read_at < CACHE_S:
            return self._rows
        with self._lock:
            if time.monotonic() - self._read_at >= CACHE_S:
                began_at = time.monotonic()
                self._rows = {row.name: row for row in acquaintances_all()}
                self._read_at = began_at  # writes after this time are not in it
            return self._rows

    def forget(self) -> None:
        self._read_at = float("-inf")


_cache = per_process(_Cache)


def acquaintance_get(name: str) -> Acquaintance | None:
    """Return the acquaintance of this name, at most CACHE_S old; None if there is none, or it is a peer now. Read only."""
    row = _cache().rows().get(name)
    return row if row is not None and not _is_decided(name) else None


def acquaintances() -> list[Acquaintance]:
    """Return all acquaintances, by name, at most CACHE_S old."""
    return [row for row in _cache().rows().values() if not _is_decided(row.name)]


@remembered
def acquaintances_all() -> list[Acquaintance]:
    """Return the present rows of all acquaintances, by name; ACQUAINTANCES_MAX bounds their number."""
    return list(Acquaintance.objects.order_by("name"))


def acquaintances_forget() -> None:
    """Discard this process's cached acquaintances after a change."""
    _cache().forget()


def partner_get(name: str) -> Partner | None:
    """Return the active peer or acquaintance of this name, at most CACHE_S old; None if it is neither. Read only."""
    peer = peer_get(name)
    return peer if peer is not None and peer.active else acquaintance_get(name)


def partners() -> list[Partner]:
    """Return the active peers, then the acquaintances, each by name, at most CACHE_S old."""
    return [*peers_active(), *acquaintances()]


def is_suspended(name: str) -> bool:
    """Return whether an administrator suspended the domain as a peer: it is no acquaintance either."""
    peer = peer_get(name)
    return peer is not None and peer.suspended


def _is_decided(name: str) -> bool:
    peer = peer_get(name)
    return peer is not None and (peer.active or peer.suspended)
