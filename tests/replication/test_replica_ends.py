"""How a replica ends: by its lease, by leaving, by the end at its home; and what is left behind for a while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventing.core.errors import ApplicationError, Forbidden, NotFound
from eventing.operations.services.leases import leases_reap
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.replication.models import ReplicaEnd, ReplicaLink
from eventing.replication.services.replica_admissions import replica_admit
from eventing.replication.services.replica_ends import end_acknowledged, ends_due, ends_purge
from eventing.replication.services.replica_links import links_offer
from eventing.replication.services.replicas import replica_leave, replicas_to_renew
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import descriptor_verified, unpacked
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_create,
    rendezvous_point_delete,
    rendezvous_point_renew,
    rendezvous_point_update,
)
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import (
    ANN,
    BEN,
    OPEN_TO_B,
    OWN,
    ROOT,
    Home,
    join_of,
    make,
    now_ms,
    peer,
    row_of,
    taken,
)

pytestmark = pytest.mark.usefixtures("home_stores")


def test_a_renewed_admission_renews_the_replicas_lease(a: Home) -> None:
    before = make(a, admissions=[a.admission(lasts_s=100)])
    assert replicas_to_renew(now=before.created_at + timedelta(seconds=40)) == []
    assert [row.id for row in replicas_to_renew(now=before.created_at + timedelta(seconds=60))] == [a.rp]
    assert taken(a, a.admission(lasts_s=900, issued_at_ms=now_ms() + 1)) == []
    row = row_of(a)
    assert row.expires_at > before.expires_at
    assert replicas_to_renew(now=before.created_at + timedelta(seconds=60)) == []


def test_a_replica_that_nobody_renews_lapses(a: Home) -> None:
    row = make(a, admissions=[a.admission(lasts_s=10)])
    links_offer()
    leases_reap(now=row.expires_at + timedelta(seconds=1))
    assert not RendezvousPoint.objects.exists()
    assert not ReplicaLink.objects.exists()
    end = ReplicaEnd.objects.get()
    assert (end.reason, end.urls) == ("lapsed", ["https://a.test"])


def test_leaving_keeps_where_clients_go_for_a_day(a: Home) -> None:
    make(a, admissions=[a.admission(), a.admission("c.test")])
    with pytest.raises(Forbidden):
        replica_leave(rp=a.rp, principal=BEN)
    replica_leave(rp=a.rp, principal=ANN)
    end = ReplicaEnd.objects.get()
    assert (end.reason, end.urls, end.name) == ("left", ["https://a.test", "https://c.test"], "/a.test/weather/")
    assert ends_purge(now=datetime.now(UTC) + timedelta(hours=23)) == 0
    assert ends_purge(now=datetime.now(UTC) + timedelta(hours=25)) == 1
    with pytest.raises(NotFound, match="herald replica list"):
        replica_leave(rp=a.rp, principal=ROOT)


def test_joining_again_forgets_that_we_left(a: Home) -> None:
    make(a)
    replica_leave(rp=a.rp, principal=ROOT)
    make(a)
    assert not ReplicaEnd.objects.exists()


@pytest.mark.parametrize("lapsed", [False, True])
def test_a_deleted_or_lapsed_rp_signs_its_end_for_every_replica(lapsed: bool) -> None:
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B, lease_s=60)
    replica_admit(join=join_of("b.test", row.id))
    links_offer()
    if lapsed:
        leases_reap(now=row.expires_at + timedelta(seconds=1))
    else:
        rendezvous_point_delete(reference=row.id, principal=ANN)
    (end,) = ends_due(now=datetime.now(UTC) + timedelta(minutes=2))
    said = descriptor_verified(unpacked(end.statement or b""), domain_keys(OWN))
    assert said.ended
    assert said.version == 2
    assert end.pending == ["b.test"]
    end_acknowledged(rp=row.id, acknowledged=["b.test"])
    assert ends_due(now=datetime.now(UTC) + timedelta(hours=1)) == []


def test_an_rp_without_replicas_leaves_nothing_behind() -> None:
    row = rendezvous_point_create(principal=ANN)
    rendezvous_point_delete(reference=row.id, principal=ANN)
    assert not ReplicaEnd.objects.exists()


@pytest.mark.parametrize(
    "act",
    [
        lambda rp: rendezvous_point_update(reference=rp, principal=ROOT, changes={"title": "Mine"}),
        lambda rp: rendezvous_point_renew(reference=rp, principal=ROOT),
        lambda rp: rendezvous_point_delete(reference=rp, principal=ROOT),
    ],
)
def test_a_replica_is_changed_at_its_home_only(a: Home, act: Callable[[str], Any]) -> None:
    make(a)
    with pytest.raises(ApplicationError, match=r"only a\.test can change") as refused:
        act(a.rp)
    assert refused.value.status == 409
    assert refused.value.extra == {"home": "a.test"}
