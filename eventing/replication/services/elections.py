"""This domain as an elector of an RP's home: its votes, each stored before it is sent (overlay/succession.py).

The life of a vote: a candidate asks which electors would vote for it -> the majority would: it stores its own vote and asks for theirs ->
the hand-over continues the record held here, and the machine allows the vote -> the vote is stored, and only then signed. The
home itself asks for votes for a planned move.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.core import signing
from eventing.core.errors import Conflict, Forbidden, NotFound
from eventing.outbox.services import change
from eventing.overlay import succession
from eventing.peering.selectors.domain_documents import own_fingerprint
from eventing.replication.models import ElectorState
from eventing.replication.services.elector_states import (
    ElectedRp,
    clock_ms,
    remembers,
    require_remembered,
    rules_of,
    standing_of,
    standing_store,
    state_locked,
    states_of,
)
from eventing.replication.services.replica_statements import statements_accept
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    HAND_OVERS_MAX,
    SUCCESSION,
    Cosigned,
    DomainSignature,
    HandOver,
    HomeRecord,
    SuccessionPlan,
    digest,
    hand_over_payload,
    hand_over_read,
    plan_digest,
    plan_in_force,
    record_packed,
    signature_make,
)
from eventing.sql.remembered import remembered


class Candidature(NamedTuple):
    """A candidature of this domain: the hand-over to be signed by the majority of a plan's electors, and its term."""

    rp: str
    term: int
    payload: bytes
    plan: SuccessionPlan


class CastVote(NamedTuple):
    """An elector's answer: its vote, or None; the highest term that it has met; whether it would vote, where that was asked."""

    vote: DomainSignature | None
    term: int
    willing: bool = False


def electing() -> list[ElectedRp]:
    """Return the RPs whose home this domain elects, with their plans, by id; not those whose home it is."""
    now = timezone.now()
    return [(row, plan) for row, plan in _elected_by(config().domain) if row.expires_at > now]


@remembered
def _elected_by(domain: str) -> list[ElectedRp]:
    rows = RendezvousPoint.objects.exclude(homes=None).exclude(home="")
    columns = ("genesis", "home", "homes", "term", "expires_at")
    found = ((row, plan_in_force(row.home_record)) for row in rows.only(*columns).order_by("id"))
    return [(row, plan) for row, plan in found if plan is not None and plan.elects(domain)]


def homes_to_probe(pairs: Sequence[ElectedRp]) -> list[str]:
    """Return the homes that are to be probed now, by name."""
    now_ms = clock_ms()
    states = states_of(pairs)
    return sorted(
        {
            row.home
            for row, plan in pairs
            if row.id not in states or succession.probe_due(rules_of(plan), standing_of(states[row.id]), now_ms)
        }
    )


def homes_probed(pairs: Sequence[ElectedRp], answered: Mapping[str, bool]) -> None:
    """Record which of the probed homes gave a sign of life."""
    probed = [(row, plan) for row, plan in pairs if row.home in answered]
    known = states_of(probed)
    for row, _ in probed:
        if row.id not in known:
            with transaction.atomic():
                state_locked(row)
    now_ms = clock_ms()
    for alive in (True, False):
        rows = ElectorState.objects.filter(rp__in=[row.id for row, _ in probed if answered[row.home] is alive])
        if alive:
            rows.update(heard_ms=now_ms, misses=0, probed_ms=now_ms)
        else:
            rows.update(misses=F("misses") + 1, probed_ms=now_ms)


def silent_homes(pairs: Sequence[ElectedRp]) -> list[ElectedRp]:
    """Return those RPs whose home is silent for this domain for the stated time."""
    states, now_ms = states_of(pairs), clock_ms()
    return [
        (row, plan)
        for row, plan in pairs
        if row.id in states and succession.silent(rules_of(plan), standing_of(states[row.id]), now_ms)
    ]


def candidature(row: RendezvousPoint, plan: SuccessionPlan) -> Candidature | None:
    """Return the hand-over for which this domain stands for election if it is its turn; None otherwise. Nothing but the turn is stored."""
    own = config().domain
    with transaction.atomic():
        row = RendezvousPoint.objects.select_for_update().get(id=row.id)
        state = state_locked(row)
        record, present = row.home_record, row.home_term
        if plan_in_force(record) != plan or present.domain == own or len(record.hand_overs) >= HAND_OVERS_MAX:
            return None
        rules, now_ms = rules_of(plan), clock_ms()
        standing = standing_of(state)
        stood = succession.stand(rules, own, standing, present.term, now_ms, random.SystemRandom())
        if stood is None or succession.bound(standing, plan.version, present.term) or not remembers(state, plan):
            return None
        standing_store(state, standing._replace(stand_ms=stood.stand_ms))
    payload = hand_over_payload(
        HandOver(
            row.id,
            stood.term,
            SUCCESSION,
            present.domain,
            own,
            config().base_url,
            str(own_fingerprint()),
            digest(record.hand_overs[-1].payload) if record.hand_overs else "",
            plan_digest(record),
            now_ms,
        )
    )
    return Candidature(row.id, stood.term, payload, plan)


def own_vote(candidate: Candidature) -> DomainSignature | None:
    """Store this domain's vote for itself, and sign it; None where it voted or endorsed otherwise meanwhile."""
    own, key = config().domain, signing_key(timezone.now())
    with transaction.atomic():
        row = RendezvousPoint.objects.select_for_update().filter(id=candidate.rp).first()
        if row is None or key is None or plan_in_force(row.home_record) != candidate.plan:
            return None
        state = state_locked(row)
        outcome = succession.vote(
            rules_of(candidate.plan),
            standing_of(state),
            present=row.term,
            term=candidate.term,
            payload=candidate.payload,
            now_ms=clock_ms(),
            version=candidate.plan.version,
            for_itself=True,
        )
        standing_store(state, outcome.standing)
    return signature_make(signing.HAND_OVER, candidate.payload, own, key) if outcome.votes else None


def term_met(rp: str, term: int) -> None:
    """Record the term that another elector states: the next candidature is beyond it."""
    with transaction.atomic():
        row = RendezvousPoint.objects.get(id=rp)
        state = state_locked(row)
        standing_store(state, succession.term_met(standing_of(state), term))


def elected(candidate: Candidature, votes: Sequence[DomainSignature]) -> bool:
    """Become the home by the votes of the majority, this domain's own among them; return whether the RP's home is this domain then."""
    with transaction.atomic():
        row = RendezvousPoint.objects.select_for_update().filter(id=candidate.rp).first()
        if row is None or plan_in_force(row.home_record) != candidate.plan:
            return False
        standing = standing_of(state_locked(row))
        if not succession.completes(standing, version=candidate.plan.version, present=row.term, term=candidate.term):
            return False
        record = row.home_record
        won = Cosigned(candidate.payload, list(votes))
        with change(timezone.now()) as outbox:
            by = sorted(one.domain for one in won.signatures)
            outbox.act("rp.succeed", None, "rp", row.id, who="domain", former=row.home, electors=by)
        moved = record_packed(HomeRecord([*record.hand_overs, won], record.plans))
        refused = statements_accept(row.id, [], carrier=config().domain, homes=moved)
        return not refused and RendezvousPoint.objects.filter(id=row.id, home="").exists()


def vote_cast(*, rp: str, payload: bytes, sender: str, only_asked: bool = False) -> CastVote:
    """Decide about a vote that another domain asks for: the candidate itself, or the home for a planned move.

    Args:
        only_asked: the vote is not given; the answer is whether it would be.

    Raises NotFound, Forbidden, Conflict, BadStatement.
    """
    wanted = hand_over_read(payload)
    own, key = config().domain, signing_key(timezone.now())
    with transaction.atomic():
        row = RendezvousPoint.objects.filter(id=rp).first()
        if row is None or wanted.rp != rp:
            raise NotFound(f"{own} does not participate in the rendezvous point {rp}.")
        record, present = row.home_record, row.home_term
        plan = plan_in_force(record)
        if plan is None or not plan.elects(own) or key is None:
            raise Forbidden(f"{own} is no elector of the rendezvous point {rp}.")
        by_home = wanted.kind != SUCCESSION
        if sender != (present.domain if by_home else wanted.domain) or present.domain == own:
            raise Forbidden("Only a candidate, or the home for a planned move, asks for votes.")
        state = state_locked(row)
        require_remembered(state, plan)
        follows = digest(record.hand_overs[-1].payload) if record.hand_overs else ""
        if (wanted.previous, wanted.plan, wanted.former) != (follows, plan_digest(record), present.domain):
            raise Conflict("The hand-over does not continue what is known here. Try again.")
        if succession.bound(standing_of(state), plan.version, present.term):
            raise Conflict("A change of the succession plan waits for its completion. Repeat it first.")
        if not by_home and not plan.elects(wanted.domain):
            raise Forbidden(f"{wanted.domain} is no elector of the rendezvous point {rp}.")
        outcome = succession.vote(
            rules_of(plan),
            standing_of(state),
            present=present.term,
            term=wanted.term,
            payload=payload,
            now_ms=clock_ms(),
            version=plan.version,
            asked_by_home=by_home,
        )
        if only_asked:
            return CastVote(None, state.term, outcome.votes)
        standing_store(state, outcome.standing)
    given = signature_make(signing.HAND_OVER, payload, own, key) if outcome.votes else None
    return CastVote(given, outcome.standing.term)
