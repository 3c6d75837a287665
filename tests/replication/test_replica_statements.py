"""What a replica takes over of the home's statements, and from whom: whoever carries them can change nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventing.core.errors import NotFound
from eventing.core.ids import rp_id
from eventing.log import control
from eventing.peering.models import Misbehaviour
from eventing.peering.rules.domain_documents import read as document_read
from eventing.peering.selectors.domain_documents import domain_keys, domain_known
from eventing.replication.models import ReplicaAdmission, ReplicaEnd
from eventing.replication.selectors.replicas import origin_admitted
from eventing.replication.services.replica_admissions import documents_purge
from eventing.replication.services.replica_links import links_offer
from eventing.replication.services.replica_statements import (
    documents_for,
    statements_accept,
    statements_acknowledged,
    statements_of,
    statements_pending,
)
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import descriptor_make, descriptor_verified
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.rendezvous_points import rendezvous_point_create, rendezvous_point_update
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at, types_at
from tests.replication.homes import (
    ANN,
    BEN,
    OWN,
    Home,
    make,
    now_ms,
    row_of,
    taken,
)

pytestmark = pytest.mark.usefixtures("home_stores")


def test_an_update_of_the_home_takes_effect_whoever_carries_it(a: Home) -> None:
    make(a)
    policy = [{"issuer": "peer:localhost", "allow": ["publish"]}]
    assert taken(a, a.descriptor(title="Rain", policy=policy)) == []
    row = row_of(a)
    assert (row.title, row.version) == ("Rain", 2)
    assert descriptor_get(a.rp).allows(BEN, "publish"), "peer:localhost at its home is our own people"
    assert "rp.changed" in types_at(f"{a.rp}.admin")


def test_a_policy_of_the_home_that_differs_in_the_type_of_a_value_only_is_reported(a: Home) -> None:
    def policy(level: Any) -> list[Any]:
        return [{"issuer": "peer:localhost", "claims": {"level": {"equals": level}}, "allow": ["publish"]}]

    make(a, descriptor=a.descriptor(policy=policy(1)))
    assert taken(a, a.descriptor(policy=policy(True))) == []
    assert row_of(a).policy[0]["claims"]["level"]["equals"] is True
    assert events_at(f"{a.rp}.admin")[-1]["data"]["changed"] == ["policy"]


def test_a_downgrade_to_an_older_version_changes_nothing(a: Home) -> None:
    make(a)
    older = a.descriptor(title="Old", policy=[{"issuer": "anyone", "allow": ["publish"]}])
    assert taken(a, a.descriptor(title="New")) == []
    assert taken(a, older) == [], "late, not a lie"
    assert row_of(a).title == "New"


def test_a_forged_descriptor_changes_nothing_and_is_counted(a: Home) -> None:
    make(a)
    forged = a.descriptor(title="Mine", by=OtherDomain("m.test").keys[0])
    assert taken(a, forged) != []
    assert row_of(a).title == "Weather"
    noted = Misbehaviour.objects.get()
    assert (noted.kind, noted.carrier, noted.count) == ("forged", "c.test", 1)


def test_a_forged_admission_admits_nobody_and_is_counted(a: Home) -> None:
    make(a)
    assert taken(a, a.admission("m.test", by=OtherDomain("m.test").keys[0])) != []
    assert not origin_admitted(a.rp, "m.test", datetime.now(UTC))
    assert Misbehaviour.objects.get().kind == "forged"


def test_an_expired_admission_admits_nobody(a: Home) -> None:
    make(a)
    assert taken(a, a.admission("c.test", lasts_s=-120)) == []
    assert not origin_admitted(a.rp, "c.test", datetime.now(UTC))


def test_an_older_admission_does_not_bring_back_who_left(a: Home) -> None:
    make(a)
    before = a.admission("c.test", issued_at_ms=now_ms() - 1000)
    assert taken(a, a.admission("c.test", lasts_s=-60)) == []
    assert taken(a, before) == []
    assert not origin_admitted(a.rp, "c.test", datetime.now(UTC))


def test_the_homes_word_makes_an_unknown_participants_document_known(a: Home) -> None:
    make(a)
    c, liar = OtherDomain("c.test"), OtherDomain("c.test")
    admission = a.admission("c.test", fingerprint=c.fingerprint)
    assert taken(a, admission, domains=[liar.document()]) == []
    assert not domain_known("c.test"), "a document of another key than the home vouches for is not taken"
    later = a.admission("c.test", fingerprint=c.fingerprint, issued_at_ms=now_ms() + 1)
    assert taken(a, later, domains=[c.document()]) == []
    assert set(domain_keys("c.test")) == {c.fingerprint}
    assert {document_read(one).domain for one in documents_for([a.rp])} == {"a.test", "c.test", OWN}


def test_the_homes_rotated_key_is_followed_by_its_document(a: Home) -> None:
    make(a)
    a.add_key()
    assert taken(a, a.descriptor(title="Rain")) != [], "signed by a key that we do not know yet"
    assert taken(a, a.descriptor(title="Rain"), domains=[a.document()]) == []
    assert row_of(a).title == "Rain"


def test_more_history_than_there_is_room_for_is_not_taken(a: Home, configure: Callable[..., None]) -> None:
    make(a)
    configure(history_quota_bytes=150_000)
    more = {"max_events": 500, "max_bytes": 900_000, "max_age_s": None}
    assert taken(a, a.descriptor(history=more)) == []
    row = row_of(a)
    assert (row.max_bytes, row.max_events, row.version) == (100_000, 500, 2)


def test_a_name_moves_to_another_rp_of_the_home(a: Home) -> None:
    make(a)
    other = Home.__new__(Home)
    other.__dict__.update(a.__dict__)
    other.genesis = {**a.genesis, "nonce": "another"}
    other.rp = rp_id(other.genesis)
    make(other)
    assert row_of(a).name is None
    assert row_of(other).name == "/a.test/weather/"


def test_the_end_at_the_home_ends_the_replica_and_is_passed_on(a: Home) -> None:
    make(a)
    links_offer()
    assert taken(a, a.descriptor(ended=True)) == []
    assert not RendezvousPoint.objects.exists()
    assert control.log_state(a.rp) is None
    end = ReplicaEnd.objects.get()
    assert (end.reason, end.pending, end.urls) == ("deleted", ["a.test"], [])
    assert "replica.removed" in types_at("domain.admin")
    with pytest.raises(NotFound):
        descriptor_get(a.rp)


def test_an_admission_taken_back_ends_the_replica(a: Home) -> None:
    make(a)
    assert taken(a, a.admission(publishes=False, issued_at_ms=now_ms() + 1)) == []
    assert not RendezvousPoint.objects.exists()
    assert ReplicaEnd.objects.get().urls == ["https://a.test"], "clients find the RP at its home"


def test_two_descriptors_of_one_version_are_counted_and_all_replicas_keep_the_same(a: Home) -> None:
    make(a)
    one, other = a.descriptor(title="one"), None
    a.version -= 1
    other = a.descriptor(title="other")
    assert taken(a, one, other) == []
    kept = row_of(a).title
    assert kept == ("one" if one.payload > other.payload else "other")
    assert taken(a, one) == []
    assert row_of(a).title == kept
    assert {(noted.kind, noted.origin) for noted in Misbehaviour.objects.all()} == {("equivocation", "a.test")}


def test_an_rp_put_back_from_a_copy_goes_on_after_the_version_that_others_hold() -> None:
    row = rendezvous_point_create(principal=ANN, title="v1")
    copy = RendezvousPoint.objects.get(id=row.id)
    for title in ("v2", "v3"):
        rendezvous_point_update(reference=row.id, principal=ANN, changes={"title": title})
    out_there = statements_of(row.id)
    copy.save()  # the copy is put back
    assert statements_accept(row.id, out_there, carrier="b.test") == []
    row.refresh_from_db()
    said = descriptor_verified(statements_of(row.id)[0], domain_keys(OWN))
    assert (row.title, row.version, said.version) == ("v1", 4, 4)
    forged = descriptor_make(dataclasses.replace(said, version=9), OtherDomain().keys[0])
    statements_accept(row.id, [forged], carrier="b.test")
    row.refresh_from_db()
    assert row.version == 4


def test_documents_of_domains_that_nobody_needs_are_forgotten(a: Home) -> None:
    c = OtherDomain("c.test")
    make(a, admissions=[a.admission(), a.admission("c.test", fingerprint=c.fingerprint)])
    assert (
        taken(a, a.admission("c.test", fingerprint=c.fingerprint, issued_at_ms=now_ms() + 1), domains=[c.document()])
        == []
    )
    later = datetime.now(UTC) + timedelta(days=2)
    assert documents_purge(now=later) == 0
    ReplicaAdmission.objects.filter(domain="c.test").delete()
    assert documents_purge(now=later) == 1
    assert domain_known("a.test")


def test_statements_about_our_own_rp_are_nobody_elses_to_make(a: Home) -> None:
    row = rendezvous_point_create(principal=ANN)
    assert statements_accept(row.id, [a.descriptor(rp=row.id)], carrier="a.test") == []
    row.refresh_from_db()
    assert row.version == 1


def test_a_home_that_was_put_back_from_a_copy_is_shown_its_later_descriptor_again(a: Home) -> None:
    """It had taken all statements before. Once shown, it goes on after the version that we hold."""
    make(a)
    links_offer()
    older = a.descriptor(title="v2 of the copy")
    assert taken(a, a.descriptor(title="v3")) == []
    statements_acknowledged("a.test", {a.rp: row_of(a).statements})
    assert statements_accept(a.rp, [older], carrier="c.test") == []
    assert not statements_pending("a.test", [a.rp]), "late by another way"
    assert statements_accept(a.rp, [older], carrier="a.test") == []
    assert statements_of(a.rp)[0] in statements_pending("a.test", [a.rp])[a.rp].statements
    assert row_of(a).title == "v3"


def test_a_home_that_contradicts_itself_is_shown_what_we_keep(a: Home) -> None:
    make(a)
    links_offer()
    one = a.descriptor(title="one")
    a.version -= 1
    kept, other = sorted([one, a.descriptor(title="other")], key=lambda statement: statement.payload, reverse=True)
    assert taken(a, kept) == []
    statements_acknowledged("a.test", {a.rp: row_of(a).statements})
    assert statements_accept(a.rp, [other], carrier="a.test") == []
    assert kept in statements_pending("a.test", [a.rp])[a.rp].statements


def test_an_rp_put_back_from_a_copy_and_changed_differently_goes_on_after_both() -> None:
    row = rendezvous_point_create(principal=ANN, title="v1")
    copy = RendezvousPoint.objects.get(id=row.id)
    rendezvous_point_update(reference=row.id, principal=ANN, changes={"title": "v2"})
    out_there = statements_of(row.id)
    copy.save()  # the copy is put back
    rendezvous_point_update(reference=row.id, principal=ANN, changes={"title": "another v2"})
    assert statements_accept(row.id, out_there, carrier="b.test") == []
    said = descriptor_verified(statements_of(row.id)[0], domain_keys(OWN))
    assert (said.title, said.version) == ("another v2", 3)
    assert statements_accept(row.id, out_there, carrier="b.test") == []
    row.refresh_from_db()
    assert row.version == 3
