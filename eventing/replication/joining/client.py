"""Asking: this domain joins an RP of another, renews and ends its replica, and invites peers to hold one of ours.

The life of a join: a domain signs what it wants and sends it to a peer that participates -> that one is the home, or
relays it towards the home (handler.py) -> the home checks signature and policy and answers with the descriptor
and all admissions, the new one among them, all signed by itself -> the answer goes back the same way, and whoever relayed
it learns the new participant from it -> the joining domain reserves the history and has its replica, or is refused whole
and says that it left -> links are offered, and events flow (announcements.py). A renewal is a join again; a leave is a
join for no time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, HeraldError, InvalidRequest, NotFound, Unavailable
from eventing.core.ids import RP_ID_PATTERN
from eventing.core.principals import Principal
from eventing.core.signing import Signed
from eventing.peering.selectors.peers import peers_active
from eventing.peering.services.domain_documents import own_document
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.messages import VERSION
from eventing.replication.joining.announcements import link_participants, tell_leave
from eventing.replication.joining.messages import InviteRequest, JoinAnswer, JoinRequest, encode
from eventing.replication.joining.next_hops import (
    ASK_S,
    INVITE_PATH,
    JOIN_PATH,
    Way,
    as_told,
    join_answer,
    way_to,
    ways_home,
)
from eventing.replication.services.replica_admissions import may_replicate
from eventing.replication.services.replica_ends import end_tell
from eventing.replication.services.replica_statements import document_take, documents_by_domain, statements_accept
from eventing.replication.services.replicas import history_wish, join_sign, replica_leave, replica_make, require_joiner
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import BadStatement, admission_read, descriptor_read, unpacked
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require, require_home

INVITE_S = 25.0  # the invited domain joins within it
ASKED_MAX = 8  # peers that are asked for an RP when none is named


def replica_join(
    *,
    rp: str,
    principal: Principal,
    via: str | None = None,
    lease_s: int | None = None,
    history: Mapping[str, int | None] | None = None,
) -> RendezvousPoint:
    """Join an RP of another domain: our replica of it, there when this returns. One that is there is renewed.

    Args:
        rp: its id.
        via: the peer to ask, the home or any that has a replica; None for our peers one after the other.
        lease_s: how long each lease is to be, seconds; None for this domain's default. It is renewed until we leave.
        history: bounds that are less than the home's; None for the home's, as far as one RP may take here.

    Raises HeraldError: what the home, or this domain, refuses it for.
    """
    require_joiner(principal)
    wish = history_wish(history)
    if RP_ID_PATTERN.fullmatch(rp) is None:
        raise InvalidRequest("rp is the id of a rendezvous point: 26 letters and digits, as its home shows it.")
    if lease_s is not None and lease_s < 1:
        raise InvalidRequest("A lease is at least 1 second.")
    there = RendezvousPoint.objects.filter(id=rp, expires_at__gt=timezone.now()).first()
    if there is not None and not there.home:
        raise Conflict(f"The rendezvous point {rp} is this domain's own: its home needs no replica.")
    if there is not None:
        replica_renew(there, there.asked_s if lease_s is None else lease_s)
        return rendezvous_point_get(rp)
    ways = [way_to(via)] if via is not None else [Way(peer.name, peer.url) for peer in peers_active()[:ASKED_MAX]]
    if not ways:
        raise Conflict("This domain has no active peer to join through: herald peer add URL.")
    return join_along(rp, ways, principal, lease_s, wish)


def replica_end(*, rp: str, principal: Principal) -> None:
    """Leave an RP of another domain: our replica is gone, and the home is told, later if it cannot be reached now."""
    ways = ways_home(RendezvousPoint.objects.filter(id=rp).exclude(home="").first(), ())
    replica_leave(rp=rp, principal=principal)
    if not tell_leave(rp, ways):
        end_tell(rp=rp, peers=[way.domain for way in ways])


def replica_invite(*, reference: str, peer: str, principal: Principal) -> RendezvousPoint:
    """Invite a peer to hold a replica of an RP of ours; it holds one when this returns. Returns the RP.

    Raises HeraldError: what we, or the peer, refuse it for.
    """
    row = rendezvous_point_get(reference)
    require(descriptor_of(row), principal, "administer")
    require_home(row)
    way = way_to(peer)
    if row.descriptor is None:
        raise Conflict(f"The rendezvous point {row.id} was created before there were replicas. Create a new one.")
    if not may_replicate(row, peer):
        raise Forbidden(
            f'The policy does not let {peer} hold a replica. Add a rule first: {{"issuer": "peer:{peer}", "allow": ["replicate"]}}.'
        )
    message = InviteRequest(VERSION, unpacked(row.descriptor), [own_document()])
    try:
        call(way.url, way.domain, INVITE_PATH, encode(message), INVITE_S)
    except PeerError as error:
        raise as_told(error, way.domain) from None
    return rendezvous_point_get(row.id)


def join_along(
    rp: str, ways: Sequence[Way], principal: Principal, lease_s: int | None, wish: Mapping[str, int | None]
) -> RendezvousPoint:
    """Join by the first of these ways that leads to an answer. The replica, there when this returns, also if another join
    made it meanwhile: whoever waits long for an answer asks again. Raises HeraldError."""
    joined_at = timezone.now()
    try:
        answer, way = _ask(join_sign(rp=rp, lease_s=lease_s, now=joined_at), ways)
    except Conflict:
        if _is_replica(rp):  # the home has answered a later join of ours
            return rendezvous_point_get(rp)
        raise
    documents = documents_by_domain(answer.documents)
    try:
        descriptor = descriptor_read(answer.descriptor)
        document_take(documents, descriptor.home, str(descriptor.genesis["key"]), timezone.now())
        row = replica_make(
            rp=rp,
            principal=principal,
            via=way.domain,
            lease_s=lease_s,
            history=wish,
            descriptor=answer.descriptor,
            admissions=answer.admissions,
        )
    except BadStatement as error:
        misbehaviour_note("forged", carrier=way.domain, rp=rp, detail=str(error))
        raise InvalidRequest(f"What {way.domain} answered does not hold: {error}") from None
    except HeraldError:
        if not _is_replica(rp):
            tell_leave(rp, [way], joined_at=joined_at)  # we were admitted, and have no place for it
            raise
        _renewed(rp, answer, way, joined_at)
        return rendezvous_point_get(rp)
    _documents_of_admitted(answer.admissions, documents)
    link_participants(rp)
    return row


def replica_renew(row: RendezvousPoint, lease_s: int | None, timeout_s: float = ASK_S) -> None:
    """Join again: the lease counts from now. Raises HeraldError; NotFound if the replica ended meanwhile."""
    joined_at = timezone.now()
    answer, way = _ask(join_sign(rp=row.id, lease_s=lease_s, now=joined_at), ways_home(row, ()), timeout_s)
    _renewed(row.id, answer, way, joined_at)


def _renewed(rp: str, answer: JoinAnswer, way: Way, joined_at: datetime) -> None:
    """Take over what a join was answered with whose replica was there already. Raises Unavailable, NotFound."""
    refused = statements_accept(
        rp, [answer.descriptor, *answer.admissions], carrier=way.domain, domains=answer.documents
    )
    if refused:
        raise Unavailable(f"What {way.domain} answered does not hold: {refused[0]}", retry_after_s=60)
    if not _is_replica(rp):
        tell_leave(rp, [way], joined_at=joined_at)  # the home may have heard of our leaving before this join
        raise NotFound(f"The replica of {rp} was left, or has ended, while it was renewed.")
    link_participants(rp)


def _is_replica(rp: str) -> bool:
    return RendezvousPoint.objects.filter(id=rp).exclude(home="").exists()


def _ask(statement: Signed, ways: Sequence[Way], timeout_s: float = ASK_S) -> tuple[JoinAnswer, Way]:
    """Send a join of ours along the first way that leads to an answer. Raises what the last one refused it for."""
    message = encode(JoinRequest(VERSION, statement, [own_document()], [config().domain]))
    refusal: HeraldError = Unavailable(
        "No peer that participates in the rendezvous point can be reached now. Try again later.", retry_after_s=30
    )
    until = time.monotonic() + 2 * timeout_s  # for all of them: somebody waits for this
    for way in ways:
        left_s = until - time.monotonic()
        if left_s <= 0:
            break
        try:
            return join_answer(call(way.url, way.domain, JOIN_PATH, message, min(timeout_s, left_s)), way), way
        except PeerError as error:
            if error.kind == "refused" and error.code != NotFound.code:
                raise as_told(error, way.domain) from None
            if isinstance(refusal, Unavailable):
                refusal = as_told(error, way.domain)
    raise refusal


def _documents_of_admitted(admissions: Iterable[Signed], documents: Mapping[str, Signed]) -> None:
    """Take the documents of other participants, by the home's word, which was verified."""
    for statement in admissions:
        admission = admission_read(statement)
        document_take(documents, admission.domain, admission.fingerprint, timezone.now())
