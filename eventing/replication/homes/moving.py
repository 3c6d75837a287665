"""Planned move of an RP's home to another domain, from the side of the present home.

The life of a move: the administrator or creator asks for it -> the next home, a participant that has caught up, consents and
signs (homes/handler.py) -> this domain signs as well and is a replica from then on, in one transaction -> the completed
hand-over is sent along the links like any statement; when it arrives, the next home is the home (services/homes.py).

Publishing and reading continue at both throughout, since both hold replicas. Until the last signature this domain is the home,
and after it the next one, though it may take until its next exchange to receive it: a process that is killed in between leaves
either, and the sweep of pending statements delivers the hand-over.
"""

from __future__ import annotations

import time

from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Conflict, InvalidRequest, Unavailable
from eventing.core.ids import canonical_json
from eventing.core.principals import Principal
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.messages import VERSION, BadMessage
from eventing.replication.homes.messages import HAND_OVER, MoveAnswer, MoveRequest
from eventing.replication.homes.votes import majority_require, votes_ask
from eventing.replication.joining.announcements import link_participants
from eventing.replication.joining.messages import decoded, encode
from eventing.replication.joining.next_hops import next_hop_to, relayed_error
from eventing.replication.joining.presenters import own_vector
from eventing.replication.selectors.replicas import admitted_url, participants
from eventing.replication.services.elector_states import term_of
from eventing.replication.services.home_moves import hand_over_sign
from eventing.replication.services.replica_statements import statements_of
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    HAND_OVERS_MAX,
    MOVE,
    DomainSignature,
    HandOver,
    digest,
    hand_over_payload,
    plan_digest,
    plan_in_force,
)
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require, require_home

HOME_PATH = "/federation/v1/home"
ASK_S = 10.0  # seconds for the next home's consent
COMPLETE_S = 12.0  # bound: seconds from the request to the last signature; the move is refused, and nothing has changed


def rp_move(*, reference: str, domain: str, principal: Principal) -> RendezvousPoint:
    """Make another participant the home of an RP of this domain, which keeps a replica. Returns the RP.

    For administrators of this domain and the creator. Raises HeraldError: the refusal of this domain, or of the other.
    """
    row = rendezvous_point_get(reference)
    require(descriptor_of(row), principal, "administer")
    require_home(row)
    return home_hand_over(row, domain, principal)


def home_hand_over(row: RendezvousPoint, domain: str, principal: Principal | None) -> RendezvousPoint:
    """Hand over the home of an RP of this domain, as `rp_move`; `principal` None: this domain does so itself."""
    began = time.monotonic()
    payload, votes = _voted(row, domain)
    next_hop = next_hop_to(domain)
    request = MoveRequest(
        VERSION, row.id, payload, statements_of(row.id)[1:], own_vector(row.id), canonical_json(_local(row))
    )
    try:
        answer = decoded(call(next_hop.url, domain, HOME_PATH, encode(request), ASK_S), MoveAnswer)
    except PeerError as error:
        raise relayed_error(error, domain) from None
    except BadMessage as error:
        raise Unavailable(f"The answer of {domain} is malformed: {error}", retry_after_s=60) from None
    consent = DomainSignature(domain, answer.kid, answer.signature)
    if time.monotonic() - began > COMPLETE_S:
        raise Unavailable(f"{domain} took too long to agree. Try again.", retry_after_s=5)
    hand_over_sign(row, payload, consent, answer.statements, principal=principal, also=votes)
    link_participants(row.id)
    return rendezvous_point_get(row.id)


def _payload(row: RendezvousPoint, domain: str, term: int) -> bytes:
    """Return the hand-over to a domain, to be signed. Raises Conflict, InvalidRequest."""
    own = config().domain
    record, now = row.home_record, timezone.now()
    if domain == own:
        raise InvalidRequest(f"{own} is the home of {row.id} already.")
    if row.descriptor is None:
        raise Conflict(f"The rendezvous point {row.id} was created before there were replicas. Create a new one.")
    if len(record.hand_overs) >= HAND_OVERS_MAX:
        raise Conflict(f"The home has moved {HAND_OVERS_MAX} times, which is the most. Create a new rendezvous point.")
    document = domain_document(domain)
    if document is None or domain not in {one.domain for one in participants(row, now)}:
        raise Conflict(
            f"{domain} holds no replica of {row.id}. Have it hold one: herald replica invite {row.id} {domain}"
        )
    return hand_over_payload(
        HandOver(
            row.id,
            term,
            MOVE,
            own,
            domain,
            admitted_url(row.id, domain) or document.url,
            document.fingerprint,
            digest(record.hand_overs[-1].payload) if record.hand_overs else "",
            plan_digest(record),
            int(now.timestamp() * 1000),
        )
    )


def _voted(row: RendezvousPoint, domain: str) -> tuple[bytes, list[DomainSignature]]:
    """Return the hand-over to a domain, with the votes of the electors if a succession plan is in force.

    Electors that met a higher term in an election vote in a later one only. Raises Conflict without their majority.
    """
    plan = plan_in_force(row.home_record)
    if plan is None:
        return _payload(row, domain, row.term + 1), []
    payload = _payload(row, domain, max(row.term, term_of(row)) + 1)
    votes = votes_ask(row.id, HAND_OVER, payload, plan)
    if len(votes.given) < plan.quorum and votes.term > row.term:
        payload = _payload(row, domain, votes.term + 1)
        votes = votes_ask(row.id, HAND_OVER, payload, plan)
    agreed = {one.domain for one in votes.given} | {config().domain}
    majority_require(plan, sum(plan.elects(one) for one in sorted(agreed)))
    return payload, [one for one in votes.given if one.domain != domain]  # its consent is its vote


def _local(row: RendezvousPoint) -> dict[str, object]:
    """Return what only the home keeps."""
    return {
        "audience": row.audience,
        "watch": row.watch,
        "renew_on_use": row.renew_on_use,
        "asked_s": row.asked_s,
    }
