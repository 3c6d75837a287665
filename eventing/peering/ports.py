"""Ports of peering to other subjects (core/ports.py)."""

from __future__ import annotations

from datetime import datetime

from eventing.core.ports import Hook, Port


@Port
def domains_admitted(now: datetime) -> set[str]:
    """Return the domains that are admitted to any RP here now, as replicas."""
    raise NotImplementedError


@Port
def ever_admitted(domain: str) -> bool:
    """Return whether an admission of the domain is stored, including expired ones."""
    raise NotImplementedError


@Hook
def peer_removed(peer: str) -> None:
    """Delete the forwarding state of a removed peer. Raises redis.RedisError."""
