"""Domains that the directory identifies and nobody approved: what they may call, what they cost, when they end."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from eventing.access.services.keys import ensure_domain_key
from eventing.conf import config
from eventing.core.errors import ApplicationError, Forbidden, RateLimited, Unauthenticated, Unavailable
from eventing.peering import directory_documents
from eventing.peering.models import Acquaintance, DomainDocument, Misbehaviour, Peer, PeerDelivery
from eventing.peering.ports import DirectoryRecord, directory_record
from eventing.peering.rules import acquaintances as bounds
from eventing.peering.rules.acquaintances import AcquaintanceEnd
from eventing.peering.rules.peers import Stance
from eventing.peering.selectors.partners import acquaintances_forget, partner_get, partners
from eventing.peering.selectors.peers import peers_active, peers_all, peers_forget
from eventing.peering.services.acquaintances import acquaintance_begin, acquaintances_end, acquaintances_expire
from eventing.peering.services.deliveries import delivery_failed, delivery_succeeded
from eventing.peering.services.domain_documents import document_accept
from eventing.peering.services.misbehaviour import misbehaviour_flush
from eventing.peering.services.peers import hello_received, peer_add, peer_suspend, peers_expire
from eventing.peering.wire import endpoints, signatures
from eventing.peering.wire.endpoints import Admitted
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at, principal

ROOT = principal("root", admin=True)
EXCHANGE, JOIN, REGION = (f"/federation/v1/{name}" for name in ("exchange", "join", "region"))


class Directory(dict[str, DirectoryRecord]):
    """The federation's directory, as this domain has it."""

    def add(self, domain: OtherDomain, **changed: Any) -> None:
        self[domain.name] = DirectoryRecord(domain.url, domain.fingerprint)._replace(**changed)


@pytest.fixture
def directory(transactional_db: None, redis_url: str) -> Iterator[Directory]:
    redis_client().flushdb()
    ensure_domain_key()
    made = Directory()
    directory_record.connect(lambda name: made.get(name))
    yield made
    misbehaviour_flush()


@pytest.fixture
def d(directory: Directory) -> OtherDomain:
    """A domain of the directory whose document is held."""
    domain = OtherDomain("d.test")
    directory.add(domain)
    document_accept(domain.document(), fingerprint=domain.fingerprint)
    return domain


def begun(domain: OtherDomain) -> None:
    record = DirectoryRecord(domain.url, domain.fingerprint)
    assert acquaintance_begin(name=domain.name, record=record, reason="Both take part in one rendezvous point.")


def called(domain: OtherDomain, path: str = EXCHANGE, body: bytes = b"", **signed: Any) -> Admitted:
    """The head of a request of the domain, as it is admitted."""
    given = {"origin": domain.name, "destination": config().domain, "key": domain.keys[-1], "now": time.time()}
    url = f"http://{config().domain}{path}"
    request = signatures.request_signed(url, body, nonce=secrets.token_urlsafe(18), **{**given, **signed})
    return endpoints.admit(signatures.SignedRequest("POST", request.url, request.headers), path)


def refused(domain: OtherDomain, path: str = EXCHANGE, **signed: Any) -> type[ApplicationError]:
    with pytest.raises(ApplicationError) as raised:
        called(domain, path, **signed)
    return raised.type


def calls_until_refused(domain: OtherDomain, path: str, most: int) -> int:
    """How many calls are admitted before one is refused for their rate."""
    for number in range(most):
        try:
            called(domain, path)
        except RateLimited:
            return number
    pytest.fail(f"{most} calls were admitted")


def counted() -> set[tuple[str, str, str]]:
    misbehaviour_flush()
    return set(Misbehaviour.objects.values_list("kind", "carrier", "origin"))


def told() -> list[tuple[str, str]]:
    """What domain.admin was told of acquaintances: the event, and the reason."""
    kinds = [one for one in events_at("domain.admin") if "acquaintance" in one["type"]]
    return [(one["type"].rpartition(".")[2], one["data"]["reason"]) for one in kinds]


def test_an_acquaintance_may_exchange_probe_and_ask_about_replicas_and_nothing_else(d: OtherDomain) -> None:
    begun(d)
    for path in (EXCHANGE, JOIN, REGION, endpoints.PROBE):
        sender = called(d, path).sender
        assert sender is not None
        assert (sender.peer, sender.partner) == (None, Acquaintance.objects.get())
    for name in ("invite", "subscriptions"):
        assert refused(d, f"/federation/v1/{name}") is Forbidden
    assert called(d, endpoints.HELLO).sender is None, "a hello is a stranger's, whose document is looked at first"


def test_with_the_setting_peers_nobody_else_may_call(d: OtherDomain) -> None:
    begun(d)
    with override_settings(HERALD=dataclasses.replace(config(), overlay="peers")):
        assert {refused(d, path) for path in (EXCHANGE, JOIN, REGION, endpoints.PROBE)} == {Forbidden}


def test_an_acquaintance_is_shown_as_no_peer_and_may_neither_host_nor_gossip(d: OtherDomain) -> None:
    begun(d)
    assert (peers_all(), peers_active()) == ([], [])
    row = partner_get(d.name)
    assert row is not None
    assert (row.host, row.gossip) == (False, False)
    assert row.events_per_s < Peer(name="x").events_per_s


def test_a_domain_of_the_directory_that_is_no_acquaintance_may_ask_for_a_link_and_not_exchange(d: OtherDomain) -> None:
    assert refused(d) is Unavailable, "its own link may stand already: it tries again"
    admitted = called(d, REGION)
    assert admitted.sender is not None
    assert admitted.sender.partner is None
    assert admitted.body_bytes_max == bounds.IDENTIFIED_BYTES_MAX


def test_a_domain_that_the_directory_does_not_name_is_refused(directory: Directory, d: OtherDomain) -> None:
    directory.clear()
    assert {refused(d, path) for path in (EXCHANGE, REGION, JOIN)} == {Forbidden}


def test_requests_of_an_acquaintance_signed_with_another_key_are_refused_and_counted_for_nobody(
    d: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(d)
    monkeypatch.setattr(endpoints, "document_refetch", lambda name: None)  # it publishes no such key
    assert refused(d, key=OtherDomain("d.test").keys[0]) is Unauthenticated
    assert counted() == {("forged", "", "d.test")}


def test_an_acquaintance_whose_record_names_another_first_key_is_refused_at_once(
    directory: Directory, d: OtherDomain
) -> None:
    begun(d)
    directory.add(OtherDomain("d.test"))
    assert {refused(d, path) for path in (EXCHANGE, REGION)} == {Forbidden}


def test_a_document_is_fetched_from_the_directory_s_address_and_taken_with_the_directory_s_key_only(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    d, forger = OtherDomain("d.test"), OtherDomain("d.test")
    directory.add(d)
    published = [forger.document(), d.document()]
    monkeypatch.setattr(directory_documents, "document_fetch", lambda url: published.pop(0))
    assert not directory_documents.document_fetch_identified("d.test")
    assert directory_documents.document_fetch_identified("d.test")
    assert DomainDocument.objects.get(name="d.test").fingerprint == d.fingerprint


def test_names_of_the_directory_that_anybody_calls_in_cause_few_fetches(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    fetching = directory_documents.DirectoryFetching()
    monkeypatch.setattr(fetching._threads, "submit", lambda work, name, record: fetched.append(name))
    for number in range(1000):
        fetching.begin(f"d{number % 500}.test", DirectoryRecord("https://d.test", "k"))
    assert len(fetched) == directory_documents.FETCHES_PER_S * directory_documents.AGAIN_S
    assert len(set(fetched)) == len(fetched)


def test_requests_in_names_of_the_directory_are_refused_beyond_their_rate_before_a_signature_is_verified(
    d: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    burst = int(bounds.IDENTIFIED_PER_S * config().rate_window_s)
    verified: list[str] = []
    verify = endpoints._verified_by
    monkeypatch.setattr(
        endpoints, "_verified_by", lambda request, domain: verified.append(domain) or verify(request, domain)
    )
    assert calls_until_refused(d, JOIN, 10 * burst) == len(verified) >= burst
    assert counted() == set(), "anybody can call in its name"


def test_an_acquaintance_that_floods_is_told_to_wait_and_counted(d: OtherDomain) -> None:
    begun(d)
    burst = bounds.REQUESTS_PER_S * config().rate_window_s
    assert calls_until_refused(d, endpoints.PROBE, 10 * burst) >= burst
    assert counted() == {("flooding", "d.test", "")}


def test_acquaintances_are_no_more_than_their_places(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventing.peering.services.acquaintances.ACQUAINTANCES_MAX", 3)
    record = DirectoryRecord("https://x.test", "k")
    made = [acquaintance_begin(name=f"x{number}.test", record=record, reason="one") for number in range(5)]
    assert made == [True, True, True, False, False]
    assert acquaintance_begin(name="x0.test", record=record, reason="renewed")


def test_a_peer_that_both_administrators_approve_takes_the_acquaintance_s_place(d: OtherDomain) -> None:
    begun(d)
    redis_client().sadd(f"herald:peer:{{{d.name}}}:dirty", "a" * 26)
    peer_add(principal=ROOT, statement=d.document(), fingerprint=d.fingerprint)
    assert isinstance(partner_get(d.name), Acquaintance), "the other administrator has not decided"
    hello_received(statement=d.document(), stance=Stance.APPROVES, at_ms=1)
    assert [type(one) for one in partners()] == [Peer]
    assert told() == [("begun", "Both take part in one rendezvous point."), ("ended", "approved")]
    assert redis_client().exists(f"herald:peer:{{{d.name}}}:dirty"), "the links stay"
    acquaintances_forget()
    assert not acquaintance_begin(name=d.name, record=DirectoryRecord(d.url, d.fingerprint), reason="again")


def test_a_domain_that_an_administrator_suspends_is_no_acquaintance_either(d: OtherDomain) -> None:
    begun(d)
    peer_add(principal=ROOT, statement=d.document(), fingerprint=d.fingerprint)
    peer_suspend(principal=ROOT, name=d.name)
    assert partners() == []
    assert {refused(d, path) for path in (EXCHANGE, REGION, JOIN)} == {Forbidden}
    assert not acquaintance_begin(name=d.name, record=DirectoryRecord(d.url, d.fingerprint), reason="again")


def test_a_domain_that_only_asks_stays_an_acquaintance(d: OtherDomain) -> None:
    begun(d)
    hello_received(statement=d.document(), stance=Stance.PROPOSES, at_ms=1)
    assert isinstance(partner_get(d.name), Acquaintance)


def test_an_acquaintance_that_nothing_renews_ends_with_its_forwarding_state(d: OtherDomain) -> None:
    begun(d)
    redis_client().sadd(f"herald:peer:{{{d.name}}}:dirty", "a" * 26)
    later = timezone.now() + timedelta(seconds=bounds.LEASE_S)
    assert (acquaintances_expire(now=later - timedelta(seconds=5)), acquaintances_expire(now=later)) == (0, 1)
    assert told()[-1] == ("ended", AcquaintanceEnd.EXPIRED)
    assert not redis_client().exists(f"herald:peer:{{{d.name}}}:dirty")
    assert refused(d) is Unavailable


def test_failures_of_an_acquaintance_are_its_own(d: OtherDomain) -> None:
    begun(d)
    row = delivery_failed(peer=d.name, failure="unreachable", detail="no answer", jitter=0.5)  # type: ignore[arg-type]
    assert (row is not None and row.partner, PeerDelivery.objects.count()) == (d.name, 0)
    assert delivery_succeeded(peer=d.name)
    assert not delivery_succeeded(peer=d.name)
    acquaintances_end(names=[d.name], reason=AcquaintanceEnd.LINK)
    assert delivery_failed(peer=d.name, failure="unreachable", detail="gone", jitter=0.5) is None  # type: ignore[arg-type]


def test_peers_whose_leases_end_leave_acquaintances_alone(d: OtherDomain) -> None:
    begun(d)
    peers_forget()
    assert peers_expire() == 0
    assert Acquaintance.objects.count() == 1
