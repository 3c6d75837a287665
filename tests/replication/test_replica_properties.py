"""What a participant takes of the home's statements of properties, and what it passes on."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from eventing.core import signing
from eventing.core.ids import canonical_json
from eventing.core.signing import Signed
from eventing.peering.models import Misbehaviour
from eventing.peering.wire import messages as wire
from eventing.replication.models import ReplicaLink
from eventing.replication.services.replica_links import links_offer
from eventing.replication.services.replica_properties import properties_accept
from eventing.replication.services.replica_statements import statements_acknowledged, statements_pending
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import BadStatement, properties_read, unpacked
from eventing.rps.services.rendezvous_points import rendezvous_point_create, rendezvous_point_update
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at
from tests.replication.homes import ANN, OPEN_TO_B, Home, make, now_ms, row_of

pytestmark = pytest.mark.usefixtures("home_stores")


def accept(home: Home, statement: Signed) -> bool:
    return properties_accept(home.rp, statement, carrier="c.test")


def test_a_target_of_the_home_is_taken_from_any_carrier_reported_and_passed_on(a: Home) -> None:
    make(a)
    links_offer()
    told = {a.rp: row_of(a).statements}
    statements_acknowledged("a.test", told)
    assert statements_pending("a.test", [a.rp]) == {}
    statement = a.properties(0.999)
    assert accept(a, statement)
    assert row_of(a).reliability == 0.999
    event = events_at(f"{a.rp}.admin")[-1]
    assert event["data"]["changed"] == ["reliability"]
    assert event["data"]["rp"]["reliability"] == 0.999
    assert statements_pending("a.test", [a.rp])[a.rp].properties == [statement]
    assert not accept(a, statement), "the same again changes nothing"


def test_an_older_statement_does_not_bring_a_target_back(a: Home) -> None:
    make(a)
    older = a.properties(0.9, issued_at_ms=now_ms() - 1000)
    assert accept(a, a.properties(None))
    assert not accept(a, older)
    assert row_of(a).reliability is None


def test_a_forged_target_changes_nothing_and_is_counted(a: Home) -> None:
    make(a)
    assert not accept(a, a.properties(0.9, by=OtherDomain("m.test").keys[0]))
    assert not accept(a, a.properties(0.9, home="m.test"))
    assert row_of(a).reliability is None
    assert sum(Misbehaviour.objects.values_list("count", flat=True)) == 2


def test_properties_of_a_later_release_are_taken_for_what_is_known_of_them(a: Home) -> None:
    make(a)
    body = json.loads(a.properties(0.99).payload)
    body["properties"]["colour"] = {"deep": ["blue"]}
    assert accept(a, signing.sign(signing.PROPERTIES, canonical_json(body), a.keys[-1]))
    assert row_of(a).reliability == 0.99


@pytest.mark.parametrize("millionths", [0, 1_000_000, -1, 0.5, "1", None, True])
def test_a_target_that_is_no_share_below_one_is_refused(a: Home, millionths: Any) -> None:
    body = json.loads(a.properties(0.99).payload)
    body["properties"]["reliability_ppm"] = millionths
    with pytest.raises(BadStatement):
        properties_read(signing.sign(signing.PROPERTIES, canonical_json(body), a.keys[-1]))


def test_a_target_without_an_own_replica_is_ignored(a: Home) -> None:
    assert not accept(a, a.properties(0.99))


def test_the_home_signs_each_change_of_the_target_and_nothing_else() -> None:
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B)
    assert (row.reliability, row.property_statement) == (None, None)
    row = rendezvous_point_update(reference=row.id, principal=ANN, changes={"reliability": 0.9999})
    first = properties_read(unpacked(row.property_statement or b""))
    assert (first.reliability, first.rp) == (0.9999, row.id)
    row = rendezvous_point_update(reference=row.id, principal=ANN, changes={"title": "Other"})
    assert properties_read(unpacked(bytes(row.property_statement or b""))) == first
    row = rendezvous_point_update(reference=row.id, principal=ANN, changes={"reliability": None})
    last = properties_read(unpacked(row.property_statement or b""))
    assert last.reliability is None
    assert last.issued_at_ms > first.issued_at_ms


def test_a_home_restored_from_a_copy_states_its_properties_later_than_those_it_forgot() -> None:
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B, reliability=0.9)
    copy = bytes(row.property_statement or b"")
    row = rendezvous_point_update(reference=row.id, principal=ANN, changes={"reliability": 0.99})
    forgotten = unpacked(row.property_statement or b"")
    RendezvousPoint.objects.filter(id=row.id).update(property_statement=copy, reliability=0.9)
    assert properties_accept(row.id, forgotten, carrier="b.test")
    stated = properties_read(unpacked(bytes(RendezvousPoint.objects.get(id=row.id).property_statement or b"")))
    assert stated.reliability == 0.9
    assert stated.issued_at_ms > properties_read(forgotten).issued_at_ms


def test_a_request_without_properties_is_that_of_an_older_release_but_for_an_appended_member(a: Home) -> None:
    make(a)
    links_offer()
    assert ReplicaLink.objects.filter(rp=a.rp).exists()
    part = wire.RpPart(a.rp, properties=[a.properties(0.9)])
    array = msgspec.msgpack.decode(wire.encode(wire.ExchangeRequest(wire.VERSION, [part])))
    older = [*array[1][0][:8]]
    read = wire.request(msgspec.msgpack.encode([wire.VERSION, [older]]))
    assert read.parts[0].properties == []
    assert read.parts[0].own == ""
