"""Hooks of membership for other subjects (core/ports.py)."""

from __future__ import annotations

from eventing.core.ports import Hook, Port
from eventing.overlay.load_rows import DomainLoad


@Hook
def link_changed(peer: str, up: bool, reason: str) -> None:
    """Take notice that an overlay link with a domain stands, or ended. Called in the process that runs the overlay, on its thread, after
    the change was stored; must not block.
    """
    raise NotImplementedError


@Port
def process_stopping() -> bool:
    """Return whether this process ends, so that the overlay must be left to another one."""
    raise NotImplementedError


@Port
def links_measured() -> bytes:
    """Return this domain's row of measured links (overlay/link_rows.py); empty if it takes part in no RP with a target
    reliability. Raises redis.RedisError, DatabaseError.
    """
    raise NotImplementedError


@Port
def route_participants() -> list[str]:
    """Return the other domains that take part in an RP with a target reliability of which this domain has a part. Raises
    DatabaseError.
    """
    raise NotImplementedError


@Port
def own_load() -> DomainLoad:
    """Return this domain's load, measured now; `links` is left to the overlay. Raises redis.RedisError, DatabaseError."""
    raise NotImplementedError
