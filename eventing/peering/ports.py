"""What peering asks of other subjects, and tells them (core/ports.py)."""

from __future__ import annotations

from datetime import datetime

from eventing.core.ports import Hook, Port


@Port
def domains_admitted(now: datetime) -> set[str]:
    """The domains that are admitted to any RP here now, as its replicas."""
    raise NotImplementedError


@Port
def ever_admitted(domain: str) -> bool:
    """Whether an admission of the domain is kept, one that has ended included."""
    raise NotImplementedError


@Hook
def peer_removed(peer: str) -> None:
    """Drop what is noted for forwarding to a domain that is no peer any more. Raises redis.RedisError."""
