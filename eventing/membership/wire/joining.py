"""Asking a peer for sponsorship."""

from __future__ import annotations

from eventing.access.selectors.keys import signing_key
from eventing.core.errors import Conflict, PeerUnreachable
from eventing.core.principals import Principal
from eventing.membership.models import OverlayMembership
from eventing.membership.services.joining import overlay_join, require_administrator, require_record
from eventing.membership.services.own_record import own_identity
from eventing.membership.wire import messages
from eventing.membership.wire.codec import BadOverlayMessage
from eventing.peering.models import Peer
from eventing.peering.selectors.peers import peers_all
from eventing.peering.wire import client
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import SPONSOR

TIMEOUT_S = 10.0


def sponsor_named(reference: str) -> Peer:
    """Return the active peer of this name or address. Raises Conflict."""
    for row in peers_all():
        if reference.rstrip("/") in (row.name, row.url):
            if row.active:
                return row
            raise Conflict(
                f"{row.name} is not an active peer: it is {row.state}. Both administrators must approve the peering."
            )
    raise Conflict(f"{reference[:253]} is no peer. Add it first: herald peer add.")


def join(*, principal: Principal, reference: str) -> OverlayMembership:
    """Ask a peer, by its name or address, for sponsorship, and join with it. Raises ApplicationError."""
    require_administrator(principal)
    peer = sponsor_named(reference)
    own = own_identity()
    require_record(peer.name)
    request = messages.SponsorRequest(messages.VERSION, str(own["x"]))
    try:
        body = client.call(peer.url, peer.name, SPONSOR, messages.encode(request), TIMEOUT_S, key=signing_key())
        answer = messages.sponsor_answer_read(body)
    except PeerError as error:
        if error.kind == "refused":
            raise Conflict(f"{peer.name} does not sponsor this domain. {error.detail}") from None
        raise PeerUnreachable(f"{peer.name} could not be asked for sponsorship. {error.detail}") from None
    except BadOverlayMessage as error:
        raise Conflict(f"The answer of {peer.name} is not understood: {error}.") from None
    return overlay_join(
        principal=principal,
        sponsor=peer.name,
        fingerprint=peer.fingerprint,
        grant=answer.grant,
        chain=answer.chain,
    )
