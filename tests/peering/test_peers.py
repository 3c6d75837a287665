"""Peers: what administrators decide, what hellos change, and what is reported of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from jsonschema import validate

from admin_rp.catalogue import CATALOGUE
from eventing.access.rules.rates import Bucket, Rate
from eventing.access.services.keys import ensure_domain_key
from eventing.audit.models import AuditEntry
from eventing.conf import config
from eventing.core.errors import (
    ApplicationError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    RateLimited,
    Unauthenticated,
)
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.core.signing import Signed, verified
from eventing.peering.models import Misbehaviour, Peer
from eventing.peering.rules import peers as core
from eventing.peering.rules.domain_documents import BadDocument, fingerprint_shown
from eventing.peering.rules.peers import PeeringState, Stance
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.peers import peer_get, peer_row, peers_active, peers_to_greet
from eventing.peering.services.misbehaviour import misbehaviour_flush
from eventing.peering.services.peers import (
    asked_statement,
    hello_received,
    peer_add,
    peer_approve,
    peer_change,
    peer_contacted,
    peer_document_followed,
    peer_remove,
    peer_resume,
    peer_suspend,
    peers_expire,
)
from eventing.peering.wire import client, endpoints, hello, refusals, signatures
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import HELLO, Sender
from eventing.peering.wire.hello import farewell, peers_greet
from eventing.peering.wire.messages import encode
from eventing.store import peer_state
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at, principal, types_at

ROOT = principal("root", admin=True)
NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> None:
    redis_client().flushdb()


@pytest.fixture
def b() -> OtherDomain:
    return OtherDomain()


def at_ms(moment: datetime = NOW) -> int:
    return int(moment.timestamp() * 1000)


def add(other: OtherDomain, **stated: Any) -> Peer:
    statement = other.document()
    return peer_add(
        **{"principal": ROOT, "statement": statement, "fingerprint": other.fingerprint, "now": NOW, **stated}
    )


def hear(other: OtherDomain, stance: Stance, moment: datetime = NOW) -> Peer | None:
    return hello_received(statement=other.document(), stance=stance, at_ms=at_ms(moment), now=NOW)


def test_mutual_approval_makes_a_peer_active_and_everybody_is_told(b: OtherDomain) -> None:
    assert add(b, host=True, events_per_s=7).state == PeeringState.PROPOSED
    assert hear(b, Stance.WAITS).state == PeeringState.PROPOSED  # type: ignore[union-attr]
    assert hear(b, Stance.APPROVES).state == PeeringState.ACTIVE  # type: ignore[union-attr]
    row = peer_get("b.test")
    assert row is not None
    assert (row.push, row.host, row.gossip, row.events_per_s, row.url) == (True, True, True, 7, "https://b.test")
    assert [one.name for one in peers_active()] == ["b.test"]
    assert types_at(DOMAIN_ADMIN) == ["peer.proposed", "peer.changed", "peer.active"], "changed: what it says of us"
    assert [(entry.action, entry.who) for entry in AuditEntry.objects.order_by("id")] == [
        ("peer.add", "root"),
        ("peer.hello", "b.test"),
    ]


def test_who_asks_waits_for_an_administrator_and_is_trusted_by_nothing_until_then(b: OtherDomain) -> None:
    assert hear(b, Stance.PROPOSES).state == PeeringState.ASKED  # type: ignore[union-attr]
    assert domain_document("b.test") is None
    assert peers_active() == []
    assert types_at(DOMAIN_ADMIN) == ["peer.asked"]
    row = peer_approve(principal=ROOT, name="b.test", fingerprint=fingerprint_shown(b.fingerprint))
    assert (row.state, row.asked_document) == (PeeringState.ACTIVE, None)
    held = domain_document("b.test")
    assert held is not None
    assert held.fingerprint == b.fingerprint


def test_adding_a_domain_that_asks_approves_it_at_the_address_that_was_stated(b: OtherDomain) -> None:
    hear(b, Stance.PROPOSES)
    row = add(b, url="https://proxy.test:8443/")
    assert (row.state, row.url) == (PeeringState.ACTIVE, "https://proxy.test:8443")


@pytest.mark.parametrize("asked", [True, False])
def test_another_fingerprint_than_the_one_compared_is_refused(b: OtherDomain, asked: bool) -> None:
    other = OtherDomain("b.test").fingerprint
    if asked:
        hear(b, Stance.PROPOSES)
    with pytest.raises(Conflict, match="somebody intercepts the connection"):
        peer_approve(principal=ROOT, name="b.test", fingerprint=other) if asked else add(b, fingerprint=other)
    assert domain_document("b.test") is None
    assert peers_active() == []


def test_a_domain_with_the_name_of_a_peer_and_other_keys_changes_nothing(b: OtherDomain) -> None:
    add(b)
    impostor = OtherDomain("b.test")
    with pytest.raises(Conflict, match="another first key"):
        hear(impostor, Stance.APPROVES)
    with pytest.raises(Conflict, match="another fingerprint"):
        add(impostor)
    assert peer_row("b.test").state == PeeringState.PROPOSED


def test_a_name_that_a_stranger_occupies_by_asking_is_still_its_owners_to_be_added(b: OtherDomain) -> None:
    hear(OtherDomain("b.test"), Stance.PROPOSES)
    with pytest.raises(Conflict):
        hear(b, Stance.PROPOSES)
    row = add(b)
    assert (row.state, row.fingerprint) == (PeeringState.ACTIVE, b.fingerprint)
    held = domain_document("b.test")
    assert held is not None
    assert held.fingerprint == b.fingerprint


def test_a_suspended_peer_stays_so_whatever_it_says_and_resumes_at_once(b: OtherDomain) -> None:
    add(b)
    hear(b, Stance.APPROVES)
    assert peer_suspend(principal=ROOT, name="b.test", note="floods us").state == PeeringState.SUSPENDED
    for stance in Stance:
        hear(b, stance, NOW + timedelta(seconds=1))
        assert peer_row("b.test").state == PeeringState.SUSPENDED
    hear(b, Stance.APPROVES, NOW + timedelta(seconds=2))
    assert peers_active() == []
    assert peer_resume(principal=ROOT, name="b.test").state == PeeringState.ACTIVE
    told = [kind for kind in types_at(DOMAIN_ADMIN) if kind != "peer.changed"]  # that is what it says of us
    assert told == ["peer.proposed", "peer.active", "peer.suspended", "peer.active"]


def test_who_left_while_it_was_suspended_is_asked_again(b: OtherDomain) -> None:
    add(b)
    hear(b, Stance.APPROVES)
    peer_suspend(principal=ROOT, name="b.test")
    hear(b, Stance.LEAVES, NOW + timedelta(seconds=1))
    assert peer_resume(principal=ROOT, name="b.test").state == PeeringState.PROPOSED
    assert add(b).hello_at is not None


def test_a_removed_peer_is_forgotten_with_its_keys_and_may_begin_anew(b: OtherDomain) -> None:
    add(b)
    hear(b, Stance.APPROVES)
    assert peer_remove(principal=ROOT, name="b.test").url == "https://b.test"
    assert domain_document("b.test") is None
    assert peer_get("b.test") is None
    assert hear(b, Stance.APPROVES) is None, "what it believed to be is not what it asks for"
    again = OtherDomain("b.test")
    assert add(again).fingerprint == again.fingerprint


def test_what_a_removed_peer_brought_is_not_counted_when_it_comes_again(
    b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_domain_key()
    add(b)
    peer_state.request_noted("b.test", {"requests": 1, "events": 3, "copies": 1}, supplied=True)
    assert peer_state.traffic_taken("b.test")["events"] == 3

    def cut(*_: object, **__: object) -> None:
        raise PeerError("unreachable", "Cut.")

    monkeypatch.setattr(client, "call", cut)
    assert farewell(peer_remove(principal=ROOT, name="b.test")) is False
    assert set(peer_state.traffic_taken("b.test").values()) == {0}


def test_who_declines_is_not_asked_again_by_itself(b: OtherDomain) -> None:
    add(b)
    row = hear(b, Stance.LEAVES)
    assert row is not None
    assert (row.state, row.hello_at) == (PeeringState.PROPOSED, None)
    assert hear(b, Stance.LEAVES) is not None
    assert types_at(DOMAIN_ADMIN) == ["peer.proposed", "peer.declined"], "said once"
    assert add(b).hello_at is not None


def test_a_hello_that_comes_late_changes_nothing(b: OtherDomain) -> None:
    add(b)
    hear(b, Stance.APPROVES, NOW)
    row = hear(b, Stance.LEAVES, NOW - timedelta(seconds=1))
    assert row is not None
    assert (row.state, row.theirs) == (PeeringState.ACTIVE, Stance.APPROVES)


def test_who_asked_and_withdraws_is_gone(b: OtherDomain) -> None:
    hear(b, Stance.PROPOSES)
    assert hear(b, Stance.LEAVES) is None
    assert not Peer.objects.exists()
    assert types_at(DOMAIN_ADMIN) == ["peer.asked", "peer.removed"]


@pytest.mark.parametrize("who", [principal("ann"), principal("root", admin=True, ops=["administer"])])
def test_only_an_administrator_decides(b: OtherDomain, who: Principal) -> None:
    with pytest.raises(Forbidden):
        add(b, principal=who)
    add(b)
    for service in (peer_approve, peer_suspend, peer_resume, peer_remove, peer_change):
        more: dict[str, Any] = {"fingerprint": b.fingerprint} if service is peer_approve else {}
        with pytest.raises(Forbidden):
            service(principal=who, name="b.test", **more)


@pytest.mark.parametrize("name", ["localhost", "anyone", "domain", "look"])
def test_names_that_mean_something_else_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest):
        add(OtherDomain(name))


@pytest.mark.parametrize(
    "stated",
    [
        {"events_per_s": 0},
        {"bytes_per_s": core.RATE_MAX + 1},
        {"state": "active"},
        {"url": "ftp://b.test"},
        {"url": "http://b.test"},
    ],
)
def test_what_a_peer_cannot_be_given_is_refused(b: OtherDomain, stated: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        add(b, **stated)
    assert not Peer.objects.exists()


def test_a_change_is_reported_with_what_changed_and_repeated_changes_nothing(b: OtherDomain) -> None:
    add(b)
    for _ in range(2):
        peer_change(principal=ROOT, name="b.test", push=False, requests_per_s=3, url="https://other.test")
    row = peer_row("b.test")
    assert (row.push, row.requests_per_s, row.url) == (False, 3, "https://other.test")
    changed = [event for event in events_at(DOMAIN_ADMIN) if event["type"] == "io.herald.peer.changed"]
    assert [event["data"]["changed"] for event in changed] == [["push", "requests_per_s", "url"]]


def test_strangers_fill_no_more_than_their_places(monkeypatch: pytest.MonkeyPatch, b: OtherDomain) -> None:
    monkeypatch.setattr(core, "ASKED_MAX", 2)
    for number in range(2):
        hear(OtherDomain(f"s{number}.test"), Stance.PROPOSES)
    with pytest.raises(QuotaExceeded):
        hear(OtherDomain("s2.test"), Stance.PROPOSES)
    assert add(b).state == PeeringState.PROPOSED, "those whom an administrator adds have places of their own"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What hellos are counted by, with nothing counted yet; it stands still until a test moves it."""
    ensure_domain_key()
    made = SimpleNamespace(now=0.0, time=time.time)
    made.monotonic = lambda: made.now
    monkeypatch.setattr(hello, "time", made)
    return made


def say(other: OtherDomain, *stances: Stance, statement: Signed | None = None) -> int:
    """Hellos of `other`, one after another; how many of them were refused because there were too many."""
    refused = 0
    for stance in stances:
        said = hello.Hello(statement or other.document(), wire.VERSION, stance, at_ms(datetime.now(UTC)))
        row = Peer.objects.filter(name=other.name).first()
        trusted = row is not None and row.state != PeeringState.ASKED
        try:
            hello.hello(Sender(other.name, other.keys[-1]["kid"], row, trusted=trusted), wire.encode(said))
        except RateLimited:
            refused += 1
    return refused


@pytest.mark.parametrize(
    "state", [PeeringState.ASKED, PeeringState.PROPOSED, PeeringState.ACTIVE, PeeringState.SUSPENDED]
)
@pytest.mark.parametrize(
    "flip", [(Stance.WAITS, Stance.SUSPENDS), (Stance.WAITS, Stance.APPROVES), (Stance.LEAVES, Stance.PROPOSES)]
)
def test_a_domain_that_goes_on_changing_its_mind_is_told_to_wait(
    b: OtherDomain, clock: SimpleNamespace, state: PeeringState, flip: tuple[Stance, ...]
) -> None:
    if state is PeeringState.ASKED:
        hear(b, Stance.PROPOSES)
    else:
        add(b)
        if state is not PeeringState.PROPOSED:
            hear(b, Stance.APPROVES)
        if state is PeeringState.SUSPENDED:
            peer_suspend(principal=ROOT, name="b.test")
    statement = b.document()
    peer_document_followed(statement, name="b.test") if state is not PeeringState.ASKED else None
    told, audited = len(types_at(DOMAIN_ADMIN)), AuditEntry.objects.count()
    assert say(b, *flip * 30, statement=statement) >= 20
    assert len(types_at(DOMAIN_ADMIN)) - told <= 11
    assert AuditEntry.objects.count() - audited <= 11


@pytest.mark.parametrize("stance", [Stance.APPROVES, Stance.LEAVES])
def test_new_keys_again_and_again_are_taken_over_no_more_often(
    b: OtherDomain, clock: SimpleNamespace, stance: Stance
) -> None:
    add(b)
    hear(b, Stance.APPROVES)
    assert say(b, *[stance] * 60) >= 50
    assert len([kind for kind in types_at(DOMAIN_ADMIN) if kind == "peer.rekeyed"]) <= 5


def test_what_administrators_do_within_seconds_goes_through_and_the_rest_when_it_is_said_again(
    b: OtherDomain, clock: SimpleNamespace
) -> None:
    assert say(b, Stance.PROPOSES) == 0
    peer_approve(principal=ROOT, name="b.test", fingerprint=b.fingerprint)
    b.add_key()
    assert say(b, Stance.APPROVES) == 0
    statement = b.document()
    assert say(b, *[Stance.SUSPENDS, Stance.APPROVES] * 2, statement=statement) == 0
    assert say(b, Stance.SUSPENDS, statement=statement) == 1, "the sixth within a moment"
    clock.now += 5.0
    assert say(b, *[Stance.SUSPENDS] * 50, statement=statement) == 0, "what changes nothing is always heard"
    assert peer_row("b.test").theirs == Stance.SUSPENDS
    assert say(b, Stance.LEAVES, statement=statement) == 0, "who leaves says so once"
    assert peer_row("b.test").state == PeeringState.PROPOSED
    for _ in range(10):
        peer_remove(principal=ROOT, name="b.test")
        add(b, now=datetime.now(UTC))
        assert say(b, Stance.WAITS, Stance.APPROVES) == 0, "what is added anew here begins anew"


def test_a_stranger_uses_up_nothing_of_the_domain_in_whose_name_it_speaks(
    b: OtherDomain, clock: SimpleNamespace
) -> None:
    add(b)
    impostor = OtherDomain("b.test")
    impostor.serial = b.serial + 100
    for number in range(30):
        said = hello.Hello(impostor.document(), wire.VERSION, list(Stance)[number % 5], at_ms())
        sender = Sender("b.test", impostor.keys[-1]["kid"], None, trusted=False)
        with pytest.raises(Unauthenticated):
            hello.hello(sender, wire.encode(said))
    assert say(b, Stance.APPROVES) == 0
    assert peer_row("b.test").state == PeeringState.ACTIVE


def signed_hello(other: OtherDomain, body: bytes, nonce: str) -> signatures.SignedRequest:
    """The head of a hello of `other` with this body."""
    given: dict[str, Any] = {"origin": other.name, "destination": config().domain, "key": other.keys[0]}
    url = f"https://localhost{endpoints.HELLO}"
    request = signatures.request_signed(url, body, nonce=nonce, now=time.time(), **given)
    request.headers["host"] = "localhost"
    return request


def serve(request: signatures.SignedRequest, body: bytes) -> None:
    endpoints.serve(endpoints.admit(request, endpoints.HELLO), body)


def test_hellos_of_a_suspended_peer_are_counted_against_its_rate(b: OtherDomain, clock: SimpleNamespace) -> None:
    add(b, requests_per_s=1)
    hear(b, Stance.APPROVES)
    peer_suspend(principal=ROOT, name="b.test")
    body = wire.encode(hello.Hello(b.document(), wire.VERSION, Stance.APPROVES, at_ms()))
    with pytest.raises(RateLimited):
        [serve(signed_hello(b, body, secrets.token_urlsafe(18)), body) for _ in range(20)]


@pytest.mark.parametrize("name", ["b.test", "invented.test"])
def test_what_is_signed_with_keys_that_came_along_is_held_against_nobody(
    b: OtherDomain, clock: SimpleNamespace, name: str
) -> None:
    add(b)
    hear(b, Stance.APPROVES)
    stranger = OtherDomain(name)
    body = wire.encode(hello.Hello(stranger.document(), wire.VERSION, Stance.PROPOSES, at_ms()))
    tampered = body[:-1] + b"\x07"
    with pytest.raises(Unauthenticated, match="Content-Digest"):
        serve(signed_hello(stranger, body, "a-nonce-of-its-own"), tampered)
    with pytest.raises(Conflict, match="nonce"):
        serve(signed_hello(stranger, body, "a-nonce-of-its-own"), body)
    misbehaviour_flush()
    assert not Misbehaviour.objects.exists()


def test_hellos_of_strangers_beyond_their_rate_cost_no_signature_and_those_of_who_is_known_are_none_of_them(
    b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals.rates().strangers = Bucket(Rate(per_s=0.001, window_s=2000.0))
    looked_at: list[Signed] = []

    def counting(context: bytes, statement: Signed, jwk: dict[str, Any]) -> bool:
        looked_at.append(statement)
        return verified(context, statement, jwk)

    monkeypatch.setattr("eventing.peering.rules.domain_documents.verified", counting)
    asks = b.document()
    for domain, statement in ((b, asks), (OtherDomain("c.test"), None)):
        assert hello_of(domain, statement or domain.document()) == 200
    assert looked_at
    looked_at.clear()
    impostor = OtherDomain("b.test")
    for one in (OtherDomain("d.test"), impostor):
        assert hello_of(one, one.document()) == 429
    assert looked_at == []
    assert hello_of(b, asks) == 200, "it asks with the document that we have seen"
    add(b, statement=asks)
    b.add_key()
    assert hello_of(b, b.document()) == 200, "a key that is trusted here has signed its new one"


def hello_of(domain: OtherDomain, statement: Signed) -> int:
    """The status of the answer to a hello that a domain signed with its newest key, as a gateway serves it."""
    body = encode([statement, 1, "proposes", at_ms()])
    made = signatures.request_signed(
        f"https://us.test{HELLO}",
        body,
        origin=domain.name,
        destination=config().domain,
        key=domain.keys[-1],
        nonce=secrets.token_urlsafe(18),
        now=time.time(),
    )
    made.headers["host"] = "us.test"
    try:
        endpoints.serve(endpoints.admit(signatures.SignedRequest("POST", made.url, made.headers), HELLO), body)
    except ApplicationError as error:
        return error.status
    return 200


def test_contact_renews_the_lease_and_without_it_a_peer_lapses(b: OtherDomain) -> None:
    add(b)
    hear(b, Stance.APPROVES)
    later = NOW + timedelta(seconds=core.LEASE_S - 10)
    peer_contacted("b.test", now=later)
    assert peers_expire(now=NOW + timedelta(seconds=core.LEASE_S + 1)) == 0
    assert peers_expire(now=later + timedelta(seconds=core.LEASE_S + 1)) == 1
    assert domain_document("b.test") is None
    last = events_at(DOMAIN_ADMIN)[-1]
    assert (last["type"], last["data"]["reason"]) == ("io.herald.peer.removed", "lease-expired")


def test_who_only_asked_lapses_sooner(b: OtherDomain) -> None:
    hear(b, Stance.PROPOSES)
    assert peers_expire(now=NOW + timedelta(seconds=core.ASKED_LEASE_S - 1)) == 0
    assert peers_expire(now=NOW + timedelta(seconds=core.ASKED_LEASE_S + 1)) == 1


def test_contact_is_written_seldom(b: OtherDomain, django_assert_num_queries: Callable[..., Any]) -> None:
    add(b)
    hear(b, Stance.APPROVES)
    with django_assert_num_queries(1):
        peer_contacted("b.test", now=NOW + timedelta(seconds=299))
    with django_assert_num_queries(2):
        peer_contacted("b.test", now=NOW + timedelta(seconds=301))


def test_a_rotation_is_followed_and_reported_and_a_stranger_cannot_make_one(b: OtherDomain) -> None:
    add(b)
    hear(b, Stance.APPROVES)
    made = b.add_key()
    b.url = "https://moved.test"
    held = peer_document_followed(b.document(), name="b.test")
    assert made["kid"] in held.jwks
    assert peer_row("b.test").url == "https://moved.test", "we went where its document said, and go there still"
    last = events_at(DOMAIN_ADMIN)[-1]
    assert (last["type"], last["data"]["serial"]) == ("io.herald.peer.rekeyed", b.serial)
    forger = OtherDomain("b.test")
    forger.serial = b.serial + 5
    with pytest.raises(BadDocument, match=r"fingerprint of b\.test has changed"):
        peer_document_followed(forger.document(), name="b.test")


def test_an_address_that_an_administrator_stated_is_kept_when_its_document_changes(b: OtherDomain) -> None:
    add(b, url="https://proxy.test")
    b.url = "https://moved.test"
    peer_document_followed(b.document(), name="b.test")
    assert peer_row("b.test").url == "https://proxy.test"


def test_hellos_are_due_when_something_is_new_and_failures_wait(b: OtherDomain) -> None:
    add(b)
    expected = {state: f"{state}:9" for state in PeeringState}

    def due(now: datetime) -> list[str]:
        return peers_to_greet(expected=expected, now=now, limit=10)

    assert due(NOW) == ["b.test"]
    Peer.objects.update(hello_told=expected[PeeringState.PROPOSED], hello_at=NOW + timedelta(seconds=60))
    assert due(NOW) == []
    assert due(NOW + timedelta(seconds=60)) == ["b.test"]
    expected[PeeringState.PROPOSED] = "proposed:10"  # our document has changed
    assert due(NOW) == ["b.test"]
    Peer.objects.update(hello_failures=1)
    assert due(NOW) == [], "who cannot be reached is tried when its time has come"


def test_every_event_of_peers_is_as_the_catalogue_says(b: OtherDomain) -> None:
    hear(b, Stance.PROPOSES)
    peer_approve(principal=ROOT, name="b.test", fingerprint=b.fingerprint)
    peer_change(principal=ROOT, name="b.test", gossip=False)
    b.add_key()
    peer_document_followed(b.document(), name="b.test")
    peer_suspend(principal=ROOT, name="b.test")
    peer_resume(principal=ROOT, name="b.test")
    hear(b, Stance.LEAVES, NOW + timedelta(seconds=1))
    peer_remove(principal=ROOT, name="b.test")
    found = events_at(DOMAIN_ADMIN)
    told = {"proposed", "asked", "active", "suspended", "declined", "changed", "rekeyed", "removed"}
    assert {event["type"] for event in found} == {f"io.herald.peer.{what}" for what in told}
    for event in found:
        validate(event["data"], CATALOGUE[event["type"]].schema)


def test_what_there_is_not_is_not_found(b: OtherDomain) -> None:
    for service in (peer_suspend, peer_resume, peer_remove):
        with pytest.raises(NotFound):
            service(principal=ROOT, name="nobody.test")
    add(b)
    with pytest.raises(NotFound):
        asked_statement(peer_row("b.test"))


def test_a_document_that_contradicts_itself_is_refused(b: OtherDomain) -> None:
    statement = b.document()
    broken = type(statement)(statement.payload.replace(b"b.test", b"c.test"), statement.kid, statement.signature)
    with pytest.raises(ApplicationError, match="signature"):
        peer_add(principal=ROOT, statement=broken, fingerprint=b.fingerprint)


def test_reading_peers_on_the_hot_path_costs_one_query_a_second(b: OtherDomain) -> None:
    add(b)
    began = time.monotonic()
    with CaptureQueriesContext(connection) as queries:
        for _ in range(200):
            peer_get("b.test")
            peers_active()
    assert 1 <= len(queries) <= 1 + (time.monotonic() - began)


@pytest.mark.django_db(transaction=True)
def test_a_domain_whose_address_no_peer_takes_greets_nobody() -> None:
    """It listens on a network by http, as in a laboratory: what repeats every few seconds must not fail each time."""
    with override_settings(HERALD=replace(config(), host="192.0.2.1", public_url="")):
        assert peers_greet() == 0
