"""Join client: this domain joins an RP of another, renews and ends its replica, and invites peers to hold one of its
RPs.

The life of a join: a domain signs its request and sends it to a peer that participates -> that peer is the home, or
relays the request towards the home (handler.py) -> the home checks signature and policy and answers with the descriptor
and all admissions, the new one included, all signed by itself -> the answer takes the same route back, and each relay
learns the new participant from it -> the joining domain reserves the history and creates its replica, or refuses as a
whole and sends a leave -> links are offered, and events are exchanged (announcements.py). A renewal is another join; a
leave is a join for 0 seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import ApplicationError, Conflict, Forbidden, InvalidRequest, NotFound, Unavailable
from eventing.core.ids import RP_ID_PATTERN
from eventing.core.principals import Principal
from eventing.core.signing import Signed
from eventing.peering.selectors.peers import peers_active
from eventing.peering.services.domain_documents import own_document
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.messages import VERSION
from eventing.replication.joining.announcements import announce_leave, link_participants
from eventing.replication.joining.messages import InviteRequest, JoinAnswer, JoinRequest, ReleaseRequest, encode
from eventing.replication.joining.next_hops import (
    ASK_S,
    INVITE_PATH,
    JOIN_PATH,
    RELEASE_PATH,
    NextHop,
    join_answer,
    next_hop_named,
    next_hop_to,
    next_hops_home,
    relayed_error,
)
from eventing.replication.selectors.replicas import replica_kept
from eventing.replication.services.replica_admissions import may_replicate
from eventing.replication.services.replica_ends import end_enqueue
from eventing.replication.services.replica_statements import document_take, documents_by_domain, statements_accept
from eventing.replication.services.replicas import history_wish, join_sign, replica_leave, replica_make, require_joiner
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import record_read
from eventing.rps.rules.statements import BadStatement, admission_read, unpacked
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get, rp_live
from eventing.rps.services.permission import require, require_home

INVITE_S = 25.0  # seconds within which the invited domain joins
ASKED_MAX = 8  # peers that are asked for an RP if none is named


def replica_join(
    *,
    rp: str,
    principal: Principal,
    via: str | None = None,
    lease_s: int | None = None,
    history: Mapping[str, int | None] | None = None,
) -> RendezvousPoint:
    """Join an RP of another domain; the replica exists when this returns. An existing one is renewed.

    Args:
        rp: its id.
        via: the domain to ask: a peer, the home or any with a replica, or the home itself if the directory identifies
            it; None for all peers, one after the other.
        lease_s: length of each lease, seconds; None for this domain's default. It is renewed until the replica is
            ended.
        history: bounds that are less than the home's; None for the home's, within this domain's bounds for one RP.

    Raises HeraldError: the refusal of the home, or of this domain.
    """
    require_joiner(principal)
    wish = history_wish(history)
    if RP_ID_PATTERN.fullmatch(rp) is None:
        raise InvalidRequest("rp must be the id of a rendezvous point: 26 letters and digits, as its home shows it.")
    if lease_s is not None and lease_s < 1:
        raise InvalidRequest("A lease must be at least 1 second.")
    there = rp_live(rp)
    if there is not None and not there.home:
        raise Conflict(f"The rendezvous point {rp} is this domain's own: its home needs no replica.")
    if there is not None:
        replica_renew(there, there.asked_s if lease_s is None else lease_s)
        return rendezvous_point_get(rp)
    next_hops = (
        [next_hop_named(via)]
        if via is not None
        else [NextHop(peer.name, peer.url) for peer in peers_active()[:ASKED_MAX]]
    )
    if not next_hops:
        raise Conflict("This domain has no active peer to join through. Add one: herald peer add URL")
    return join_along(rp, next_hops, principal, lease_s, wish)


def replica_end(*, rp: str, principal: Principal) -> None:
    """Leave an RP of another domain: the replica is deleted, and the home notified, later if it cannot be reached now."""
    next_hops = next_hops_home(replica_kept(rp), ())
    replica_leave(rp=rp, principal=principal)
    if not announce_leave(rp, next_hops):
        end_enqueue(rp=rp, peers=[next_hop.domain for next_hop in next_hops])


def replica_invite(*, reference: str, peer: str, principal: Principal) -> RendezvousPoint:
    """Invite a peer to hold a replica of an RP of this domain; the replica exists when this returns. Returns the RP.

    Raises HeraldError: the refusal of this domain, or of the peer.
    """
    row = rendezvous_point_get(reference)
    require(descriptor_of(row), principal, "administer")
    require_home(row)
    home_invite(row, peer)
    return rendezvous_point_get(row.id)


def home_invite(row: RendezvousPoint, peer: str, *, events_per_s: float = 0.0) -> None:
    """Have a peer join an RP of this domain.

    Args:
        events_per_s: events expected there; 0: not stated.

    Raises ApplicationError: the refusal of this domain, or of the peer.
    """
    next_hop = next_hop_to(peer)
    if row.descriptor is None:
        raise Conflict(f"The rendezvous point {row.id} was created before there were replicas. Create a new one.")
    if not may_replicate(row, peer):
        raise Forbidden(
            f'The policy does not let {peer} hold a replica. Add a rule first: {{"issuer": "peer:{peer}", "allow": '
            '["replicate"]}}.'
        )
    message = InviteRequest(VERSION, unpacked(row.descriptor), [own_document()], events_per_s)
    try:
        call(next_hop.url, next_hop.domain, INVITE_PATH, encode(message), INVITE_S)
    except PeerError as error:
        raise relayed_error(error, next_hop.domain) from None


def home_release(row: RendezvousPoint, peer: str) -> None:
    """Have a peer end a replica of an RP of this domain to which it was invited; it has ended when this returns.

    Raises ApplicationError: the refusal of the peer, which keeps the replica. A domain of an older version refuses always.
    """
    next_hop = next_hop_to(peer)
    message = encode(ReleaseRequest(VERSION, row.id))
    try:
        call(next_hop.url, next_hop.domain, RELEASE_PATH, message, INVITE_S)
    except PeerError as error:
        raise relayed_error(error, next_hop.domain) from None


def join_along(
    rp: str, next_hops: Sequence[NextHop], principal: Principal, lease_s: int | None, wish: Mapping[str, int | None]
) -> RendezvousPoint:
    """Join by the first of these routes that leads to an answer. Returns the replica, also if a concurrent join created
    it: a client that waits long asks again.

    Args:
        next_hops: next hops towards the home, in order of preference.
        lease_s: length of the lease, seconds; None for this domain's default.
        wish: the history to keep, from `history_wish`.

    Raises ApplicationError.
    """
    joined_at = timezone.now()
    try:
        answer, next_hop = _ask(join_sign(rp=rp, lease_s=lease_s, now=joined_at), next_hops)
    except Conflict:
        if replica_kept(rp) is not None:  # the home has answered a later join
            return rendezvous_point_get(rp)
        raise
    documents = documents_by_domain(answer.documents)
    try:
        row = replica_make(
            rp=rp,
            principal=principal,
            via=next_hop.domain,
            lease_s=lease_s,
            history=wish,
            descriptor=answer.descriptor,
            admissions=answer.admissions,
            homes=record_read(answer.homes),
            domains=documents,
        )
    except BadStatement as error:
        misbehaviour_note("forged", carrier=next_hop.domain, rp=rp, detail=str(error))
        raise InvalidRequest(f"The answer of {next_hop.domain} is invalid: {error}") from None
    except ApplicationError:
        if replica_kept(rp) is None:
            announce_leave(rp, [next_hop], joined_at=joined_at)  # admitted, but without room here
            raise
        _renewed(rp, answer, next_hop, joined_at)
        return rendezvous_point_get(rp)
    _documents_of_admitted(answer.admissions, documents)
    link_participants(rp)
    return row


def replica_renew(row: RendezvousPoint, lease_s: int | None, timeout_s: float = ASK_S) -> None:
    """Join again: the lease counts from now. Raises ApplicationError; NotFound if the replica ended meanwhile."""
    joined_at = timezone.now()
    answer, next_hop = _ask(join_sign(rp=row.id, lease_s=lease_s, now=joined_at), next_hops_home(row, ()), timeout_s)
    _renewed(row.id, answer, next_hop, joined_at)


def _renewed(rp: str, answer: JoinAnswer, next_hop: NextHop, joined_at: datetime) -> None:
    """Apply the answer to a join whose replica existed already. Raises Unavailable, NotFound."""
    refused = statements_accept(
        rp,
        [answer.descriptor, *answer.admissions],
        carrier=next_hop.domain,
        domains=answer.documents,
        homes=answer.homes,
    )
    if refused:
        raise Unavailable(f"The answer of {next_hop.domain} is invalid: {refused[0]}", retry_after_s=60)
    if replica_kept(rp) is None:
        announce_leave(rp, [next_hop], joined_at=joined_at)  # the home may have received the leave before this join
        raise NotFound(f"The replica of {rp} ended while it was renewed.")
    link_participants(rp)


def _ask(statement: Signed, next_hops: Sequence[NextHop], timeout_s: float = ASK_S) -> tuple[JoinAnswer, NextHop]:
    """Send a signed join along the first route that leads to an answer. Raises the last route's refusal."""
    message = encode(JoinRequest(VERSION, statement, [own_document()], [config().domain], True))
    refusal: ApplicationError = Unavailable(
        "No peer that participates in the rendezvous point can be reached now. Try again later.", retry_after_s=30
    )
    until = time.monotonic() + 2 * timeout_s  # for all of them: a client waits for this
    for next_hop in next_hops:
        left_s = until - time.monotonic()
        if left_s <= 0:
            break
        try:
            return join_answer(_call(next_hop, message, min(timeout_s, left_s)), next_hop), next_hop
        except PeerError as error:
            if error.kind == "refused" and error.code != NotFound.code:
                raise relayed_error(error, next_hop.domain) from None
            if isinstance(refusal, Unavailable):
                refusal = relayed_error(error, next_hop.domain)
    raise refusal


def _call(next_hop: NextHop, message: bytes, timeout_s: float) -> bytes:
    """Send a join; once more where the other domain asks to wait shortly, as one that fetches our document first does.

    Raises PeerError.
    """
    until = time.monotonic() + timeout_s
    try:
        return call(next_hop.url, next_hop.domain, JOIN_PATH, message, timeout_s)
    except PeerError as error:
        left_s = until - time.monotonic()
        if error.kind != "busy" or error.status != Unavailable.status or not 0 < (error.retry_after_s or 0) < left_s:
            raise
        time.sleep(error.retry_after_s or 0)
    return call(next_hop.url, next_hop.domain, JOIN_PATH, message, max(1.0, until - time.monotonic()))


def _documents_of_admitted(admissions: Iterable[Signed], documents: Mapping[str, Signed]) -> None:
    """Store the documents of other participants for which the home vouches; its statement was verified."""
    for statement in admissions:
        admission = admission_read(statement)
        document_take(documents, admission.domain, admission.fingerprint, timezone.now())
