"""Operators' actions on the exchange with a peer: retry at once, offer events again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec
from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.conf import config
from eventing.core.errors import Conflict, InvalidCursor, NotFound
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.log import control, federated, watermarks
from eventing.log.scripts import OWN, NoLog
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.overlay.link_refusals import LinkRefusals
from eventing.overlay.link_state import Link
from eventing.peering.models import Peer
from eventing.peering.selectors.peers import peer_row
from eventing.peering.services.peer_operating import peer_retry
from eventing.peering.wire import hello
from eventing.replication.forwarding import wakeups
from eventing.replication.selectors.replicas import linked, links_of_peer
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require
from eventing.store import peer_state

EARLIEST = "earliest"


def retry(*, principal: Principal, name: str, now: datetime | None = None) -> Peer:
    """Retry a peer now: with a hello, whose outcome is in the answer, and with the waiting events.

    Raises Forbidden, NotFound, Conflict (it is suspended, or only asks), redis.RedisError.
    """
    row = peer_retry(principal=principal, name=name, now=now)
    if row.active:
        peer_state.pause_end(name)
        wakeups.wake(name, links_of_peer(name), anyway=True)
    return hello.greet(name) or row


def replay(
    *, principal: Principal, name: str, reference: str, after: str = EARLIEST, now: datetime | None = None
) -> None:
    """Offer a peer the events of an RP after a cursor again, as if it had stated to hold no more than that.

    For a peer that lost events after it had acknowledged them. Events that it states to hold in its answer are not sent
    any further; it never stores an event twice.

    Args:
        principal: an administrator or operator.
        reference: id or name of an RP that is shared with the peer.
        after: a cursor of this domain's log in its present epoch, or EARLIEST for all held events.

    Raises Forbidden, NotFound, Gone, Conflict (the peer is not active), InvalidCursor, redis.RedisError.
    """
    now = now or timezone.now()
    require_operator(principal)
    peer = peer_row(name)
    if not peer.active:
        raise Conflict(f"{name} is {peer.state}: nothing is sent to it.", state=peer.state)
    row = rendezvous_point_get(reference, now=now)
    require(descriptor_of(row), principal, "administer")
    if not linked(row.id, name):
        raise NotFound(f"{name} does not exchange the events of {reference} with this domain.")
    held = _vector(row.id, after)
    with change(now) as outbox:
        data = {"peer": name, "rp": row.id, "after": after, "by": principal.identity}
        outbox.event(events.PEER_REPLAYED, DOMAIN_ADMIN, data)
        outbox.act("peer.replay", principal, "peer", name, rp=row.id, after=after[:100])
    peer_state.replay_note(name, row.id)
    watermarks.links_change(name, [row.id], lambda rp, link: lowered(link, held))
    wakeups.wake(name, [row.id], anyway=True)


def lowered(link: Link, held: Mapping[str, int]) -> Link:
    """Return the link as if its peer held no more than `held`, with nothing deferred or left to other links."""
    theirs = {feed: min(last, held.get(feed, 0)) for feed, last in link.theirs.items()}
    replace = msgspec.structs.replace
    return replace(
        link,
        peer=replace(link.peer, theirs=theirs),
        tree=replace(link.tree, lazy=frozenset()),
        refusals=LinkRefusals(unsendable=link.refusals.unsendable),
    )


def _vector(rp: str, after: str) -> dict[str, int]:
    """Return the vector up to a cursor, by feed key."""
    head = federated.heads([rp])[0]
    if head is None:
        raise NotFound("There is no event to send again.")
    offset = head.first - 1
    if after != EARLIEST:
        cursor = control.continued(rp, Cursor.parse(after), head.present)
        if cursor.epoch != head.present:
            raise InvalidCursor(f"The log's epoch is {head.present} now; read again to get a cursor of it.")
        if cursor.offset >= head.next:
            raise InvalidCursor(f"The last event has offset {head.next - 1}.")
        offset = max(offset, cursor.offset)
    try:
        found = federated.vector_at(rp, offset)
    except NoLog:
        found = None
    if found is None:
        raise InvalidCursor("The history was trimmed past this place. Read again to get a present cursor.")
    own = Feed(config().domain, head.epoch).key
    return {own if feed == OWN else feed: sequence for feed, sequence in found.items()}
