"""Regions of RPs that the same domains share: links without administrators, what an acquaintance gets, and when it ends."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Forbidden, NotFound, QuotaExceeded, RateLimited, Unavailable
from eventing.core.ids import rp_id
from eventing.core.signing import Signed
from eventing.peering.models import Acquaintance, Misbehaviour
from eventing.peering.ports import DirectoryRecord, directory_record
from eventing.peering.rules import acquaintances as bounds
from eventing.peering.selectors.identities import identities_forget
from eventing.peering.selectors.partners import acquaintance_get, acquaintances_forget
from eventing.peering.services.acquaintances import acquaintance_begin
from eventing.peering.services.deliveries import delivery_failed
from eventing.peering.services.domain_documents import document_accept
from eventing.peering.services.misbehaviour import misbehaviour_flush, misbehaviour_note
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import Sender
from eventing.replication.forwarding import inbound
from eventing.replication.forwarding.outbound_request import LazyVectors, request_build
from eventing.replication.joining import handler as joining
from eventing.replication.joining.messages import JoinRequest, encode
from eventing.replication.models import ReplicaAdmission, ReplicaLink
from eventing.replication.regions import handler, upkeep
from eventing.replication.regions.messages import LinkMessage, SentLinkMessage, link_message_read, link_message_taken
from eventing.replication.selectors.forwarding import participations_forget
from eventing.replication.selectors.regions import regions_found
from eventing.replication.services.replica_admissions import may_replicate, replica_admit
from eventing.replication.services.replica_links import links_offer
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import join_make, join_read
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store import region_messages
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at, principal
from tests.replication import shared_rp
from tests.replication.homes import OWN, Home, join_of, make, peer, taken
from tests.replication.shared_rp import Origin, counted

pytestmark = pytest.mark.usefixtures("home_stores")


class Scene:
    """Domains of the directory, none of them a peer: a is the home of an RP, which d and this domain replicate.

    Attributes:
        sent: messages about links that this domain sent, by receiver.
        fails: what becomes of messages to a domain.
    """

    def __init__(self) -> None:
        self.directory: dict[str, DirectoryRecord] = {}
        directory_record.connect(lambda name: self.directory.get(name))
        self.home, self.d = Home("a.test"), OtherDomain("d.test", url="https://d.test")
        for domain in (self.home, self.d):
            self.known(domain)
        self.rp = self.shared(self.home)
        self.clock = SimpleNamespace(now=1000.0)
        self.upkeep = upkeep.RegionUpkeep(lambda: self.clock.now)
        self.sent: list[tuple[str, LinkMessage]] = []
        self.fails: dict[str, PeerError] = {}

    def known(self, domain: OtherDomain) -> None:
        self.directory[domain.name] = DirectoryRecord(domain.url, domain.fingerprint)
        document_accept(domain.document(), fingerprint=domain.fingerprint)

    def shared(self, home: Home, *others: OtherDomain) -> str:
        """A replica here of the home's RP, which d and others have too."""
        admitted = [home.admission(one.name, fingerprint=one.fingerprint) for one in (self.d, *others)]
        make(home, admissions=[home.admission(), *admitted])
        return home.rp

    def another(self, nonce: str) -> Home:
        """The same home with another RP."""
        home = copy.copy(self.home)
        home.genesis = {**home.genesis, "nonce": nonce}
        home.rp = rp_id(home.genesis)
        home.version = 0
        return home

    def called(self, url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        assert path == upkeep.REGION_PATH
        self.sent.append((domain, link_message_read(body)))
        if domain in self.fails:
            raise self.fails[domain]
        return b""

    def says(self, domain: OtherDomain, kind: Any, **more: Any) -> None:
        """A message of the domain, as a gateway takes it."""
        sender = Sender(domain.name, "k", None, acquaintance=acquaintance_get(domain.name))
        handler.region(sender, encode(LinkMessage(1, self.rp, kind, **more)))

    def sweep(self, seconds: float = 1.0) -> int:
        self.clock.now += seconds
        for forget in (acquaintances_forget, identities_forget, participations_forget):
            forget()
        return self.upkeep.sweep()

    def asked(self) -> set[str]:
        found = {domain for domain, message in self.sent if message.kind == "ask"}
        self.sent.clear()
        return found

    def acquainted(self) -> Acquaintance:
        """d as an acquaintance, with its links."""
        self.sweep()
        self.says(self.d, "accept")
        self.sweep()
        acquaintances_forget()
        links_offer()
        return Acquaintance.objects.get(name="d.test")

    def ended(self) -> list[str]:
        """Reasons of ends, as told at domain.admin."""
        kinds = [one for one in events_at("domain.admin") if one["type"].endswith("acquaintance.ended")]
        return [one["data"]["reason"] for one in kinds]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene()
    monkeypatch.setattr(upkeep, "call", made.called)
    yield made
    directory_record.connect(None)


def links() -> set[tuple[str, str]]:
    return set(ReplicaLink.objects.values_list("rp_id", "peer"))


def overlay(mode: str) -> Any:
    return override_settings(HERALD=dataclasses.replace(config(), overlay=mode))


def exchanged(scene: Scene, *parts: wire.RpPart, **more: Any) -> wire.ExchangeAnswer:
    """An exchange of d."""
    participations_forget()
    body = wire.encode(wire.ExchangeRequest(wire.VERSION, list(parts), **more))
    return wire.answer(inbound.exchange(Sender("d.test", "k", None, acquaintance=acquaintance_get("d.test")), body))


def test_domains_that_a_home_admitted_link_without_administrators(scene: Scene) -> None:
    scene.sweep()
    assert scene.asked() == {"a.test", "d.test"}
    assert not Acquaintance.objects.exists(), "nobody has answered"
    scene.says(scene.d, "accept")
    scene.says(scene.home, "ask", urgent=True)
    assert scene.sweep() == 2
    assert ("a.test", "accept") in {(domain, message.kind) for domain, message in scene.sent}
    acquaintances_forget()
    links_offer()
    assert links() == {(scene.rp, "a.test"), (scene.rp, "d.test")}


def test_a_hundred_rps_of_one_region_are_one_view_and_one_request_for_a_link(scene: Scene) -> None:
    for number in range(100):
        scene.shared(scene.another(str(number)))
    found = regions_found(timezone.now())
    assert [(region.rps, region.participants) for region in found.values()] == [(101, ("a.test", "d.test", OWN))]
    scene.sweep()
    assert len(scene.sent) == 2
    row = scene.acquainted()
    assert row.name == "d.test"
    assert len(links()) == 101


def test_a_peer_is_linked_as_ever_and_asked_for_nothing(scene: Scene) -> None:
    peer(scene.d)
    scene.sweep()
    assert scene.asked() == {"a.test"}


def test_with_the_setting_peers_there_are_no_acquaintances(scene: Scene) -> None:
    scene.acquainted()
    with overlay("peers"):
        scene.sweep()
        assert not Acquaintance.objects.exists()
        assert scene.ended() == ["setting"]
        with pytest.raises(Forbidden):
            scene.says(scene.d, "ask")


def test_an_acquaintance_is_linked_where_the_home_names_its_first_key_and_nowhere_else(scene: Scene) -> None:
    elsewhere, another_key = scene.another("elsewhere"), scene.another("key")
    make(elsewhere, admissions=[elsewhere.admission()])
    make(another_key, admissions=[another_key.admission(), another_key.admission("d.test", fingerprint="x" * 43)])
    scene.acquainted()
    assert {rp for rp, name in links() if name == "d.test"} == {scene.rp}


def test_a_domain_that_the_directory_does_not_name_or_names_with_another_key_is_not_asked(scene: Scene) -> None:
    scene.directory["d.test"] = DirectoryRecord("https://d.test", OtherDomain("d.test").fingerprint)
    del scene.directory["a.test"]
    scene.sweep()
    assert scene.asked() == set()


def test_an_acquaintance_ends_when_its_record_names_another_key(scene: Scene) -> None:
    scene.acquainted()
    scene.directory["d.test"] = DirectoryRecord("https://d.test", OtherDomain("d.test").fingerprint)
    scene.sweep(upkeep.MEMBERS_S)
    assert scene.ended() == ["identity"]
    acquaintances_forget()
    links_offer()
    assert links() == set()


def test_an_acquaintance_ends_with_its_admission(scene: Scene) -> None:
    scene.acquainted()
    withdrawn = scene.home.admission("d.test", publishes=False, expires_at_ms=1, fingerprint=scene.d.fingerprint)
    assert taken(scene.home, withdrawn) == []
    scene.sweep()
    scene.sweep(upkeep.MEMBERS_S)
    assert scene.ended() == ["link-ended"]


def test_an_acquaintance_to_which_delivery_fails_ends_and_is_asked_again(scene: Scene) -> None:
    row = scene.acquainted()
    scene.asked()
    long_ago = timezone.now() - timedelta(seconds=upkeep.FAILING_S + 1)
    delivery_failed(peer="d.test", failure="unreachable", detail="gone", jitter=0.5, now=long_ago)  # type: ignore[arg-type]
    scene.sweep()
    assert scene.ended() == ["unreachable"]
    while "d.test" not in scene.asked():
        scene.sweep()
    scene.says(scene.d, "accept")
    scene.sweep()
    assert Acquaintance.objects.get(name="d.test").created_at > row.created_at


def test_a_domain_that_cannot_be_reached_is_asked_again_and_again(scene: Scene) -> None:
    scene.fails["d.test"] = PeerError("unreachable", "no answer")
    scene.sweep()
    times = 0
    for _ in range(300):
        scene.asked()
        scene.sweep()
        times += "d.test" in scene.asked()
    assert 4 <= times <= 20, "after pauses that double to a minute"


def test_an_acquaintance_that_goes_on_misbehaving_ends_and_is_refused(scene: Scene) -> None:
    scene.acquainted()
    scene.sweep(bounds.FAULTS_S)
    for _ in range(bounds.FAULTS_MAX):
        misbehaviour_note("flooding", carrier="d.test", detail="More than its rate allows.")
    misbehaviour_flush()
    scene.sweep(bounds.FAULTS_S)
    assert scene.ended() == ["misbehaviour"]
    scene.sent.clear()
    scene.says(scene.d, "ask")
    scene.sweep()
    assert [(domain, message.kind) for domain, message in scene.sent if domain == "d.test"] == [("d.test", "refuse")]


def test_acquaintances_beyond_their_places_are_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventing.peering.services.acquaintances.ACQUAINTANCES_MAX", 0)
    scene.sweep()
    scene.says(scene.d, "accept")
    scene.sweep()
    scene.sweep()
    assert not Acquaintance.objects.exists()
    assert ("d.test", "end") in {(domain, message.kind) for domain, message in scene.sent}


def test_links_with_acquaintances_are_no_more_than_their_bound(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        scene.shared(scene.another(str(number)))
    monkeypatch.setattr("eventing.replication.services.replica_links.LINKS_MAX", 4)
    scene.acquainted()
    assert len(links()) == 4


def test_links_outlive_a_restart_of_the_forwarder(scene: Scene) -> None:
    scene.acquainted()
    scene.asked()
    scene.upkeep = upkeep.RegionUpkeep(lambda: scene.clock.now)
    assert scene.sweep() == 0
    assert scene.asked() == {"a.test"}
    assert Acquaintance.objects.filter(name="d.test").exists()


# Messages about links


def test_messages_about_links_of_rps_that_are_not_shared_are_refused(scene: Scene) -> None:
    stranger = OtherDomain("x.test", url="https://x.test")
    scene.known(stranger)
    with pytest.raises(NotFound):
        scene.says(stranger, "ask")
    assert region_messages.region_messages_take() == []


def test_messages_about_links_that_wait_are_no_more_than_their_places(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_messages, "WAITING_MAX", 2)
    scene.says(scene.d, "ask")
    scene.says(scene.d, "ask")
    with pytest.raises(Unavailable):
        scene.says(scene.d, "ask")


@pytest.mark.parametrize(
    "body", [b"", b"\xff", encode([1, "a" * 26, "marry"]), encode([1, "A", "ask"]), b"\x91" * 70_000]
)
def test_malformed_messages_about_links_are_refused(scene: Scene, body: bytes) -> None:
    with pytest.raises(wire.BadMessage):
        handler.region(Sender("d.test", "k", None), body)


def test_what_waits_is_read_as_it_was_put(scene: Scene) -> None:
    scene.says(scene.d, "end", reason=3)
    taken_ = [link_message_taken(one) for one in region_messages.region_messages_take()]
    assert taken_ == [SentLinkMessage("d.test", LinkMessage(1, scene.rp, "end", reason=3))]


# The exchange


def test_an_acquaintance_brings_events_of_rps_that_both_are_admitted_to(scene: Scene) -> None:
    scene.acquainted()
    run = Origin(scene.d, scene.rp).run(3)
    answer = exchanged(scene, wire.RpPart(scene.rp, {}, [run]))
    assert answer.parts[0].error == ""
    assert shared_rp.held(scene.rp) == run.events


def test_an_acquaintance_that_asks_for_an_rp_to_which_it_is_not_admitted_gets_nothing(
    scene: Scene,
) -> None:
    private = scene.another("private")
    make(private, admissions=[private.admission()])
    scene.acquainted()
    forged = Signed(b"{}", scene.d.keys[0]["kid"], b"s" * 64)
    answer = exchanged(scene, wire.RpPart(private.rp, {}, statements=[forged]), wire.RpPart("q" * 26))
    assert [part.error for part in answer.parts] == ["not-found", "not-found"]
    assert all(not part.have and not part.seals for part in answer.parts)
    misbehaviour_flush()
    assert counted() == {}, "no statement was verified, and an honest domain may learn of an end later"


def test_an_acquaintance_whose_link_stands_sooner_than_ours_is_served_at_once(scene: Scene) -> None:
    scene.acquainted()
    ReplicaLink.objects.all().delete()
    assert exchanged(scene, wire.RpPart(scene.rp)).parts[0].error == ""
    misbehaviour_flush()
    assert counted() == {}


def test_what_an_acquaintance_sends_after_its_admission_ended_is_refused_though_the_link_stands(scene: Scene) -> None:
    scene.acquainted()
    ReplicaAdmission.objects.filter(domain="d.test").update(expires_at=timezone.now() - timedelta(seconds=1))
    answer = exchanged(scene, wire.RpPart(scene.rp, {}, [Origin(scene.d, scene.rp).run(1)]))
    assert answer.parts[0].error == "not-found"
    assert (scene.rp, "d.test") in links()


def test_what_an_acquaintance_sends_after_this_domain_s_own_admission_ended_is_refused(scene: Scene) -> None:
    scene.acquainted()
    ReplicaAdmission.objects.filter(domain=OWN).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert exchanged(scene, wire.RpPart(scene.rp)).parts[0].error == "not-found"


def test_an_acquaintance_is_sent_nothing_of_rps_to_which_it_is_no_longer_admitted(scene: Scene) -> None:
    scene.acquainted()
    participations_forget()
    assert request_build("d.test", [scene.rp], {}, lazies=LazyVectors.ALL)[0] is not None
    ReplicaAdmission.objects.filter(domain="d.test").update(expires_at=timezone.now() - timedelta(seconds=1))
    participations_forget()
    assert request_build("d.test", [scene.rp], {}, lazies=LazyVectors.ALL)[0] is None


def test_an_acquaintance_floods_at_less_than_a_peer_s_rates(scene: Scene) -> None:
    row = scene.acquainted()
    rates = inbound._rates_of(row)
    assert rates.limits == (bounds.REQUESTS_PER_S, bounds.EVENTS_PER_S, bounds.BYTES_PER_S)
    taken = sum(rates.requests.take(1, 0.0) for _ in range(10 * bounds.REQUESTS_PER_S))
    assert taken == bounds.REQUESTS_PER_S * config().rate_window_s
    inbound._within(row, rates.requests, 10**6, "requests")  # a full rate is put into debt
    with pytest.raises(RateLimited):
        inbound._within(row, rates.requests, 1, "requests")
    misbehaviour_flush()
    assert set(counted()) == {("flooding", "d.test", "")}


def test_proofs_of_an_acquaintance_are_not_looked_at_and_few_of_its_documents(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.acquainted()
    seen: list[Signed] = []
    monkeypatch.setattr(inbound, "document_accept", seen.append)
    monkeypatch.setattr(
        "eventing.replication.forwarding.fork_detection.evidence_keep", lambda *_, **__: pytest.fail("looked at")
    )
    documents = [OtherDomain(f"x{number}.test").document() for number in range(bounds.DOCUMENTS_MAX + 5)]
    seal = Signed(b"{}", "k", b"s" * 64)
    exchanged(scene, wire.RpPart(scene.rp), domains=documents, evidence=[wire.SealPair(seal, seal)])
    assert len(seen) == bounds.DOCUMENTS_MAX


# Joining


NAMED: list[dict[str, Any]] = [{"issuer": "peer:d.test", "allow": ["replicate"]}]
ANYONE: list[dict[str, Any]] = [{"issuer": "anyone", "allow": ["replicate"]}]


def own_rp(policy: list[dict[str, Any]]) -> str:
    return str(rendezvous_point_create(principal=principal("ann"), lease_s=3600, policy=policy).id)


@pytest.fixture
def asks(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """d asks this domain for a replica; its signature was verified."""
    monkeypatch.setattr(joining, "_proven", lambda statement, attached, sender: (join_read(statement), None))

    def ask(rp: str, by: str = "d.test", path: list[str] | None = None) -> None:
        statement = join_make(join_of(by, rp), scene.d.keys[0])
        joining.join(Sender("d.test", "k", None), encode(JoinRequest(1, statement, [], path or ["d.test"])))

    return ask


@pytest.mark.parametrize(
    ("mode", "policy", "admitted"),
    [
        ("admitted", NAMED, True),
        ("admitted", ANYONE, False),
        ("open", ANYONE, True),
        ("open", [], False),
        ("peers", NAMED, False),
        ("peers", ANYONE, False),
    ],
)
def test_a_domain_that_the_directory_identifies_joins_as_the_policy_and_the_setting_say(
    scene: Scene, asks: Callable[..., None], mode: str, policy: list[dict[str, Any]], admitted: bool
) -> None:
    rp = own_rp(policy)
    with overlay(mode):
        if admitted:
            asks(rp)
        else:
            with pytest.raises(Forbidden):
                asks(rp)
    assert ReplicaAdmission.objects.filter(rp=rp, domain="d.test").exists() == admitted


def test_a_rule_that_names_a_domain_counts_for_peers_and_for_whom_the_directory_identifies(scene: Scene) -> None:
    row = RendezvousPoint.objects.get(id=own_rp(NAMED))
    assert may_replicate(row, "d.test")
    del scene.directory["d.test"]
    identities_forget()
    assert not may_replicate(row, "d.test")


def test_one_who_is_no_peer_joins_for_itself_and_at_the_home_only(scene: Scene, asks: Callable[..., None]) -> None:
    with pytest.raises(NotFound):
        asks(scene.rp)
    with pytest.raises(NotFound):
        asks(own_rp(NAMED), "e.test", ["e.test", "d.test"])


def test_replicas_at_domains_that_are_no_peers_are_no_more_than_their_places(
    scene: Scene, asks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventing.replication.services.replica_admissions.UNAPPROVED_MAX", 1)
    rp = own_rp([*NAMED, *ANYONE])
    other = OtherDomain("e.test", url="https://e.test")
    scene.known(other)
    replica_admit(join=join_of("e.test", rp))
    with pytest.raises(QuotaExceeded):
        asks(rp)


def test_an_acquaintance_that_began_elsewhere_is_renewed_and_not_begun_twice(scene: Scene) -> None:
    scene.acquainted()
    record = scene.directory["d.test"]
    assert acquaintance_begin(name="d.test", record=record, reason="again")
    assert Misbehaviour.objects.count() == 0
