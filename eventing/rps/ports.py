"""What the subject of RPs asks of others, and tells them (core/ports.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from eventing.core.events.positions import LogState
from eventing.core.ports import Hook, Port
from eventing.rps.models import RendezvousPoint

if TYPE_CHECKING:
    from eventing.outbox.services import Outbox  # which imports the selectors of this subject


@Port
def links_of_rps(rps: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The peers that the events of each RP go to and come from, in the order of their names; RPs without links are not in it."""
    raise NotImplementedError


@Port
def seal_next(rp: str) -> bool:
    """Seal one run of what this domain has published at the RP. Returns whether more is unsealed. Raises redis.RedisError."""
    raise NotImplementedError


@Hook
def policy_changed(row: RendezvousPoint, outbox: Outbox) -> None:
    """Apply the new policy of an RP of ours to what was granted by the old one, within the caller's transaction."""


@Hook
def rp_ending(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """Settle what ends with an RP, within the caller's transaction, before its row goes.

    Args:
        reason: as the RP's `deleted` event says it: "deleted", "lease-expired", or of a replica "left", "ended", "refused".
    """


@Port
def replicas_shown(row: RendezvousPoint) -> list[dict[str, Any]]:
    """The participants of an RP as answers show them, the home first, this domain among them."""
    raise NotImplementedError


@Port
def lease_notice(row: RendezvousPoint, log: LogState | None) -> str | None:
    """What ends with the lease of an RP, in a sentence for people; None for a replica, whose domain renews it."""
    raise NotImplementedError


@Port
def domain_fingerprint() -> str | None:
    """The kid of this domain's first key, by which other domains know it; None before the domain has a key."""
    raise NotImplementedError


@Port
def domain_document_serial() -> int:
    """The serial of this domain's latest domain document; 0 before there is one."""
    raise NotImplementedError
