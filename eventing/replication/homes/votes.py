"""Signatures of an RP's electors: asked of several at once, and given at /federation/v1/elect."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from django.db import connection
from django.utils import timezone

from eventing.conf import config
from eventing.core import signing
from eventing.core.errors import Conflict, Forbidden, InvalidRequest
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import VERSION, BadMessage
from eventing.replication.homes.messages import HAND_OVER, PLAN, WOULD, VoteAnswer, VoteRequest
from eventing.replication.joining.messages import decoded, encode
from eventing.replication.joining.next_hops import NextHop, next_hop_if_active
from eventing.replication.selectors.home_records import home_record_bytes
from eventing.replication.services.elections import vote_cast
from eventing.replication.services.replica_statements import keys_by, statements_accept
from eventing.replication.services.succession_plans import plan_endorse
from eventing.rps.rules.home_terms import (
    ELECTORS_MAX,
    Cosigned,
    DomainSignature,
    SuccessionPlan,
    hand_over_read,
    plan_read,
    valid_signatures,
)
from eventing.rps.rules.statements import BadStatement

ELECT_PATH = "/federation/v1/elect"
VOTE_S = 2.0  # seconds for an elector's answer
logger = logging.getLogger(__name__)


class Votes(NamedTuple):
    """Signatures of electors, the highest term that any of them has met, and how many would sign, where that was asked."""

    given: list[DomainSignature]
    term: int
    willing: int = 0


def elect(sender: Sender, body: bytes) -> bytes:
    """Handle a request for this domain's signature as an elector. Raises HeraldError."""
    request = decoded(body, VoteRequest)
    if sender.partner is None:
        raise Forbidden("Electors sign for domains that events are exchanged with.")
    if request.homes:
        statements_accept(request.rp, [], carrier=sender.domain, homes=request.homes)
    try:
        if request.kind in (HAND_OVER, WOULD):
            asked = request.kind == WOULD
            cast = vote_cast(rp=request.rp, payload=request.payload, sender=sender.domain, only_asked=asked)
        elif request.kind == PLAN:
            by_home = DomainSignature(plan_read(request.payload).home, request.kid, request.signature)
            cast = plan_endorse(rp=request.rp, payload=request.payload, by_home=by_home, sender=sender.domain)
        else:
            raise InvalidRequest(f"Electors sign {HAND_OVER} and {PLAN}.")
    except BadStatement as error:
        raise InvalidRequest(str(error)) from None
    vote = cast.vote
    return encode(
        VoteAnswer(VERSION, vote.kid if vote else "", vote.signature if vote else b"", cast.term, cast.willing)
    )


def votes_ask(
    rp: str, kind: str, payload: bytes, plan: SuccessionPlan, by_home: DomainSignature | None = None
) -> Votes:
    """Ask the other electors for their signatures, all at once; those that do not answer, refuse, or sign badly are left out.

    Args:
        by_home: the home's signature of a version of the plan.
    """
    own = config().domain
    names = [one.domain for one in plan.electors if one.domain != own]
    hops = [hop for name in names if (hop := next_hop_if_active(name)) is not None]
    signed = (by_home.kid, by_home.signature) if by_home is not None else ("", b"")
    message = encode(VoteRequest(VERSION, rp, kind, payload, home_record_bytes(rp), *signed))
    with ThreadPoolExecutor(ELECTORS_MAX, thread_name_prefix="votes") as threads:
        asked = list(zip(hops, threads.map(lambda hop: _asked(hop, message), hops), strict=True))
    answers = [(hop.domain, one) for hop, one in asked if one is not None]
    given = [DomainSignature(domain, one.kid, one.signature) for domain, one in answers if one.kid]
    return Votes(
        _valid(kind, payload, given, plan),
        max((one.term for _, one in answers), default=0),
        sum(one.willing for _, one in answers),
    )


def majority_require(plan: SuccessionPlan, agreed: int) -> None:
    """Raise Conflict if fewer electors agreed than the majority."""
    if agreed < plan.quorum:
        raise Conflict(
            f"{agreed} of {len(plan.electors)} electors agreed; the majority is {plan.quorum}. Try again when more of "
            "them can be reached."
        )


def _valid(kind: str, payload: bytes, given: list[DomainSignature], plan: SuccessionPlan) -> list[DomainSignature]:
    context = signing.SUCCESSION_PLAN if kind == PLAN else signing.HAND_OVER
    at_ms = plan_read(payload).at_ms if kind == PLAN else hand_over_read(payload).at_ms
    return valid_signatures(context, Cosigned(payload, given), plan, at_ms, keys_by({}, timezone.now()))


def _asked(hop: NextHop, message: bytes) -> VoteAnswer | None:
    try:
        return decoded(call(hop.url, hop.domain, ELECT_PATH, message, VOTE_S), VoteAnswer)
    except (PeerError, BadMessage) as error:
        logger.info("%s does not vote: %s", hop.domain, error)
        return None
    finally:
        connection.close()
