"""Requests of other domains for this domain's present readers, at /federation/v1/load (peering/wire/endpoints.py)."""

from __future__ import annotations

from django.utils import timezone

from eventing.core.errors import NotFound, Unavailable
from eventing.membership.ports import own_load
from eventing.peering.wire.endpoints import Sender
from eventing.replication.loads.messages import inquiry_read, statement
from eventing.replication.selectors.replicas import participants_of
from eventing.store.errors import RedisError


def load(sender: Sender, body: bytes) -> bytes:
    """Answer a domain that serves the RP, too. It learns nothing that this domain does not state in the overlay."""
    rp = inquiry_read(body)
    if sender.domain not in [one.domain for one in participants_of(rp, timezone.now())]:
        raise NotFound(f"No rendezvous point of this id is served at {sender.domain} and here.")
    try:
        return statement(own_load().sessions)
    except RedisError:
        raise Unavailable("The load of this domain is not known at the moment. Try again.", retry_after_s=2) from None
