"""Announcements: changes of replicas are sent to the domains concerned: new participants and links, ends, leaves.

A change of an RP is sent along its links with the next exchange (`spread`); a new participant makes links possible,
which are offered at once (`link_participants`). The end of an RP, leaving one, and a withdrawn admission, which have no
link any more, are requests of their own, retried by the sweep (sweeping.py) until the domains concerned have
acknowledged them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from eventing.access.verification.revocations import revocations
from eventing.conf import config
from eventing.core import errors
from eventing.core.errors import NotFound
from eventing.core.signing import Signed
from eventing.peering.selectors.domain_documents import domain_statements
from eventing.peering.services.domain_documents import own_document
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.messages import VERSION, BadMessage, ExchangeRequest, RpPart
from eventing.replication.forwarding import wakeups
from eventing.replication.joining.messages import LeaveRequest, encode
from eventing.replication.joining.next_hops import ASK_S, EXCHANGE_PATH, LEAVE_PATH, NextHop, next_hop_if_active
from eventing.replication.models import ReplicaAdmission, ReplicaEnd
from eventing.replication.selectors.forwarding import participations_forget
from eventing.replication.selectors.replicas import links_of_rp
from eventing.replication.services.replica_ends import end_acknowledged
from eventing.replication.services.replica_links import Offered, links_offer
from eventing.replication.services.replica_statements import documents_for
from eventing.replication.services.replicas import join_sign
from eventing.replication.services.withdrawals import withdrawals_acknowledged, withdrawals_try
from eventing.rps.rules.statements import unpacked
from eventing.store.errors import RedisError

TAKEN_BACK = timedelta(
    milliseconds=2
)  # a leave is signed this long after its join: later by the home's milliseconds, however rounded
END_S = 5.0  # seconds for one domain to acknowledge the end of an RP, while other tasks wait for the worker
logger = logging.getLogger(__name__)


def spread(rp: str) -> None:
    """Send changes of an RP to the linked domains now rather than at the next sweep."""
    links_wake(Offered(rp, peer) for peer in links_of_rp(rp))


def announce_end(end: ReplicaEnd, silent: set[str] | None = None) -> int:
    """Send an end to the remaining domains concerned. Returns how many acknowledged it.

    Args:
        silent: domains that do not answer now, which are not asked again; those found here are added. None: all are
            asked.
    """
    silent = set() if silent is None else silent
    if end.reason != ReplicaEnd.Reason.DELETED:
        next_hops = [next_hop for name in end.pending if name not in silent and (next_hop := next_hop_if_active(name))]
        done = announce_leave(end.rp, next_hops)
        if not done:
            silent.update(next_hop.domain for next_hop in next_hops)
        end_acknowledged(rp=end.rp, acknowledged=end.pending if done else [])
        return int(done)
    acknowledged: list[str] = []
    message = encode(LeaveRequest(VERSION, unpacked(end.statement or b""), _home_document(end.home), [config().domain]))
    for name in end.pending:
        next_hop = next_hop_if_active(name)
        if next_hop is None:
            acknowledged.append(name)  # it is no longer a peer
            continue
        if name in silent:
            continue
        try:
            call(next_hop.url, next_hop.domain, LEAVE_PATH, message, END_S)
            acknowledged.append(name)
        except PeerError as error:
            if error.kind == "refused":
                acknowledged.append(name)
            if error.kind == "unreachable":
                silent.add(name)
            logger.info("%s does not acknowledge the end of %s: %s", name, end.rp, error.detail)
    end_acknowledged(rp=end.rp, acknowledged=acknowledged)
    return len(acknowledged)


def announce_withdrawals(domain: str, rows: Sequence[ReplicaAdmission]) -> int:
    """Notify a peer that it is no longer admitted to these RPs, with the home's statements. Returns how many it
    acknowledged.

    This is an exchange that carries statements, as of any peer for any RP: a domain of every version accepts it, and
    then states that it does not participate.
    """
    withdrawals_try(rows)
    next_hop = next_hop_if_active(domain)
    if next_hop is None:
        return 0
    parts = [RpPart(row.rp_id, statements=[unpacked(row.statement)]) for row in rows]
    message = encode(ExchangeRequest(VERSION, parts, documents_for([row.rp_id for row in rows], domain)))
    try:
        answer = wire.answer(call(next_hop.url, domain, EXCHANGE_PATH, message, END_S))
    except (PeerError, BadMessage) as error:
        logger.info("%s could not be notified of its withdrawn admissions: %s", domain, error)
        return 0
    gone = {part.rp for part in answer.parts if part.error == NotFound.code}
    acknowledged = [row for row in rows if row.rp_id in gone]
    withdrawals_acknowledged(acknowledged)
    return len(acknowledged)


def announce_leave(rp: str, next_hops: Sequence[NextHop], *, joined_at: datetime | None = None) -> bool:
    """Send a leave to the home, along the first route that accepts it. Returns whether one did.

    Args:
        joined_at: when the join was signed that is taken back, and no later one; None for any join.
    """
    if not next_hops:
        return False
    now = None if joined_at is None else joined_at + TAKEN_BACK
    statement = join_sign(rp=rp, lease_s=0, now=now)
    message = encode(LeaveRequest(VERSION, statement, [own_document()], [config().domain]))
    for next_hop in next_hops:
        try:
            call(next_hop.url, next_hop.domain, LEAVE_PATH, message, ASK_S / len(next_hops))
        except PeerError as error:
            if error.kind == "refused" and error.code in (NotFound.code, errors.Gone.code):
                return True  # the RP has ended there, too
            logger.info("%s does not accept the leave from %s: %s", next_hop.domain, rp, error.detail)
        else:
            return True
    return False


def _home_document(home: str) -> list[Signed]:
    if home == config().domain:
        return [own_document()]
    return domain_statements([home])


def link_participants(rp: str) -> None:
    """Offer the links that a new participant makes possible, and send the participant what it needs."""
    participations_forget()
    revocations().refresh()  # whose tokens are accepted here; other gateways are notified
    offered = links_offer(rps=[rp])
    links_wake([*offered, *(Offered(rp, peer) for peer in links_of_rp(rp))])


def links_wake(links: Iterable[Offered]) -> None:
    """Wake forwarding to the peers of these links; the exchange's own sweep repairs lost wake-ups."""
    by_peer: dict[str, set[str]] = {}
    for rp, peer in links:
        by_peer.setdefault(peer, set()).add(rp)
    for peer, rps in sorted(by_peer.items()):
        try:
            wakeups.wake(peer, sorted(rps))
        except RedisError as error:
            logger.warning("%s is not woken, Redis does not answer: %s", peer, error)
