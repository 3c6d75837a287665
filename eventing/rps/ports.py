"""Ports and hooks of the subject of RPs (core/ports.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from eventing.core.events.positions import LogState
from eventing.core.ports import Hook, Port
from eventing.rps.models import RendezvousPoint
from eventing.rps.shapes import ParticipantAnswer

if TYPE_CHECKING:
    from eventing.outbox.services import Outbox  # which imports the selectors of this subject


@Port
def links_of_rps(rps: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the peers with which the events of each RP are exchanged, ordered by name; RPs without links are left out."""
    raise NotImplementedError


@Port
def subscriptions_ending_with(rp: str) -> int:
    """Count the durable subscriptions that end with the RP."""
    raise NotImplementedError


@Port
def seal_next(rp: str) -> bool:
    """Seal one run of this domain's events at the RP. Returns True if more is unsealed. Raises redis.RedisError."""
    raise NotImplementedError


@Hook
def policy_changed(row: RendezvousPoint, outbox: Outbox) -> None:
    """Apply the new policy of an own RP to what was granted by the old one, within the caller's transaction."""


@Hook
def rp_ending(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """Handle the end of an RP, within the caller's transaction, before its row is removed.

    Args:
        reason: as in the RP's `deleted` event: "deleted", "lease-expired", or of a replica "left", "ended", "refused".
    """


@Port
def replicas_shown(row: RendezvousPoint) -> list[ParticipantAnswer]:
    """Describe the participants of an RP for answers, the home first, including this domain."""
    raise NotImplementedError


@Port
def lease_notice(row: RendezvousPoint, log: LogState | None) -> str | None:
    """Describe the consequences of the end of an RP's lease, in a sentence for people; None for a replica, whose domain
    renews it."""
    raise NotImplementedError


@Port
def domain_fingerprint() -> str | None:
    """Return the kid of this domain's first key, by which other domains know it; None before the domain has a key."""
    raise NotImplementedError


@Port
def domain_document_serial() -> int:
    """Return the serial of this domain's latest domain document; 0 before there is one."""
    raise NotImplementedError


@Port
def discovery_field(rp: str) -> str:
    """Return the field `Link` of answers about an RP, by which WebSub subscribers find the hub and the topic; empty for none."""
    raise NotImplementedError
