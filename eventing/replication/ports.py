"""Ports of replication: to the process that it runs in, and to the subject that decides about invitations (core/ports.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from eventing.core.ports import Hook, Port

if TYPE_CHECKING:  # the forwarder imports this module before Django is set up
    from eventing.outbox.services import Outbox


@Port
def forward_start(peer: str, /) -> None:
    """Start the task that forwards to the peer. Not connected: no task is started, and the sweep forwards."""


@Port
def forwards_waiting() -> int:
    """Return how many such tasks wait for a thread. Not connected: unknown. Raises redis.RedisError."""
    raise NotImplementedError


@Port
def draining() -> bool:
    """Return whether this domain hands over what it can, and takes over nothing. Not connected: it does not."""
    return False


@Hook
def homes_contradicted(rp: str, term: int, detail: str, outbox: Outbox, /) -> None:
    """Report a new proof that an RP was handed over twice, within the caller's transaction.

    Args:
        detail: one sentence for each accused domain.
    """


class InvitationOffered(NamedTuple):
    """An invitation by a verified home.

    Attributes:
        home: the inviting domain.
        host: an administrator here trusts it with `host`.
        history_bytes: history of the RP; None: it has no bound by bytes.
        events_per_s: expected; None: not stated.
    """

    home: str
    rp: str
    host: bool
    history_bytes: int | None
    events_per_s: float | None


@Port
def invitation_decide(offered: InvitationOffered, /) -> int:
    """Decide about an invitation. Returns the bytes of history that the replica may take. Raises Forbidden, Unavailable."""
    raise NotImplementedError
