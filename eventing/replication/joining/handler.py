"""Answering: what other domains ask about replicas at /federation/v1/join, leave and invite (endpoints.py).

A join or leave is admitted at the home and relayed elsewhere; an invitation is followed if an administrator here lets that
peer have us host replicas. Nobody on the way can change anything; what does not hold is counted, and goes no further.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unavailable
from eventing.core.principals import Principal
from eventing.core.signing import Signed
from eventing.peering.rules.domain_documents import BadDocument
from eventing.peering.rules.domain_documents import read as document_read
from eventing.peering.selectors.domain_documents import domain_keys, domain_known
from eventing.peering.services.domain_documents import document_accept, own_document
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import STATEMENTS_MAX, VERSION
from eventing.replication.joining.announcements import link_participants, spread
from eventing.replication.joining.client import join_along
from eventing.replication.joining.messages import (
    DONE,
    RELAYS_MAX,
    InviteRequest,
    JoinAnswer,
    JoinRequest,
    LeaveRequest,
    decoded,
    encode,
)
from eventing.replication.joining.next_hops import JOIN_PATH, LEAVE_PATH, Way, as_told, join_answer, towards_home
from eventing.replication.services.replica_admissions import replica_admit
from eventing.replication.services.replica_statements import (
    documents_by_domain,
    documents_for,
    statements_accept,
    statements_of,
)
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import BadStatement, Join, descriptor_read, is_descriptor, join_read, join_verified

WAITING_MAX = 2  # joins in this process that wait for other domains; few, because each holds a thread of all peers'
logger = logging.getLogger(__name__)
_waits = threading.BoundedSemaphore(WAITING_MAX)


def join(sender: Sender, body: bytes) -> bytes:
    """Handle a join (peering/wire/endpoints.py): at the home admit, elsewhere relay it."""
    request = decoded(body, JoinRequest)
    wish = _checked(request.join, request.path, sender)
    row = _participating(wish.rp)
    if row.home:
        _proven(request.join, request.documents, sender)
        with _waiting():
            return encode(_relay(row, request, wish))
    _admit(request.join, request.documents, sender)
    link_participants(wish.rp)
    statements = statements_of(wish.rp)
    return encode(JoinAnswer(VERSION, statements[0], statements[1:], [own_document(), *_others(wish.rp, wish.domain)]))


def leave(sender: Sender, body: bytes) -> bytes:
    """Handle a leave, which goes to the home, or the end of an RP, which comes from there."""
    request = decoded(body, LeaveRequest)
    if is_descriptor(request.statement):
        _ended(request, sender)
        return DONE
    wish = _checked(request.statement, request.path, sender)
    if wish.lease_s:
        raise InvalidRequest("A leave is a join for 0 seconds.")
    row = _participating(wish.rp)
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
    """Handle an invitation: join, if an administrator here lets that peer have us host replicas."""
    request = decoded(body, InviteRequest)
    own = config().domain
    if sender.peer is None or not sender.peer.host:
        raise Forbidden(
            f"{own} takes no invitations of {sender.domain}. Its administrator may allow them: herald peer trust {sender.domain} --host."
        )
    try:
        descriptor = descriptor_read(request.descriptor)
    except BadStatement as error:
        raise InvalidRequest(str(error)) from None
    if descriptor.home != sender.domain:
        raise InvalidRequest("Only the home of a rendezvous point invites to it.")
    if RendezvousPoint.objects.filter(id=descriptor.rp, expires_at__gt=timezone.now()).exists():
        return DONE
    # What an inviting domain has us hold is counted against that domain's own quota, as if it were a principal here.
    guest = Principal(sender.domain, sender.domain, False, float("inf"), {"sub": sender.domain}, local=False)
    with _waiting():
        join_along(descriptor.rp, [Way(sender.domain, sender.peer.url)], guest, None, {})
    return DONE


def _checked(statement: Signed, path: Sequence[str], sender: Sender) -> Join:
    """Read a join and check the way it came. Raises InvalidRequest, Conflict."""
    try:
        wish = join_read(statement)
    except BadStatement as error:
        misbehaviour_note("malformed", carrier=sender.domain, detail=str(error))
        raise InvalidRequest(str(error)) from None
    if path[0] != wish.domain or path[-1] != sender.domain:
        raise InvalidRequest("The path of a join begins with the joining domain and ends with the sender.")
    if config().domain in path or len(set(path)) != len(path):
        raise Conflict("The join went through this domain already.")
    return wish


def _participating(rp: str) -> RendezvousPoint:
    row = RendezvousPoint.objects.filter(id=rp, expires_at__gt=timezone.now()).first()
    if row is None:
        raise NotFound(f"{config().domain} does not participate in the rendezvous point {rp}.")
    return row


def _proven(statement: Signed, came_along: Iterable[Signed], sender: Sender) -> tuple[Join, Signed | None]:
    """Verify a join or leave, with the joining domain's document that came along if we do not know it.

    Returns it, and that document if it is of use. Raises InvalidRequest: what does not hold is counted, and goes no further.
    """
    wish = join_read(statement)
    keys = domain_keys(wish.domain)
    brought = documents_by_domain(came_along).get(wish.domain)
    try:
        document = document_read(brought) if brought is not None else None
    except BadDocument as error:
        logger.info("The domain document of %s that came with its join is none: %s", wish.domain, error)
        brought = document = None
    if not keys and document is not None:
        keys = document.jwks
    try:
        join_verified(statement, keys, int(timezone.now().timestamp() * 1000))
    except BadStatement as error:
        misbehaviour_note("forged", carrier=sender.domain, origin=wish.domain, rp=wish.rp, detail=str(error))
        raise InvalidRequest(str(error)) from None
    return wish, brought


def _admit(statement: Signed, came_along: Iterable[Signed], sender: Sender) -> None:
    """At the home: verify a join or leave and do it. Raises HeraldError."""
    wish, brought = _proven(statement, came_along, sender)
    document = document_read(brought) if brought is not None else None
    replica_admit(join=wish, document=document)
    if brought is not None and document is not None and not domain_known(wish.domain):
        try:
            document_accept(brought, fingerprint=document.fingerprint)
        except BadDocument as error:
            logger.warning("The domain document of %s, which was admitted, is not kept: %s", wish.domain, error)


@contextmanager
def _waiting() -> Iterator[None]:
    """Wait for other domains within a request of one: few may, so that others' requests find a thread. Raises Unavailable."""
    if not _waits.acquire(blocking=False):
        raise Unavailable("Other joins go through this domain right now. Try again.", retry_after_s=2)
    try:
        yield
    finally:
        _waits.release()


def _relay(row: RendezvousPoint, request: JoinRequest, wish: Join) -> JoinAnswer:
    """At a replica: send a join on towards the home, and learn from the answer. Raises HeraldError."""
    if len(request.path) >= RELAYS_MAX:
        raise Conflict(f"A join goes through at most {RELAYS_MAX} domains; peer with one that is nearer to the home.")
    message = JoinRequest(VERSION, request.join, request.documents, [*request.path, config().domain])
    data, way = towards_home(row, JOIN_PATH, encode(message), request.path)
    try:
        answer = join_answer(data, way)
    except PeerError as error:
        raise as_told(error, way.domain) from None
    statements_accept(
        row.id,
        [answer.descriptor, *answer.admissions],
        carrier=way.domain,
        domains=[*answer.documents, *request.documents],
    )
    link_participants(row.id)
    known = documents_by_domain(answer.documents)
    more = [one for one in documents_for([row.id], wish.domain) if document_read(one).domain not in known]
    room = max(0, STATEMENTS_MAX - len(answer.documents))
    return JoinAnswer(VERSION, answer.descriptor, answer.admissions, [*answer.documents, *more[:room]])


def _ended(request: LeaveRequest, sender: Sender) -> None:
    """The RP has ended at its home, says whoever sent this; the home's signature decides."""
    try:
        rp = descriptor_read(request.statement).rp
    except BadStatement as error:
        misbehaviour_note("malformed", carrier=sender.domain, detail=str(error))
        raise InvalidRequest(str(error)) from None
    refused = statements_accept(rp, [request.statement], carrier=sender.domain, domains=request.documents)
    if refused:
        raise InvalidRequest(refused[0])


def _others(rp: str, joined: str) -> list[Signed]:
    """The documents of the other participants."""
    own = config().domain
    return [one for one in documents_for([rp], joined) if document_read(one).domain != own]
