"""Telling: what changed about replicas goes to whom it concerns: new participants and links, ends, leaves.

A change of an RP is sent along its links with the next exchange (`spread`); a new participant makes links possible, which
are offered at once (`link_participants`). The end of an RP, our leaving one, and an admission taken back, which no link leads
to any more, are requests of their own, tried again by the sweep (sweeping.py) until whoever must know has taken them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from redis.exceptions import RedisError

from eventing.access.verification.revocations import revocations
from eventing.conf import config
from eventing.core import errors
from eventing.core.errors import NotFound
from eventing.core.signing import Signed
from eventing.peering.selectors.domain_documents import domain_statements
from eventing.peering.services.domain_documents import own_document
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.messages import VERSION, BadMessage, Request, RpPart
from eventing.replication.forwarding import wakeups
from eventing.replication.joining.messages import LeaveRequest, encode
from eventing.replication.joining.next_hops import ASK_S, EXCHANGE_PATH, LEAVE_PATH, Way, way_if_active
from eventing.replication.models import ReplicaAdmission, ReplicaEnd
from eventing.replication.selectors.forwarding import participations_forget
from eventing.replication.selectors.replicas import links_of_rp
from eventing.replication.services.replica_ends import end_told
from eventing.replication.services.replica_links import Offered, links_offer
from eventing.replication.services.replica_statements import documents_for
from eventing.replication.services.replicas import join_sign
from eventing.replication.services.withdrawals import withdrawals_told, withdrawals_try
from eventing.rps.rules.statements import unpacked

TAKEN_BACK = timedelta(
    milliseconds=2
)  # after a join its leave is signed: later by the home's milliseconds, however rounded
END_S = 5.0  # for one domain to take the end of an RP, while other tasks wait for the worker
logger = logging.getLogger(__name__)


def spread(rp: str) -> None:
    """Have what changed about an RP sent to whom it is linked with, now rather than at the next sweep."""
    links_wake(Offered(rp, peer) for peer in links_of_rp(rp))


def tell_end(end: ReplicaEnd, silent: set[str] | None = None) -> int:
    """Tell whoever is left to tell of an end. Returns how many were told.

    Args:
        silent: domains that do not answer now, which are not asked again; those that are found here are added. None: all are asked.
    """
    silent = set() if silent is None else silent
    if end.reason != ReplicaEnd.Reason.DELETED:
        ways = [way for name in end.pending if name not in silent and (way := way_if_active(name))]
        done = tell_leave(end.rp, ways)
        if not done:
            silent.update(way.domain for way in ways)
        end_told(rp=end.rp, told=end.pending if done else [])
        return int(done)
    told: list[str] = []
    message = encode(LeaveRequest(VERSION, unpacked(end.statement or b""), _home_document(end.home), [config().domain]))
    for name in end.pending:
        way = way_if_active(name)
        if way is None:
            told.append(name)  # it is no peer any more
            continue
        if name in silent:
            continue
        try:
            call(way.url, way.domain, LEAVE_PATH, message, END_S)
            told.append(name)
        except PeerError as error:
            if error.kind == "refused":
                told.append(name)
            if error.kind == "unreachable":
                silent.add(name)
            logger.info("%s does not take the end of %s: %s", name, end.rp, error.detail)
    end_told(rp=end.rp, told=told)
    return len(told)


def tell_withdrawals(domain: str, rows: Sequence[ReplicaAdmission]) -> int:
    """Tell a peer that it is admitted to these RPs no longer, by the home's word. Returns of how many it knows now.

    It is an exchange that carries statements, as any peer's does for any RP: a domain of every version takes it, and says
    then that it does not participate.
    """
    withdrawals_try(rows)
    way = way_if_active(domain)
    if way is None:
        return 0
    parts = [RpPart(row.rp_id, statements=[unpacked(row.statement)]) for row in rows]
    message = encode(Request(VERSION, parts, documents_for([row.rp_id for row in rows], domain)))
    try:
        answer = wire.answer(call(way.url, domain, EXCHANGE_PATH, message, END_S))
    except (PeerError, BadMessage) as error:
        logger.info("%s is not told what it is no longer admitted to: %s", domain, error)
        return 0
    gone = {part.rp for part in answer.parts if part.error == NotFound.code}
    told = [row for row in rows if row.rp_id in gone]
    withdrawals_told(told)
    return len(told)


def tell_leave(rp: str, ways: Sequence[Way], *, joined_at: datetime | None = None) -> bool:
    """Have the home told that we left, along the first way that takes it. Whether one did.

    Args:
        joined_at: when the join was signed that is taken back, and no later one; None for whatever we joined by.
    """
    if not ways:
        return False
    now = None if joined_at is None else joined_at + TAKEN_BACK
    statement = join_sign(rp=rp, lease_s=0, now=now)
    message = encode(LeaveRequest(VERSION, statement, [own_document()], [config().domain]))
    for way in ways:
        try:
            call(way.url, way.domain, LEAVE_PATH, message, ASK_S / len(ways))
        except PeerError as error:
            if error.kind == "refused" and error.code in (NotFound.code, errors.Gone.code):
                return True  # it is gone there too
            logger.info("%s does not take our leave of %s: %s", way.domain, rp, error.detail)
        else:
            return True
    return False


def _home_document(home: str) -> list[Signed]:
    if home == config().domain:
        return [own_document()]
    return domain_statements([home])


def link_participants(rp: str) -> None:
    """Offer the links that a new participant makes possible, and have what it must know sent."""
    participations_forget()
    revocations().look()  # whose tokens count here; other gateways are told
    offered = links_offer(rps=[rp])
    links_wake([*offered, *(Offered(rp, peer) for peer in links_of_rp(rp))])


def links_wake(links: Iterable[Offered]) -> None:
    """Have the peers forwarded to; what is lost here the exchange's own sweep finds."""
    by_peer: dict[str, set[str]] = {}
    for rp, peer in links:
        by_peer.setdefault(peer, set()).add(rp)
    for peer, rps in sorted(by_peer.items()):
        try:
            wakeups.wake(peer, sorted(rps))
        except RedisError as error:
            logger.warning("%s is not woken, Redis does not answer: %s", peer, error)
