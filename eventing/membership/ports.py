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
def own_load() -> DomainLoad:
    """Return this domain's load, measured now; `links` is left to the overlay. Raises redis.RedisError, DatabaseError."""
    raise NotImplementedError
