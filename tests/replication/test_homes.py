"""A home that moves: what this domain does as the next home, as the former one, and as one that follows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from eventing.core.errors import ApplicationError, Conflict, Forbidden
from eventing.core.principals import Principal
from eventing.peering.models import Misbehaviour, Peer
from eventing.peering.selectors.domain_documents import own_fingerprint
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import VERSION
from eventing.replication.homes import handler, moving
from eventing.replication.homes.messages import MoveAnswer, MoveRequest
from eventing.replication.joining.messages import decoded, encode
from eventing.replication.models import ReplicaAdmission, ReplicaLink
from eventing.replication.selectors.replicas import origin_admitted
from eventing.replication.services.replica_admissions import may_replicate, replica_admit
from eventing.replication.services.replica_statements import (
    statements_accept,
    statements_pending,
    term_stated,
)
from eventing.replication.services.replicas import replica_leave
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    DomainSignature,
    record_packed,
)
from eventing.rps.rules.statements import (
    descriptor_read,
    unpacked,
)
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.rendezvous_points import rendezvous_point_create, rendezvous_point_update
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at, types_at
from tests.replication.hand_overs import NextHome, completed, hand_over_of
from tests.replication.homes import ANN, BEN, OPEN_TO_B, OWN, ROOT, Home, join_of, make, peer, row_of

pytestmark = pytest.mark.usefixtures("home_stores")


def asked(a: Home, payload: bytes, **changes: Any) -> bytes:
    local = b'{"renew_on_use":false,"asked_s":3600,"watch":[{"silence":{"s":60}}]}'
    said: dict[str, Any] = {
        "version": VERSION,
        "rp": a.rp,
        "payload": payload,
        "admissions": [],
        "have": {},
        "local": local,
    }
    sender = Sender(a.name, "k", Peer.objects.get(pk=a.name))
    return handler.home(sender, encode(MoveRequest(**{**said, **changes})))


def taken_over(a: Home) -> RendezvousPoint:
    """This domain is the home of what a.test created, from term 1 on."""
    make(a)
    Peer.objects.filter(pk=a.name).update(host=True)
    payload = hand_over_of(a, OWN, str(own_fingerprint()))
    answer = decoded(asked(a, payload), MoveAnswer)
    own = DomainSignature(OWN, answer.kid, answer.signature)
    assert row_of(a).home == a.name, "a consent makes nobody a home"
    assert statements_accept(a.rp, [], carrier=a.name, homes=record_packed(completed(payload, a, also=own))) == []
    return row_of(a)


def test_the_next_home_signs_and_grants_from_the_hand_over_on(a: Home) -> None:
    row = taken_over(a)
    assert (row.home, row.term, row.creator, row.renew_on_use) == ("", 1, "a.test#ann", False)
    stated = descriptor_read(unpacked(row.descriptor or b""))
    assert (stated.home, stated.term, stated.name) == (OWN, 1, "/a.test/weather/")
    assert stated.version > 2, "after the descriptor that went with its consent"
    assert origin_admitted(a.rp, a.name, datetime.now(UTC)), "the former home holds a replica"
    assert [one.domain for one in ReplicaAdmission.objects.filter(rp=row)] == [a.name]
    assert row.watch != [], "its watch rules came with it"
    assert {"rp.moved", "replica.added", "lease.granted"} <= set(types_at(f"{a.rp}.admin"))
    rendezvous_point_update(reference=a.rp, principal=ROOT, changes={"title": "Here"})
    assert row_of(a).title == "Here"


def test_rights_and_names_stay_those_of_the_domain_that_created_the_rp(a: Home) -> None:
    taken_over(a)
    found = descriptor_get(a.rp)
    creator = Principal(a.name, "ann", False, float("inf"), {}, local=False)
    assert found.allows(creator, "administer")
    assert found.allows(Principal(a.name, "carl", False, float("inf"), {}, local=False), "publish"), "domain is a.test"
    assert not found.allows(BEN, "publish"), "and not ours"
    rendezvous_point_update(reference=a.rp, principal=creator, changes={"name": "rain"})
    assert row_of(a).name == "/a.test/rain/"


def test_a_former_home_may_hold_a_replica_whatever_the_policy_names(a: Home) -> None:
    row = taken_over(a)
    assert may_replicate(row, a.name)
    assert not may_replicate(row, "x.test")
    assert replica_admit(join=join_of(a.name, a.rp)).id == a.rp


def test_a_domain_becomes_no_home_without_the_trust_to_host(a: Home) -> None:
    make(a)
    with pytest.raises(Forbidden, match="--host"):
        asked(a, hand_over_of(a, OWN, str(own_fingerprint())))


@pytest.mark.parametrize(
    "change", [{"previous": "0" * 64}, {"term": 0}, {"domain": "b.test"}, {"fingerprint": "f" * 43}]
)
def test_a_hand_over_that_does_not_fit_is_not_signed(a: Home, change: dict[str, Any]) -> None:
    make(a)
    Peer.objects.filter(pk=a.name).update(host=True)
    payload = hand_over_of(a, OWN, str(own_fingerprint()))
    wrong = msgspec.json.encode({**msgspec.json.decode(payload), **change}, order="sorted")
    with pytest.raises(ApplicationError, match=r"hand-over|whole number"):
        asked(a, wrong)


def test_a_domain_that_consented_does_not_leave_before_the_move_is_decided(a: Home) -> None:
    make(a)
    Peer.objects.filter(pk=a.name).update(host=True)
    asked(a, hand_over_of(a, OWN, str(own_fingerprint())))
    with pytest.raises(Conflict, match="agreed to become the home"):
        replica_leave(rp=a.rp, principal=ROOT)


@pytest.fixture
def next_home(b: OtherDomain, monkeypatch: pytest.MonkeyPatch) -> NextHome:
    peer(b)
    row = rendezvous_point_create(principal=ANN, name="weather", policy=OPEN_TO_B, watch=[{"silence": {"s": 60}}])
    replica_admit(join=join_of(b.name, row.id))
    made = NextHome(b, row.id)
    monkeypatch.setattr(moving, "call", made.call)
    return made


def test_the_former_home_is_a_replica_from_its_signature_on(next_home: NextHome) -> None:
    row = moving.rp_move(reference=next_home.rp, domain="b.test", principal=ANN)
    assert (row.home, row.term, row.name, row.watch) == ("b.test", 1, "/localhost/weather/", [])
    assert origin_admitted(row.id, OWN, datetime.now(UTC)), "what is published here counts on"
    assert origin_admitted(row.id, "b.test", datetime.now(UTC))
    assert not ReplicaAdmission.objects.filter(rp=row, domain="b.test").exists(), "a home is not admitted"
    assert descriptor_get(row.id).allows(ANN, "publish"), "domain still means the people of whoever created it"
    with pytest.raises(Conflict, match=r"b\.test"):
        rendezvous_point_update(reference=row.id, principal=ROOT, changes={"title": "Mine"})
    moved = next(one for one in events_at(f"{row.id}.admin") if one["type"] == "io.herald.rp.moved")
    assert {name: moved["data"][name] for name in ("term", "home", "former", "reason")} == {
        "term": 1,
        "home": "b.test",
        "former": OWN,
        "reason": "move",
    }


def test_a_home_that_was_restored_from_a_backup_finds_itself_a_replica(next_home: NextHome) -> None:
    before = RendezvousPoint.objects.get(id=next_home.rp)
    moved = moving.rp_move(reference=next_home.rp, domain="b.test", principal=ANN)
    before.save()
    assert RendezvousPoint.objects.get(id=before.id).home == ""
    assert statements_accept(before.id, [], carrier="b.test", homes=bytes(moved.homes or b"")) == []
    again = RendezvousPoint.objects.get(id=before.id)
    assert (again.home, again.term) == ("b.test", 1)


def test_a_move_that_is_refused_or_badly_signed_changes_nothing(next_home: NextHome) -> None:
    next_home.fails = PeerError("refused", "no", status=403, document={"detail": "No."})
    with pytest.raises(Forbidden):
        moving.rp_move(reference=next_home.rp, domain="b.test", principal=ANN)
    next_home.fails, next_home.signs = None, False
    with pytest.raises(ApplicationError, match="invalid"):
        moving.rp_move(reference=next_home.rp, domain="b.test", principal=ANN)
    row = RendezvousPoint.objects.get(id=next_home.rp)
    assert (row.home, row.term, row.homes) == ("", 0, None)
    assert not Misbehaviour.objects.filter(kind="equivocation").exists()


@pytest.mark.parametrize("to", ["x.test", OWN])
def test_only_a_participant_becomes_the_home(next_home: NextHome, to: str) -> None:
    with pytest.raises(ApplicationError, match=r"no replica|already"):
        moving.rp_move(reference=next_home.rp, domain=to, principal=ANN)


def test_only_who_administers_the_rp_moves_it(next_home: NextHome) -> None:
    with pytest.raises(Forbidden):
        moving.rp_move(reference=next_home.rp, domain="b.test", principal=BEN)


def test_older_software_is_sent_no_statement_of_a_later_term(next_home: NextHome) -> None:
    """It would take them for forged; it goes on as a replica of the first home until its lease ends."""
    rp = moving.rp_move(reference=next_home.rp, domain="b.test", principal=ANN).id
    link = ReplicaLink.objects.get(rp=rp, peer="b.test")
    assert (link.term, link.told) == (-1, -1)
    pending = statements_pending("b.test", [rp])[rp]
    assert pending.awaits_term
    assert pending.homes
    assert not pending.statements
    term_stated("b.test", rp, 0)
    pending = statements_pending("b.test", [rp])[rp]
    assert not pending.awaits_term
    assert len(pending.statements) == 2
