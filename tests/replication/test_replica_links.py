"""Links between participants that are peers, and the statements that go over them first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from eventing.peering.selectors.peers import peers_forget
from eventing.peering.services.peers import peer_suspend
from eventing.replication.models import ReplicaLink
from eventing.replication.selectors.replicas import links_of_rp
from eventing.replication.services.replica_admissions import replica_admit
from eventing.replication.services.replica_links import LEASE_S, OFFER_AGAIN_S, link_stopped, links_offer
from eventing.replication.services.replica_statements import statements_acknowledged, statements_of, statements_pending
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from tests.peering.other_domain import OtherDomain
from tests.planes import types_at
from tests.replication.homes import (
    ANN,
    OPEN_TO_B,
    ROOT,
    Home,
    join_of,
    make,
    peer,
    row_of,
    taken,
)

pytestmark = pytest.mark.usefixtures("home_stores")


def test_links_are_with_participants_that_are_peers_and_with_no_others(a: Home) -> None:
    make(a, admissions=[a.admission(), a.admission("c.test"), a.admission("d.test", lasts_s=-1)])
    peer(OtherDomain("d.test"))
    assert links_of_rp(a.rp) == []
    assert {tuple(one) for one in links_offer()} == {(a.rp, "a.test")}
    peer(OtherDomain("c.test"))
    assert {tuple(one) for one in links_offer()} == {(a.rp, "c.test")}
    assert links_offer() == [], "nothing twice"
    peer_suspend(principal=ROOT, name="a.test")
    peers_forget()
    links_offer()
    assert links_of_rp(a.rp) == ["c.test"]


def test_a_links_lease_is_renewed_while_both_participate(a: Home) -> None:
    make(a)
    links_offer()
    before = ReplicaLink.objects.get().expires_at
    links_offer(now=datetime.now(UTC) + timedelta(seconds=LEASE_S - 1))
    assert ReplicaLink.objects.get().expires_at > before


def test_a_link_that_the_peer_refuses_stops_and_is_offered_again(a: Home) -> None:
    make(a)
    links_offer()
    assert link_stopped(rp=a.rp, peer="a.test", detail="It knows no such rendezvous point.")
    assert links_of_rp(a.rp) == []
    assert links_offer() == []
    again = links_offer(now=datetime.now(UTC) + timedelta(seconds=OFFER_AGAIN_S + 1))
    assert [one.peer for one in again] == ["a.test"]
    assert links_of_rp(a.rp) == ["a.test"]


def test_a_participant_that_lapses_loses_its_link_and_is_reported() -> None:
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B, lease_s=3600)
    replica_admit(join=join_of("b.test", row.id, lease_s=10))
    links_offer()
    links_offer(now=datetime.now(UTC) + timedelta(seconds=11))
    assert links_of_rp(row.id) == []
    assert types_at(f"{row.id}.admin")[-1] == "replica.removed"


def test_a_peer_is_told_statements_once_and_again_when_they_change(a: Home) -> None:
    make(a)
    links_offer()
    untold = statements_pending("a.test", [a.rp, "b" * 26])
    assert list(untold) == [a.rp]
    assert untold[a.rp].statements == statements_of(a.rp)
    assert len(untold[a.rp].statements) == 2
    statements_acknowledged("a.test", {a.rp: untold[a.rp].version})
    assert statements_pending("a.test", [a.rp]) == {}
    assert taken(a, a.descriptor(title="Rain")) == []
    assert list(statements_pending("a.test", [a.rp])) == [a.rp]
    assert taken(a, statements_of(a.rp)[0]) == []
    changed = RendezvousPoint.objects.get(id=a.rp).statements
    assert statements_pending("a.test", [a.rp])[a.rp].version == changed, "what we have already changes nothing"


def test_reading_the_statements_of_many_rps_costs_two_queries_at_most(a: Home) -> None:
    make(a)
    links_offer()
    statements_acknowledged("a.test", {a.rp: row_of(a).statements})
    with CaptureQueriesContext(connection) as made:
        assert statements_pending("a.test", [a.rp, *("b" * 26 for _ in range(3))]) == {}
    assert 0 < len(made) <= 2, "all links and those not told, where answers are remembered; else the latter"
