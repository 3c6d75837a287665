"""Sweeps over many shared RPs: what does not change costs next to nothing, and what changes is found."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from eventing.outbox.models import OutboxEntry
from eventing.peering.rules.deliveries import Failure
from eventing.peering.selectors.deliveries import deliveries_held
from eventing.peering.services.deliveries import backlog_noted, delivery_failed, delivery_succeeded
from eventing.replication.forwarding import comparing, sweeping
from eventing.replication.forwarding.comparing import peers_compare
from eventing.replication.joining import link_offers
from eventing.replication.joining.link_offers import ALL_S, links_offer_due
from eventing.replication.models import ReplicaAdmission, ReplicaLink
from eventing.replication.services.replica_links import OFFER_AGAIN_S, Offered, links_offer
from eventing.rps.models import RendezvousPoint
from eventing.store import peer_state
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import publish, shared
from tests.replication.shared_rp import admit, new_rp, peer_made

pytestmark = pytest.mark.usefixtures("shared_stores")


class Looks:
    """Calls of links_offer: for all RPs, or for some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[list[str] | None] = []
        monkeypatch.setattr(link_offers, "links_offer", self.offer)

    def offer(self, *, rps: list[str] | None = None, **more: object) -> list[Offered]:
        self.calls.append(rps)
        return links_offer(rps=rps, **more)  # type: ignore[arg-type]

    def after(self, **later: float) -> list[list[str] | None]:
        self.calls.clear()
        links_offer_due(now=timezone.now() + timedelta(**later))
        return list(self.calls)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch, b: OtherDomain) -> Looks:
    """All RPs were looked at, and links stand."""
    made = Looks(monkeypatch)
    shared(b)
    made.after()
    assert made.after() in ([], [None])
    assert made.after() == []
    return made


def test_all_rps_are_looked_at_again_after_a_while(looks: Looks) -> None:
    assert looks.after(seconds=ALL_S + 1) == [None]


def test_a_new_participant_has_all_rps_looked_at(looks: Looks) -> None:
    rp = new_rp()
    peer_made(OtherDomain("c.test"))
    assert looks.after() == [None]
    admit(rp, OtherDomain("c.test"))
    RendezvousPoint.objects.filter(id=rp).update(statements=2)
    assert looks.after() == [None]
    assert ReplicaLink.objects.filter(rp=rp, peer="c.test").exists()


def test_an_rp_that_took_the_place_of_another_has_all_rps_looked_at(looks: Looks, b: OtherDomain) -> None:
    old = RendezvousPoint.objects.get()
    old.delete()
    new = shared(b)
    RendezvousPoint.objects.filter(id=new).update(statements=old.statements)
    assert looks.after() == [None]


def test_an_admission_that_expires_has_all_rps_looked_at(looks: Looks, b: OtherDomain) -> None:
    ReplicaAdmission.objects.update(expires_at=timezone.now() + timedelta(seconds=5))
    looks.after(seconds=ALL_S + 1)
    admit(new_rp(), b, for_s=ALL_S + 10)
    looks.after(seconds=ALL_S + 2)
    looks.after(seconds=ALL_S + 2)
    assert looks.after(seconds=ALL_S + 3) == []
    assert looks.after(seconds=ALL_S + 11) == [None]


def test_a_stopped_link_is_offered_again_without_a_look_at_the_others(looks: Looks, b: OtherDomain) -> None:
    rp = shared(b)
    looks.after()
    looks.after()
    long_ago = timezone.now() - timedelta(seconds=OFFER_AGAIN_S + 1)
    ReplicaLink.objects.filter(rp=rp).update(state="stopped", changed_at=long_ago)
    assert looks.after() == [[rp]]
    assert ReplicaLink.objects.get(rp=rp).state == "live"


@pytest.fixture
def pages(b: OtherDomain, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Five RPs that are shared with b, in three pages, which a sweep compared."""
    monkeypatch.setattr(sweeping, "LINKS_MAX", 2)
    monkeypatch.setattr(comparing, "LINKS_MAX", 2)
    monkeypatch.setattr("eventing.replication.selectors.replicas.LINKS_MAX", 2)
    rps = sorted(shared(b) for _ in range(5))
    sweeping.peers_sweep()
    return rps


def compared() -> set[str]:
    """The RPs that the next comparison finds dirty."""
    redis_client().delete("herald:peer:{b.test}:dirty")
    peer_state.compare_again(["b.test"])
    sweeping.peers_sweep()
    return {rp.decode() for rp in redis_client().smembers("herald:peer:{b.test}:dirty")}  # type: ignore[union-attr]


def test_a_lost_wake_up_is_found_a_page_at_a_time(pages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "links_pending", list)
    for rp in pages:
        publish(rp, 1)
    assert [compared() for _ in range(4)] == [set(pages[:2]), set(pages[2:4]), set(pages[4:]), set(pages[:2])]


def test_everything_is_compared_at_once_while_delivery_fails(pages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "links_pending", list)
    for rp in pages:
        publish(rp, 1)
    delivery_failed(peer="b.test", failure="unreachable", detail="gone", jitter=0.5)  # type: ignore[arg-type]
    assert peers_compare(["b.test"], ["b.test"])["b.test"].lacking == pages
    delivery_succeeded(peer="b.test")
    assert compared() == set(pages[:2])


def reported() -> int:
    """Return how many events about deliveries wait for the commit, which a test has not."""
    return OutboxEntry.objects.filter(content__type__endswith="peer.delivery").count()


def test_a_sweep_reports_a_delivery_that_changed_and_then_nothing(b: OtherDomain) -> None:
    shared(b)
    sweeping.peers_sweep()
    before = reported()
    delivery_failed(peer="b.test", failure=Failure.REFUSED, detail="It does not know us.", jitter=0.5)
    sweeping.peers_sweep()
    assert reported() == before + 1
    sweeping.peers_sweep()
    assert reported() == before + 1


def test_a_backlog_is_written_only_where_it_differs_from_the_rows_just_read(b: OtherDomain) -> None:
    now = timezone.now()
    for backlog, writes in ((0, False), (3, True), (3, False), (4, True), (0, True), (0, False)):
        at = now if backlog else None
        held = deliveries_held()
        assert backlog_noted(peer="b.test", backlog=backlog, oldest_at=at, now=now, held=held) is writes
        row = deliveries_held().get("b.test")
        assert (0 if row is None else row.backlog) == backlog
