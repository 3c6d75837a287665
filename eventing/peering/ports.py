"""Ports of peering to other subjects (core/ports.py)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from eventing.core.ports import Hook, Port
from eventing.peering.rules.misbehaviour import Kind


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


@Port
def overlay_keys(domain: str, anew: bool) -> Mapping[str, Mapping[str, Any]]:
    """Return the keys with which a domain of the directory signs requests, by kid; empty if it is not in the directory, or overlay
    requests of domains that are no peers are not accepted here. May be some seconds old unless `anew`.
    """
    raise NotImplementedError


@Port
def overlay_introduction(domain: str, body: bytes) -> Mapping[str, Mapping[str, Any]]:
    """Return the keys of a domain by the records in the body of its first overlay request, after they were verified.

    Raises ApplicationError: no overlay runs here, the domain is not admitted, or its records are not genuine.
    """
    raise NotImplementedError


@Hook
def misbehaviour_noted(kind: Kind, carrier: str, rp: str, count: int) -> None:
    """Take notice of misbehaviour of a carrier, counted in this process; called on the thread that noted it. Must not block or raise.

    Args:
        rp: id of the rendezvous point concerned; empty: none.
    """
