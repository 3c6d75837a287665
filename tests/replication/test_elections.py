"""This domain as an elector of a home: what it signs once, it never signs otherwise, and a dispute ends alike everywhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from eventing.core import signing
from eventing.core.errors import Conflict, Forbidden
from eventing.operations.models import Alarm
from eventing.peering.models import Misbehaviour
from eventing.peering.selectors.domain_documents import own_fingerprint
from eventing.peering.services.domain_documents import document_accept
from eventing.replication.models import ElectorState, HomeConsent
from eventing.replication.selectors.home_records import homes_shown
from eventing.replication.services import elections, succession_plans
from eventing.replication.services.elector_states import (
    CONSENT_KEPT_S,
    ELECTOR_KEPT_S,
    consents_purge,
    elector_states_purge,
)
from eventing.replication.services.replica_statements import statements_accept
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    SUCCESSION,
    Cosigned,
    DomainSignature,
    Elector,
    HomeRecord,
    SuccessionPlan,
    digest,
    hand_over_read,
    plan_payload,
    record_packed,
    signature_make,
)
from eventing.rps.rules.statements import BadStatement
from tests.peering.other_domain import OtherDomain
from tests.replication.hand_overs import hand_over_of
from tests.replication.homes import OWN, Home, make, now_ms, row_of

pytestmark = pytest.mark.usefixtures("home_stores")
SILENCE_S = 5


class Elected:
    """An RP of a.test whose electors are c.test, d.test and this domain."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.c, self.d = OtherDomain("c.test", url="https://c.test"), OtherDomain("d.test", url="https://d.test")
        make(home)
        for other in (self.c, self.d):
            document_accept(other.document(), fingerprint=other.fingerprint)
        first = Elector(OWN, str(own_fingerprint()))
        self.electors = (Elector(self.c.name, self.c.fingerprint), first, Elector(self.d.name, self.d.fingerprint))
        self.plan = SuccessionPlan(home.rp, 1, 0, home.name, self.electors, SILENCE_S, "", now_ms())
        self.record = HomeRecord([], [self.signed(self.plan)])
        assert statements_accept(home.rp, [], carrier=home.name, homes=record_packed(self.record)) == []

    def signed(self, plan: SuccessionPlan, *also: DomainSignature) -> Cosigned:
        payload = plan_payload(plan)
        return Cosigned(
            payload, [signature_make(signing.SUCCESSION_PLAN, payload, self.home.name, self.home.keys[-1]), *also]
        )

    def by_home(self, plan: SuccessionPlan) -> DomainSignature:
        return self.signed(plan).signatures[0]

    def next_plan(self, **changes: Any) -> SuccessionPlan:
        follows = digest(self.record.plans[-1].payload)
        return replace(self.plan, version=2, previous=follows, at_ms=now_ms(), **changes)

    def endorsed(self, plan: SuccessionPlan, sender: str = "a.test") -> DomainSignature | None:
        return succession_plans.plan_endorse(
            rp=self.home.rp, payload=plan_payload(plan), by_home=self.by_home(plan), sender=sender
        ).vote

    def stood(self) -> tuple[elections.Candidature, DomainSignature]:
        candidate = elections.candidature(*elections.electing()[0])
        assert candidate is not None
        own = elections.own_vote(candidate)
        assert own is not None
        return candidate, own

    def silence(self) -> None:
        """The home gave this domain no sign of life for longer than stated."""
        pairs = elections.electing()
        for _ in range(2):
            elections.homes_probed(pairs, {self.home.name: False})
        ElectorState.objects.update(heard_ms=now_ms() - SILENCE_S * 2000)

    def candidate(self, of: OtherDomain, term: int = 1) -> bytes:
        plan = digest(self.record.plans[-1].payload)
        return hand_over_of(self.home, of.name, of.fingerprint, kind=SUCCESSION, term=term, plan=plan)

    def won(self, payload: bytes, *by: OtherDomain) -> bytes:
        votes = [signature_make(signing.HAND_OVER, payload, one.name, one.keys[-1]) for one in by]
        return record_packed(HomeRecord([Cosigned(payload, votes)], self.record.plans))

    def accepted(self, homes: bytes) -> RendezvousPoint:
        statements_accept(self.home.rp, [], carrier="a.test", homes=homes)
        return row_of(self.home)


@pytest.fixture
def elected(a: Home) -> Elected:
    return Elected(a)


def test_an_elector_votes_for_a_candidate_only_while_the_home_is_silent_for_itself(elected: Elected) -> None:
    payload = elected.candidate(elected.c)
    elections.homes_probed(elections.electing(), {"a.test": True})
    assert elections.vote_cast(rp=elected.home.rp, payload=payload, sender="c.test").vote is None
    elected.silence()
    assert elections.vote_cast(rp=elected.home.rp, payload=payload, sender="c.test").vote is not None


def test_a_vote_is_stored_and_never_given_to_another(elected: Elected) -> None:
    elected.silence()
    payload = elected.candidate(elected.c)
    assert elections.vote_cast(rp=elected.home.rp, payload=payload, sender="c.test").vote is not None
    state = ElectorState.objects.get()
    assert (state.term, bytes(state.voted)) == (1, payload)
    assert elections.vote_cast(rp=elected.home.rp, payload=payload, sender="c.test").vote is not None, "a lost answer"
    other = elections.vote_cast(rp=elected.home.rp, payload=elected.candidate(elected.d), sender="d.test")
    assert (other.vote, other.term) == (None, 1)
    row_of(elected.home).delete()
    assert ElectorState.objects.exists(), "a domain that leaves and joins again does not vote twice"


def test_only_candidates_and_the_home_ask_for_votes(elected: Elected) -> None:
    elected.silence()
    with pytest.raises(Forbidden):
        elections.vote_cast(rp=elected.home.rp, payload=elected.candidate(elected.c), sender="d.test")
    stranger = OtherDomain("x.test")
    with pytest.raises(Forbidden):
        elections.vote_cast(rp=elected.home.rp, payload=elected.candidate(stranger), sender="x.test")
    stale = hand_over_of(elected.home, "c.test", elected.c.fingerprint, kind=SUCCESSION, plan="0" * 64)
    with pytest.raises(Conflict):
        elections.vote_cast(rp=elected.home.rp, payload=stale, sender="c.test")


def test_with_the_majority_this_domain_is_the_home(elected: Elected) -> None:
    assert elections.candidature(*elections.electing()[0]) is None, "the home is not silent"
    elected.silence()
    candidate, own = elected.stood()
    assert hand_over_read(candidate.payload).domain == OWN
    assert not elections.elected(candidate, [own]), "one vote of three"
    vote = signature_make(signing.HAND_OVER, candidate.payload, "c.test", elected.c.keys[-1])
    assert elections.elected(candidate, [own, vote])
    row = row_of(elected.home)
    assert (row.home, row.term) == ("", 1)
    assert elections.electing() == [], "a home elects no successor of itself"


def test_people_see_the_silence_of_a_home_and_after_the_election_who_succeeded_it(elected: Elected) -> None:
    elections.homes_probed(elections.electing(), {"a.test": True})
    (shown,) = homes_shown().items
    assert (shown.home, shown.kind, shown.electors, shown.silence_s) == ("a.test", None, ["c.test", OWN, "d.test"], 5)
    assert (shown.silent_s or 0.0) < 5.0
    elected.silence()
    payload = elected.candidate(elected.c)
    elections.vote_cast(rp=elected.home.rp, payload=payload, sender="c.test")
    (shown,) = homes_shown().items
    assert (shown.electing, shown.misses, (shown.silent_s or 0.0) > 5.0) == (True, 2, True)
    elected.accepted(elected.won(payload, elected.c, elected.d))
    (shown,) = homes_shown().items
    assert (shown.kind, shown.former, shown.home, shown.term, shown.electing) == (
        "succession",
        "a.test",
        "c.test",
        1,
        False,
    )


def test_after_a_succession_the_new_home_is_not_silent_by_the_old_ones_silence(elected: Elected) -> None:
    elected.silence()
    row = elected.accepted(elected.won(elected.candidate(elected.c), elected.c, elected.d))
    assert (row.home, row.term) == ("c.test", 1)
    assert elections.silent_homes(elections.electing()) == []
    assert elections.candidature(*elections.electing()[0]) is None


def test_an_endorsed_plan_ends_votes_by_the_one_before(elected: Elected) -> None:
    elected.silence()
    plan = elected.next_plan(electors=elected.electors[:2])
    endorsed = elected.endorsed(plan)
    assert endorsed is not None
    with pytest.raises(Conflict):
        elections.vote_cast(rp=elected.home.rp, payload=elected.candidate(elected.c), sender="c.test")
    with pytest.raises(Conflict, match="Another plan"):
        elected.endorsed(replace(plan, silence_s=60))
    votes = [endorsed, signature_make(signing.SUCCESSION_PLAN, plan_payload(plan), "c.test", elected.c.keys[-1])]
    following = HomeRecord([], [*elected.record.plans, elected.signed(plan, *votes)])
    row = elected.accepted(record_packed(following))
    assert len(row.home_record.plans) == 2


def test_who_lent_its_vote_in_a_later_term_endorses_no_plan_of_this_one(elected: Elected) -> None:
    elected.silence()
    assert elections.vote_cast(rp=elected.home.rp, payload=elected.candidate(elected.c), sender="c.test").vote
    assert elected.endorsed(elected.next_plan(silence_s=60)) is None


def test_a_candidate_that_endorses_the_next_plan_is_not_elected_by_this_one(elected: Elected) -> None:
    elected.silence()
    candidate, own = elected.stood()
    assert elected.endorsed(elected.next_plan(silence_s=60)) is not None
    vote = signature_make(signing.HAND_OVER, candidate.payload, "c.test", elected.c.keys[-1])
    assert not elections.elected(candidate, [own, vote])


def test_electors_complete_a_plan_whose_home_died_before_its_last_signature(elected: Elected) -> None:
    plan = elected.next_plan(electors=elected.electors[:2])
    assert elected.endorsed(plan) is not None
    assert succession_plans.plans_to_finish(elections.silent_homes(elections.electing())) == [], "the home is there"
    elected.silence()
    assert elections.candidature(*elections.electing()[0]) is None, "it is bound"
    (unfinished,) = succession_plans.plans_to_finish(elections.silent_homes(elections.electing()))
    assert not succession_plans.plan_finish(unfinished, []), "one of three"
    other = signature_make(signing.SUCCESSION_PLAN, unfinished.payload, "c.test", elected.c.keys[-1])
    assert succession_plans.plan_finish(unfinished, [other])
    assert row_of(elected.home).home_record.plans[-1].payload == plan_payload(plan)
    elected.silence()
    assert elections.candidature(*elections.electing()[0]) is not None, "blocked no more"


def test_an_elector_asks_in_the_homes_place_only_with_the_homes_signature(elected: Elected) -> None:
    plan = elected.next_plan(silence_s=60)
    assert elected.endorsed(plan, sender="c.test") is not None
    payload = plan_payload(elected.next_plan(silence_s=70))
    forged = signature_make(signing.SUCCESSION_PLAN, payload, "a.test", elected.c.keys[-1])
    with pytest.raises(BadStatement):
        succession_plans.plan_endorse(rp=elected.home.rp, payload=payload, by_home=forged, sender="c.test")
    with pytest.raises(Forbidden):
        elected.endorsed(plan, sender="x.test")


def test_promises_are_deleted_long_after_the_replica_ended_and_never_given_again(elected: Elected) -> None:
    elected.silence()
    first = elected.candidate(elected.c)
    assert elections.vote_cast(rp=elected.home.rp, payload=first, sender="c.test").vote is not None
    later = timezone.now() + timedelta(seconds=ELECTOR_KEPT_S + 60)
    assert elector_states_purge(now=later) == 0, "it participates"
    row = row_of(elected.home)
    kept = {name: getattr(row, name) for name in ("homes", "term")}
    row.delete()
    assert elector_states_purge() == 0, "the promise is young"
    assert elector_states_purge(now=later) == 1
    assert ElectorState.objects.count() == 0
    make(elected.home)
    RendezvousPoint.objects.filter(id=elected.home.rp).update(**kept)
    at_ms = int(later.timestamp() * 1000)
    pairs = elections.electing()
    elections.homes_probed(pairs, {"a.test": True})
    ElectorState.objects.update(since_ms=at_ms)
    elected.silence()
    with pytest.raises(Conflict, match="does not remember"):
        elections.vote_cast(rp=elected.home.rp, payload=elected.candidate(elected.d), sender="d.test")
    assert elections.candidature(*elections.electing()[0]) is None
    with pytest.raises(Conflict, match="does not remember"):
        elected.endorsed(elected.next_plan(silence_s=60))


def test_consents_are_deleted_a_day_after_the_move_was_possible(elected: Elected) -> None:
    HomeConsent.objects.create(rp=elected.home.rp, payload=b"", until=timezone.now())
    assert consents_purge() == 0
    assert consents_purge(now=timezone.now() + timedelta(seconds=CONSENT_KEPT_S + 1)) == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_homes_in_a_term_convict_who_voted_twice_and_every_domain_keeps_the_same(
    elected: Elected, order: tuple[int, int]
) -> None:
    payloads = sorted([elected.candidate(elected.c), elected.candidate(elected.d)])
    records = [elected.won(payload, elected.c, elected.d) for payload in payloads]
    for number in order:
        row = elected.accepted(records[number])
    assert row.home == hand_over_read(payloads[1]).domain, "whichever arrived first"
    noted = Misbehaviour.objects.filter(kind="equivocation").values_list("origin", flat=True)
    assert sorted(noted) == ["c.test", "d.test"]
    (proof,) = homes_shown().proofs
    assert (proof.rp, proof.term, proof.kept, proof.accused) == (elected.home.rp, 1, row.home, ["c.test", "d.test"])
    assert [one.payload.encode() for one in proof.hand_overs] == [payloads[1], payloads[0]]
    alarm = Alarm.objects.get(cleared_at=None)
    assert (alarm.rule, alarm.kind, alarm.severity, alarm.rp) == ("lasting", "homes", "critical", elected.home.rp)
    assert f"all domains keep {row.home}" in alarm.detail
    elected.accepted(records[order[0]])
    assert (len(homes_shown().proofs), Alarm.objects.count()) == (1, 1), "once, however often it arrives"


def test_a_succession_without_the_majority_is_a_forgery(elected: Elected) -> None:
    row = elected.accepted(elected.won(elected.candidate(elected.c), elected.c))
    assert (row.home, row.term) == ("a.test", 0)
    assert Misbehaviour.objects.get().kind == "forged"
