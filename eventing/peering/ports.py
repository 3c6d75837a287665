"""Ports of peering to other subjects (core/ports.py)."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from eventing.core.ports import Hook, Port


class DirectoryRecord(NamedTuple):
    """The part of a domain's record in the federation's signed directory that verifies and reaches the domain.

    Attributes:
        url: address of its gateways; empty for a domain that only calls others.
        fingerprint: kid of its first key.
        sponsor: the domain that vouches for it; empty where unknown.
    """

    url: str
    fingerprint: str
    sponsor: str = ""


@Port
def directory_record(name: str) -> DirectoryRecord | None:
    """Return the valid record of a domain in the federation's directory; None if there is none, or it is withdrawn.

    Asked for each request of a domain that is no peer, so from memory or by one indexed read.
    """
    raise NotImplementedError


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
