"""Handlers of /federation/v1/overlay and /federation/v1/sponsor, and the keys of those who call there.

A gateway checks form and bounds of the messages, hands them to the process that runs the overlay (store/overlay_queues.py), and answers
with what waits for the sender. So the answer is also a sign that this process is alive: without it, the sender is asked to try later.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from eventing.conf import config
from eventing.core.errors import Forbidden, InvalidRequest, NotFound, Unavailable
from eventing.membership.rules.records import keys_of
from eventing.membership.selectors import directory
from eventing.membership.selectors.membership import membership_get
from eventing.membership.services.sponsorships import sponsorship_grant
from eventing.membership.wire import codec, messages
from eventing.membership.wire.codec import BadOverlayMessage
from eventing.membership.wire.verification import chain_verified
from eventing.overlay.directory_messages import Records
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import BadMessage
from eventing.peering.wire.refusals import count_newcomer
from eventing.store.overlay_queues import OverlayBusy, OverlayNotRunning, overlay_receive

RETRY_S = 5
PEERS_ONLY = "peers"
"""HERALD_OVERLAY under which only approved peers are answered."""


def overlay(sender: Sender, body: bytes) -> bytes:
    """Take in overlay messages; return those that wait for the sender. Raises ApplicationError, BadMessage."""
    try:
        request = messages.request_read(body)
        found = codec.decode(request.messages)
    except BadOverlayMessage as error:
        raise BadMessage(f"The overlay messages are not understood: {error}.") from None
    given = bytes(request.messages)
    if request.chain:  # verified before for domains that are no peers; the machine verifies what it takes in
        given = codec.encode([Records(tuple(reversed(request.chain))), *found])
    try:
        waiting = overlay_receive(sender.domain, given)
    except OverlayNotRunning:
        if membership_get() is None:
            raise _absent() from None
        raise Unavailable("The overlay is not running at the moment. Try again.", retry_after_s=RETRY_S) from None
    except OverlayBusy:
        raise Unavailable("Too many overlay messages wait here. Try again.", retry_after_s=RETRY_S) from None
    return messages.answer_encode(waiting)


def overlay_keys(domain: str, anew: bool) -> Mapping[str, Mapping[str, Any]]:
    """Return the keys of a domain of the directory; see peering/ports.py."""
    return {} if config().overlay == PEERS_ONLY else directory.directory_keys(domain, anew=anew)


def overlay_introduction(domain: str, body: bytes) -> Mapping[str, Mapping[str, Any]]:
    """Verify the records that a domain presents; see peering/ports.py. Raises ApplicationError."""
    if membership_get() is None:
        raise _absent()
    if config().overlay == PEERS_ONLY:
        raise Forbidden(f"{config().domain} has overlay links with approved peers only.")
    try:
        chain = messages.request_read(body).chain
    except BadOverlayMessage as error:
        raise InvalidRequest(f"The overlay request is not understood: {error}.") from None
    if not chain or chain[0].domain != domain:
        raise Forbidden(f"{domain} is not in the directory here. Present its record.")
    count_newcomer()
    chain_verified(chain, time.time())
    return keys_of(chain[0])


def sponsor(sender: Sender, body: bytes) -> bytes:
    """Answer a peer's request for sponsorship. Raises ApplicationError, BadMessage."""
    try:
        request = messages.sponsor_request_read(body)
    except BadOverlayMessage as error:
        raise BadMessage(f"The request for sponsorship is not understood: {error}.") from None
    if sender.peer is None:
        raise Forbidden(f"{sender.domain} is not an active peer of {config().domain}.")
    grant = sponsorship_grant(newcomer=sender.domain, key=request.key, fingerprint=sender.peer.fingerprint)
    chain = directory.chain_of(config().domain)
    return messages.encode(messages.SponsorAnswer(messages.VERSION, grant, chain))


def _absent() -> NotFound:
    return NotFound(f"{config().domain} takes part in no overlay.")
