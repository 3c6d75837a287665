"""Requests of other domains about links of a region, at /federation/v1/region (peering/wire/endpoints.py)."""

from __future__ import annotations

from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Forbidden, NotFound, Unavailable
from eventing.peering.wire.endpoints import Sender
from eventing.replication.joining.messages import DONE
from eventing.replication.regions.messages import SentLinkMessage, encode, link_message_read
from eventing.replication.selectors.forwarding import participations
from eventing.store.region_messages import region_message_put


def region(sender: Sender, body: bytes) -> bytes:
    """Pass a message on to the process that keeps the views, if both domains take part in its RP at this moment.

    A peer's is ignored: peers are linked without messages, and the sender does not know yet that this domain is one.
    """
    message = link_message_read(body)
    if sender.peer is not None:
        return DONE
    if config().overlay == "peers":
        raise Forbidden(f"{config().domain} exchanges events with peers only.")
    if not _both_take_part(message.rp, sender.domain):
        raise NotFound(f"{sender.domain} and {config().domain} do not both take part in such a rendezvous point.")
    if not region_message_put(encode(SentLinkMessage(sender.domain, message))):
        raise Unavailable("Too many messages about links wait here. Try again.", retry_after_s=2)
    return DONE


def _both_take_part(rp: str, domain: str) -> bool:
    now = timezone.now()
    for fresh in (False, True):  # the admission may be a moment old
        who = participations([rp], fresh=fresh)[rp]
        if who.takes_part(config().domain, now) and who.takes_part(domain, now):
            return True
    return False
