"""A home changes its succession plan with its electors' consent, also after an election that failed."""

from __future__ import annotations

import pytest

from eventing.core import signing
from eventing.core.errors import Conflict
from eventing.peering.wire.messages import VERSION
from eventing.replication.homes import votes
from eventing.replication.homes.messages import HAND_OVER, PLAN, VoteAnswer, VoteRequest
from eventing.replication.homes.planning import succession_plan_set
from eventing.replication.joining.messages import decoded, encode
from eventing.replication.services.replica_admissions import replica_admit
from eventing.replication.services.replica_links import links_offer
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    DomainSignature,
    hand_over_read,
    plan_read,
    signature_make,
)
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import ANN, OPEN_TO_B, join_of, peer

pytestmark = pytest.mark.usefixtures("home_stores")
OPEN = [*OPEN_TO_B, {"issuer": "peer:c.test", "allow": ["describe", "publish", "subscribe", "history", "replicate"]}]


class Electors:
    """b.test and c.test, which endorse no plan of a term below the highest in which they lent their votes."""

    def __init__(self, *domains: OtherDomain) -> None:
        self.domains = {domain.name: domain for domain in domains}
        self.lent = 0
        self.endorsed: list[int] = []

    def call(self, url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        request = decoded(body, VoteRequest)
        key = self.domains[domain].keys[-1]
        if request.kind == PLAN:
            plan = plan_read(request.payload)
            by_home = DomainSignature(plan.home, request.kid, request.signature)
            assert by_home.signature, "the home signs first"
            if plan.term < self.lent:
                return encode(VoteAnswer(VERSION, "", b"", self.lent))
            self.endorsed.append(plan.term)
            given = signature_make(signing.SUCCESSION_PLAN, request.payload, domain, key)
        else:
            assert request.kind == HAND_OVER
            assert hand_over_read(request.payload).term > self.lent
            given = signature_make(signing.HAND_OVER, request.payload, domain, key)
        return encode(VoteAnswer(VERSION, given.kid, given.signature, self.lent))


@pytest.fixture
def electors(b: OtherDomain, monkeypatch: pytest.MonkeyPatch) -> Electors:
    c = OtherDomain("c.test", url="https://c.test")
    made = Electors(b, c)
    monkeypatch.setattr(votes, "call", made.call)
    return made


@pytest.fixture
def rp(electors: Electors) -> str:
    row = rendezvous_point_create(principal=ANN, name="weather", policy=OPEN)
    for domain in electors.domains.values():
        peer(domain)
        replica_admit(join=join_of(domain.name, row.id))
    links_offer(rps=[row.id])
    return row.id


def changed(rp: str, silence_s: int) -> RendezvousPoint:
    return succession_plan_set(reference=rp, electors=["b.test", "c.test"], silence_s=silence_s, principal=ANN)


def test_a_change_of_the_plan_is_signed_by_the_home_and_the_majority(electors: Electors, rp: str) -> None:
    changed(rp, 60)
    assert electors.endorsed == [], "the first plan needs nobody's consent"
    row = changed(rp, 30)
    assert (len(row.home_record.plans), row.term, electors.endorsed) == (2, 0, [0, 0])


def test_a_home_whose_electors_met_a_later_term_is_confirmed_in_a_higher_one_first(electors: Electors, rp: str) -> None:
    changed(rp, 60)
    electors.lent = 4
    row = changed(rp, 30)
    assert (row.home, row.term) == ("", 5)
    assert [plan_read(one.payload).term for one in row.home_record.plans] == [0, 5]
    assert electors.endorsed == [5, 5]
    row = changed(rp, 20)
    assert (row.term, len(row.home_record.plans)) == (5, 3), "once is enough"


def test_without_the_majority_the_plan_stays_and_the_change_can_be_repeated_only(electors: Electors, rp: str) -> None:
    changed(rp, 60)
    away = electors.domains.pop("c.test")
    electors.domains["c.test"] = OtherDomain("c.test")  # another key: its signatures are left out
    with pytest.raises(Conflict, match="1 of 2 electors"):
        changed(rp, 30)
    electors.domains["c.test"] = away
    with pytest.raises(Conflict, match="repeat that one"):
        changed(rp, 20)
    assert len(changed(rp, 30).home_record.plans) == 2
