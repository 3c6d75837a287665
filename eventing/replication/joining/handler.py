"""Join handler: answers other domains' requests about replicas at /federation/v1/join, leave, invite and release (endpoints.py).

A join or leave is admitted at the home and relayed elsewhere; an invitation is accepted if the standing policy
allows it. No relay can change anything; invalid statements are counted and not relayed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unavailable
from eventing.core.events.feeds import Feed
from eventing.core.principals import Principal
from eventing.core.signing import Signed
from eventing.log import federated
from eventing.log.watermarks import links_read
from eventing.peering.rules.domain_documents import BadDocument
from eventing.peering.rules.domain_documents import read as document_read
from eventing.peering.selectors.domain_documents import domain_keys, domain_known
from eventing.peering.services.domain_documents import document_accept, own_document
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import STATEMENTS_MAX, VERSION
from eventing.replication.joining.announcements import link_participants, spread
from eventing.replication.joining.client import join_along, replica_end
from eventing.replication.joining.messages import (
    DONE,
    RELAYS_MAX,
    InviteRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    ReleaseRequest,
    decoded,
    encode,
)
from eventing.replication.joining.next_hops import (
    JOIN_PATH,
    LEAVE_PATH,
    NextHop,
    join_answer,
    relayed_error,
    towards_home,
)
from eventing.replication.ports import InvitationOffered, invitation_decide
from eventing.replication.services.replica_admissions import replica_admit, unapproved_require
from eventing.replication.services.replica_statements import (
    documents_by_domain,
    documents_for,
    statements_accept,
    statements_of,
)
from eventing.rps.models import RendezvousPoint
from eventing.rps.ports import subscriptions_ending_with
from eventing.rps.rules.statements import BadStatement, Join, descriptor_read, is_descriptor, join_read, join_verified
from eventing.rps.selectors.rendezvous_points import rp_live

WAITING_MAX = (
    2  # joins in this process that wait for other domains; few, because each occupies a thread that all peers share
)
logger = logging.getLogger(__name__)


@per_process
def _waits() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(WAITING_MAX)


def join(sender: Sender, body: bytes) -> bytes:
    """Handle a join (peering/wire/endpoints.py): admit it at the home, relay it elsewhere."""
    request = decoded(body, JoinRequest)
    wish = _checked(request.join, request.path, sender)
    row = _participating(wish.rp)
    if sender.peer is None:
        _direct(row, wish, sender)
    if row.home:
        _proven(request.join, request.documents, sender)
        with _waiting():
            return encode(_relay(row, request, wish))
    if row.term and not request.terms:
        raise Conflict(
            f"The home of {wish.rp} has moved to {config().domain}, which the software of {sender.domain} does not support. "
            "Upgrade it."
        )
    _admit(request.join, request.documents, sender)
    link_participants(wish.rp)
    statements = statements_of(wish.rp)
    documents = [own_document(), *_others(wish.rp, wish.domain)]
    return encode(JoinAnswer(VERSION, statements[0], statements[1:], documents, bytes(row.homes or b"")))


def leave(sender: Sender, body: bytes) -> bytes:
    """Handle a leave, which is for the home, or the end of an RP, which is from the home."""
    request = decoded(body, LeaveRequest)
    if is_descriptor(request.statement):
        _ended(request, sender)
        return DONE
    wish = _checked(request.statement, request.path, sender)
    if wish.lease_s:
        raise InvalidRequest("A leave must be a join for 0 seconds.")
    row = _participating(wish.rp)
    if sender.peer is None:
        _direct(row, wish, sender)
    if row.home:
        message = LeaveRequest(VERSION, request.statement, request.documents, [*request.path, config().domain])
        _proven(request.statement, request.documents, sender)
        with _waiting():
            towards_home(row, LEAVE_PATH, encode(message), request.path)
    else:
        _admit(request.statement, request.documents, sender)
        spread(wish.rp)
    return DONE


def invite(sender: Sender, body: bytes) -> bytes:
    """Handle an invitation: join, if the standing policy accepts it (operations/placement)."""
    request = decoded(body, InviteRequest)
    if sender.peer is None:
        raise Forbidden(f"{config().domain} accepts invitations from its peers only.")
    try:
        descriptor = descriptor_read(request.descriptor)
    except BadStatement as error:
        raise InvalidRequest(str(error)) from None
    if descriptor.home != sender.domain:
        raise InvalidRequest("Only the home of a rendezvous point invites to it.")
    if rp_live(descriptor.rp) is not None:
        return DONE
    wanted = descriptor.history.get("max_bytes")
    granted = invitation_decide(
        InvitationOffered(sender.domain, descriptor.rp, sender.peer.host, wanted, request.events_per_s or None)
    )
    history = {} if wanted is not None and wanted <= granted else {"max_bytes": granted}
    with _waiting():
        join_along(descriptor.rp, [NextHop(sender.domain, sender.peer.url)], _guest(sender.domain), None, history)
    return DONE


def release(sender: Sender, body: bytes) -> bytes:
    """Handle the home's request to end a replica that it invited to: nothing may be lost with it. Raises NotFound, Conflict,
    Unavailable."""
    request = decoded(body, ReleaseRequest)
    row = rp_live(request.rp)
    guest = _guest(sender.domain)
    if row is None or row.home != sender.domain:
        raise NotFound(f"{config().domain} has no replica of {request.rp} of {sender.domain}.")
    if row.creator != guest.identity:
        raise Conflict(
            "A principal of this domain requested the replica: it ends when that principal, or an administrator, says so."
        )
    durable = subscriptions_ending_with(row.id)
    if durable:
        raise Conflict(f"{durable} durable subscriptions here would end with the replica.")
    if _unsent(row.id, sender.domain):
        raise Unavailable("Events of this domain have not reached the home yet. Try again.", retry_after_s=5)
    with _waiting():
        replica_end(rp=row.id, principal=guest)
    return DONE


def _guest(home: str) -> Principal:
    """Return the principal of a home that invites: the replica is counted against its own quota, as if it were a principal here."""
    return Principal(home, home, False, float("inf"), {"sub": home}, local=False)


def _unsent(rp: str, home: str) -> bool:
    """Return whether the home lacks an event that was published here. Raises redis.RedisError."""
    head = federated.heads([rp])[0]
    if head is None or not head.own:
        return False
    return links_read(home, [rp])[rp].theirs.get(Feed(config().domain, head.epoch).key, 0) < head.own


def _checked(statement: Signed, path: Sequence[str], sender: Sender) -> Join:
    """Decode a join and check its path. Raises InvalidRequest, Conflict."""
    try:
        wish = join_read(statement)
    except BadStatement as error:
        misbehaviour_note("malformed", carrier=sender.domain, detail=str(error))
        raise InvalidRequest(str(error)) from None
    if path[0] != wish.domain or path[-1] != sender.domain:
        raise InvalidRequest("The path of a join must begin with the joining domain and end with the sender.")
    if config().domain in path or len(set(path)) != len(path):
        raise Conflict("The join passed this domain already.")
    return wish


def _participating(rp: str) -> RendezvousPoint:
    row = rp_live(rp)
    if row is None:
        raise NotFound(f"{config().domain} does not participate in the rendezvous point {rp}.")
    return row


def _direct(row: RendezvousPoint, wish: Join, sender: Sender) -> None:
    """Check a request of a domain that is no peer: for itself, and at the home. Raises NotFound, Forbidden."""
    if row.home or wish.domain != sender.domain:
        raise NotFound(f"{config().domain} passes requests of its peers on to other homes, and no others.")
    if wish.lease_s:
        unapproved_require(row, sender.domain)


def _proven(statement: Signed, attached: Iterable[Signed], sender: Sender) -> tuple[Join, Signed | None]:
    """Verify a join or leave, with the joining domain's document from the request if the domain is unknown.

    Returns the join, and that document if it is needed. Raises InvalidRequest: invalid statements are counted and not
    relayed.
    """
    wish = join_read(statement)
    keys = domain_keys(wish.domain)
    brought = documents_by_domain(attached).get(wish.domain)
    try:
        document = document_read(brought) if brought is not None else None
    except BadDocument as error:
        logger.info("The domain document of %s in its join is invalid: %s", wish.domain, error)
        brought = document = None
    if not keys and document is not None:
        keys = document.jwks
    try:
        join_verified(statement, keys, int(timezone.now().timestamp() * 1000))
    except BadStatement as error:
        misbehaviour_note("forged", carrier=sender.domain, origin=wish.domain, rp=wish.rp, detail=str(error))
        raise InvalidRequest(str(error)) from None
    return wish, brought


def _admit(statement: Signed, attached: Iterable[Signed], sender: Sender) -> None:
    """At the home: verify a join or leave and carry it out. Raises HeraldError."""
    wish, brought = _proven(statement, attached, sender)
    document = document_read(brought) if brought is not None else None
    replica_admit(join=wish, document=document)
    if brought is not None and document is not None and not domain_known(wish.domain):
        try:
            document_accept(brought, fingerprint=document.fingerprint)
        except BadDocument as error:
            logger.warning("The domain document of the admitted domain %s could not be stored: %s", wish.domain, error)


@contextmanager
def _waiting() -> Iterator[None]:
    """Bound how many requests of other domains wait for further domains, so that others find a thread. Raises
    Unavailable.
    """
    waits = _waits()
    if not waits.acquire(blocking=False):
        raise Unavailable("This domain relays other joins at the moment. Try again.", retry_after_s=2)
    try:
        yield
    finally:
        waits.release()


def _relay(row: RendezvousPoint, request: JoinRequest, wish: Join) -> JoinAnswer:
    """At a replica: relay a join towards the home, and apply the answer. Raises HeraldError."""
    if len(request.path) >= RELAYS_MAX:
        raise Conflict(f"A join passes at most {RELAYS_MAX} domains. Peer with one that is nearer to the home.")
    path = [*request.path, config().domain]
    message = JoinRequest(VERSION, request.join, request.documents, path, request.terms)
    data, next_hop = towards_home(row, JOIN_PATH, encode(message), request.path)
    try:
        answer = join_answer(data, next_hop)
    except PeerError as error:
        raise relayed_error(error, next_hop.domain) from None
    statements_accept(
        row.id,
        [answer.descriptor, *answer.admissions],
        carrier=next_hop.domain,
        domains=[*answer.documents, *request.documents],
        homes=answer.homes,
    )
    link_participants(row.id)
    known = documents_by_domain(answer.documents)
    more = [one for one in documents_for([row.id], wish.domain) if document_read(one).domain not in known]
    room = max(0, STATEMENTS_MAX - len(answer.documents))
    documents = [*answer.documents, *more[:room]]
    return JoinAnswer(VERSION, answer.descriptor, answer.admissions, documents, answer.homes)


def _ended(request: LeaveRequest, sender: Sender) -> None:
    """Handle the end of an RP at its home, as the sender states; the home's signature decides."""
    try:
        rp = descriptor_read(request.statement).rp
    except BadStatement as error:
        misbehaviour_note("malformed", carrier=sender.domain, detail=str(error))
        raise InvalidRequest(str(error)) from None
    refused = statements_accept(rp, [request.statement], carrier=sender.domain, domains=request.documents)
    if refused:
        raise InvalidRequest(refused[0])


def _others(rp: str, joined: str) -> list[Signed]:
    """Return the documents of the other participants."""
    own = config().domain
    return [one for one in documents_for([rp], joined) if document_read(one).domain != own]
