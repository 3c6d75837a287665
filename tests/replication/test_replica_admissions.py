"""What a home decides: who is admitted to its rendezvous points, for how long, and who no longer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from eventing.core.errors import Conflict, Forbidden, Gone, NotFound, QuotaExceeded
from eventing.peering.rules.domain_documents import read as document_read
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.selectors.peers import peers_forget
from eventing.peering.services.domain_documents import own_document
from eventing.peering.services.peers import peer_suspend
from eventing.replication.models import ReplicaAdmission
from eventing.replication.selectors.replicas import links_of_peer, links_of_rp, origin_admitted, participants
from eventing.replication.services.replica_admissions import may_replicate, replica_admit
from eventing.replication.services.replica_links import links_offer
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import (
    ADMISSIONS_MAX,
    admission_read,
    admission_verified,
    descriptor_verified,
    unpacked,
)
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.rendezvous_points import rendezvous_point_create, rendezvous_point_update
from tests.peering.other_domain import OtherDomain
from tests.planes import types_at
from tests.replication.homes import (
    ANN,
    OPEN_TO_B,
    OWN,
    ROOT,
    join_of,
    now_ms,
    peer,
)

pytestmark = pytest.mark.usefixtures("home_stores")


def test_an_rp_is_signed_from_its_creation_on_and_its_id_binds_its_home() -> None:
    row = rendezvous_point_create(principal=ANN, name="weather", policy=OPEN_TO_B)
    said = descriptor_verified(unpacked(row.descriptor or b""), domain_keys(OWN))
    assert row.genesis["key"] == document_read(own_document()).fingerprint
    assert (said.rp, said.version, said.home, said.name) == (row.id, 1, OWN, "/localhost/weather/")
    rendezvous_point_update(reference=row.id, principal=ANN, changes={"title": "Rain"})
    row.refresh_from_db()
    said = descriptor_verified(unpacked(row.descriptor or b""), domain_keys(OWN))
    assert (said.version, said.title, row.version) == (2, "Rain", 2)


def test_a_domain_that_the_policy_names_is_admitted_linked_and_shown() -> None:
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B, lease_s=3600)
    replica_admit(join=join_of("b.test", row.id, lease_s=60))
    links_offer(rps=[row.id])
    held = ReplicaAdmission.objects.get(rp=row.id)
    said = admission_verified(unpacked(held.statement), domain_keys(OWN), rp=row.id, home=OWN)
    assert said.publishes
    assert 58_000 < said.expires_at_ms - now_ms() <= 60_000
    assert links_of_rp(row.id) == ["b.test"]
    assert links_of_peer("b.test") == [row.id]
    assert descriptor_get(row.id).links == ("b.test",)
    assert [(one.domain, one.role) for one in participants(row, datetime.now(UTC))] == [
        (OWN, "home"),
        ("b.test", "replica"),
    ]
    assert origin_admitted(row.id, "b.test", datetime.now(UTC))
    assert origin_admitted(row.id, OWN, datetime.now(UTC))
    assert not origin_admitted(row.id, "c.test", datetime.now(UTC))
    assert "replica.added" in types_at(f"{row.id}.admin")


def test_a_replica_lives_no_longer_than_its_rp_is_sure_to() -> None:
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B, lease_s=30)
    replica_admit(join=join_of("b.test", row.id, lease_s=3600))
    assert ReplicaAdmission.objects.get().expires_at <= row.expires_at


def test_a_domain_that_no_rule_names_is_refused_and_told_what_to_ask_for() -> None:
    peer(OtherDomain("c.test"))
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B)
    with pytest.raises(Forbidden, match=r'\{"issuer": "peer:c\.test", "allow": \["replicate"\]\}'):
        replica_admit(join=join_of("c.test", row.id))
    assert not ReplicaAdmission.objects.exists()


def test_a_domain_that_is_no_peer_is_held_to_what_anyone_may() -> None:
    stranger = OtherDomain()
    document = document_read(stranger.document())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B)
    with pytest.raises(Forbidden):
        replica_admit(join=join_of("b.test", row.id), document=document)  # the rule is about the peer of that name
    rendezvous_point_update(
        reference=row.id, principal=ANN, changes={"policy": [{"issuer": "anyone", "allow": ["replicate"]}]}
    )
    replica_admit(join=join_of("b.test", row.id), document=document)
    assert admission_read(unpacked(ReplicaAdmission.objects.get().statement)).fingerprint == stranger.fingerprint


def test_a_suspended_peer_is_refused_even_where_anyone_may() -> None:
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=[{"issuer": "anyone", "allow": ["replicate"]}])
    peer_suspend(principal=ROOT, name="b.test")
    peers_forget()
    assert not may_replicate(row, "b.test")
    with pytest.raises(Forbidden):
        replica_admit(join=join_of("b.test", row.id))


def test_a_join_signed_before_a_leave_does_not_join_again() -> None:
    """Replayed: the join is still within its window, but the domain has said something else since."""
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B)
    at_ms = now_ms()
    replica_admit(join=join_of("b.test", row.id, at_ms=at_ms))
    replica_admit(join=join_of("b.test", row.id, lease_s=0, at_ms=at_ms + 1))
    with pytest.raises(Conflict, match="Sign a new join"):
        replica_admit(join=join_of("b.test", row.id, at_ms=at_ms))
    assert not origin_admitted(row.id, "b.test", datetime.now(UTC) + timedelta(minutes=1))


def test_what_was_sealed_before_a_domain_left_is_accepted_still() -> None:
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B)
    at_ms, began_at = now_ms(), datetime.now(UTC)
    replica_admit(join=join_of("b.test", row.id, at_ms=at_ms))
    replica_admit(join=join_of("b.test", row.id, lease_s=0, at_ms=at_ms + 1))
    later = datetime.now(UTC) + timedelta(days=1)
    assert origin_admitted(row.id, "b.test", later, sealed_at=began_at)
    assert not origin_admitted(row.id, "b.test", later, sealed_at=later)


def test_a_policy_that_no_longer_allows_it_takes_the_admission_back() -> None:
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B)
    began_at = datetime.now(UTC)
    replica_admit(join=join_of("b.test", row.id))
    links_offer()
    rendezvous_point_update(reference=row.id, principal=ANN, changes={"policy": []})
    assert not admission_read(unpacked(ReplicaAdmission.objects.get().statement)).publishes
    assert links_of_rp(row.id) == []
    assert not origin_admitted(row.id, "b.test", datetime.now(UTC), sealed_at=began_at), "backdated seals neither"


def test_an_rp_has_so_many_replicas_and_no_more() -> None:
    row = rendezvous_point_create(principal=ANN, policy=[{"issuer": "anyone", "allow": ["replicate"]}])
    soon = datetime.now(UTC) + timedelta(hours=1)
    ReplicaAdmission.objects.bulk_create(
        ReplicaAdmission(rp=row, domain=f"d{n}.test", statement=b"", issued_at_ms=1, expires_at=soon)
        for n in range(ADMISSIONS_MAX)
    )
    with pytest.raises(QuotaExceeded):
        replica_admit(join=join_of("b.test", row.id), document=document_read(OtherDomain().document()))


def test_an_rp_from_before_replicas_says_what_to_do() -> None:
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B)
    RendezvousPoint.objects.filter(id=row.id).update(descriptor=None)
    with pytest.raises(Conflict, match="Create a new one"):
        replica_admit(join=join_of("b.test", row.id))


def test_nothing_is_admitted_to_what_is_not_here_or_gone() -> None:
    peer(OtherDomain())
    with pytest.raises(NotFound):
        replica_admit(join=join_of("b.test", "a" * 26))
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B, lease_s=10)
    with pytest.raises(Gone):
        replica_admit(join=join_of("b.test", row.id), now=datetime.now(UTC) + timedelta(seconds=11))
