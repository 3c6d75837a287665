"""Tokens of peer domains: whose they are, what they are for, and when they stop to count."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import pytest

from eventing.access.rules.policy import compile_policy
from eventing.access.services.revocations import revocation_create
from eventing.access.services.tokens import ensure_domain_key
from eventing.access.verification import peer_keys as peer_keys_module
from eventing.access.verification.peer_keys import KEYS_RELOAD_S, REFRESH_S
from eventing.access.verification.revocations import revocations
from eventing.access.verification.verifier import Verifier
from eventing.conf import config
from eventing.core.errors import TokenRevoked, Unauthenticated
from eventing.core.events.ack_level import Ack
from eventing.core.events.history import HistoryBounds
from eventing.peering import peer_documents
from eventing.peering.peer_documents import REFETCH_S, Refetching
from eventing.peering.rules.peers import Stance
from eventing.peering.services.peers import (
    hello_received,
    peer_add,
    peer_document_followed,
    peer_remove,
    peer_resume,
    peer_suspend,
)
from eventing.rps.rules.descriptor import Descriptor
from tests.peering.other_domain import OtherDomain
from tests.planes import principal

pytestmark = pytest.mark.django_db
ROOT = principal("root", admin=True)


class Clock:
    """Monotonic seconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The domains whose documents were asked for again; asking brings nothing unless a test says what."""
    names: list[str] = []

    def refetch(name: str) -> Future[None] | None:
        names.append(name)
        done: Future[None] = Future()
        done.set_result(None)
        return done if len(names) == 1 else None

    monkeypatch.setattr(peer_keys_module, "document_refetch", refetch)
    return names


@pytest.fixture
def verifier(asked: list[str], clock: Clock) -> Verifier:
    made = Verifier(config())
    made.peer_keys._clock = clock
    return made


@pytest.fixture
def b() -> OtherDomain:
    """An active peer."""
    ensure_domain_key()
    made = OtherDomain()
    peer_add(principal=ROOT, statement=made.document(), fingerprint=made.fingerprint)
    hello_received(statement=made.document(), stance=Stance.APPROVES, at_ms=int(time.time() * 1000))
    revocations().refresh()
    return made


def rp(policy: list[dict[str, Any]]) -> Descriptor:
    return Descriptor("a" * 26, "ann", 1, compile_policy(policy), Ack(True, 0), HistoryBounds(10, 1000, None), 2e9)


def test_a_rule_for_the_peer_admits_its_people_and_nobody_elses(verifier: Verifier, b: OtherDomain) -> None:
    bea = verifier.verify(b.token("bea"))
    assert (bea.issuer, bea.subject, bea.identity, bea.local) == ("b.test", "bea", "b.test#bea", False)
    assert rp([{"issuer": "peer:b.test", "allow": ["subscribe"]}]).allows(bea, "subscribe")
    assert not rp([{"issuer": "peer:b.test", "allow": ["subscribe"]}]).allows(bea, "publish")
    for other in ("peer:c.test", "domain"):
        assert not rp([{"issuer": other, "allow": ["subscribe"]}]).allows(bea, "subscribe")


def test_claims_of_a_peers_token_are_tested_by_predicates(verifier: Verifier, b: OtherDomain) -> None:
    policy = [{"issuer": "peer:b.test", "claims": {"age": {"range": {"min": 18}}}, "allow": ["subscribe"]}]
    assert rp(policy).allows(verifier.verify(b.token("bea", age=18)), "subscribe")
    assert not rp(policy).allows(verifier.verify(b.token("ben", age=17)), "subscribe")


def test_a_peers_administrator_administers_nothing_here(verifier: Verifier, b: OtherDomain) -> None:
    one = verifier.verify(b.token("root", admin=True))
    assert not one.admin
    assert not rp([]).allows(one, "administer")


def test_a_peers_people_are_nobody_of_ours_whatever_their_name(verifier: Verifier, b: OtherDomain) -> None:
    ann = verifier.verify(b.token("ann"))
    assert not rp([]).administered_by(ann), "the creator is our ann"


def test_scopes_narrow_a_peers_token_too(verifier: Verifier, b: OtherDomain) -> None:
    narrowed = verifier.verify(b.token("bea", ops=["describe"]))
    assert not rp([{"issuer": "peer:b.test", "allow": ["subscribe"]}]).allows(narrowed, "subscribe")


@pytest.mark.parametrize("audience", ["b.test", "localhost", ["x.test", "localhost"]])
def test_it_may_be_for_its_own_domain_or_for_this_one(verifier: Verifier, b: OtherDomain, audience: Any) -> None:
    assert verifier.verify(b.token(aud=audience)).subject == "bea"


@pytest.mark.parametrize("audience", ["c.test", ["c.test"], None, "b.test.evil"])
def test_wrong_audience(verifier: Verifier, b: OtherDomain, audience: Any) -> None:
    with pytest.raises(Unauthenticated, match="not for"):
        verifier.verify(b.token(aud=audience))


def test_forged_by_a_key_in_the_name_of_the_peers(verifier: Verifier, b: OtherDomain) -> None:
    forger = OtherDomain()
    with pytest.raises(Unauthenticated, match="signature is wrong"):
        verifier.verify(b.token(key={**forger.keys[0], "kid": b.fingerprint}))


def test_forged_by_a_key_of_ours_or_of_another_peer(verifier: Verifier, b: OtherDomain) -> None:
    c = OtherDomain("c.test")
    with pytest.raises(Unauthenticated, match=r"names no key of b\.test"):
        verifier.verify(b.token(key=c.keys[0]))
    with pytest.raises(Unauthenticated, match="names no key of this domain"):
        verifier.verify(b.token(iss="localhost", aud="localhost"))


def test_altered_claims(verifier: Verifier, b: OtherDomain) -> None:
    head, _, signature = b.token("bea").split(".")
    _, claims, _ = b.token("root").split(".")
    with pytest.raises(Unauthenticated, match="signature is wrong"):
        verifier.verify(f"{head}.{claims}.{signature}")


def test_expired(verifier: Verifier, b: OtherDomain) -> None:
    with pytest.raises(Unauthenticated, match="expired"):
        verifier.verify(b.token(exp=int(time.time()) - 1))


def test_signed_by_a_key_whose_window_has_closed_or_not_opened(verifier: Verifier, b: OtherDomain) -> None:
    now = int(time.time())
    for key in (b.add_key(exp=now - 5), b.add_key(nbf=now + 3600)):
        peer_document_followed(b.document(), name="b.test")
        with pytest.raises(Unauthenticated, match="names no key"):
            Verifier(config()).verify(b.token(key=key))


def test_a_token_ends_with_the_key_that_signed_it(verifier: Verifier, b: OtherDomain) -> None:
    ends = int(time.time()) + 60
    key = b.add_key(exp=ends)
    peer_document_followed(b.document(), name="b.test")
    assert verifier.verify(b.token(key=key)).expires_at == ends


def test_of_a_suspended_peer(verifier: Verifier, b: OtherDomain) -> None:
    known, new = b.token("bea"), b.token("ben")
    verifier.verify(known)
    peer_suspend(principal=ROOT, name="b.test")
    revocations().refresh()
    with pytest.raises(TokenRevoked, match=r"b\.test is suspended here"):
        verifier.peek(known)
    with pytest.raises(Unauthenticated, match=r"b\.test is suspended here"):
        verifier.verify(new)
    peer_resume(principal=ROOT, name="b.test")
    revocations().refresh()
    assert verifier.verify(known).subject == "bea"


def test_of_a_peer_that_was_removed(verifier: Verifier, b: OtherDomain) -> None:
    known = b.token()
    verifier.verify(known)
    peer_remove(principal=ROOT, name="b.test")
    revocations().refresh()
    for verify in (verifier.peek, verifier.verify):
        with pytest.raises(Unauthenticated, match=r"b\.test is no peer"):
            verify(known)


def test_of_a_domain_that_only_asks_or_was_only_asked(verifier: Verifier) -> None:
    c, d = OtherDomain("c.test"), OtherDomain("d.test")
    hello_received(statement=c.document(), stance=Stance.PROPOSES, at_ms=1)
    peer_add(principal=ROOT, statement=d.document(), fingerprint=d.fingerprint)
    for one in (c, d, OtherDomain("e.test")):
        with pytest.raises(Unauthenticated, match="is no peer"):
            verifier.verify(one.token())


def test_open_sessions_are_told_when_a_peer_is_suspended(verifier: Verifier, b: OtherDomain) -> None:
    bea = verifier.verify(b.token())
    told: list[bool] = []
    ended = revocations().listen(lambda: told.append(True))
    peer_suspend(principal=ROOT, name="b.test")
    revocations().refresh()
    ended()
    assert told == [True]
    assert revocations().revoked(bea) is not None


def test_revocation_applies_to_a_peers_tokens(verifier: Verifier, b: OtherDomain) -> None:
    one, other = b.token("bea", jti="one"), b.token("bea", jti="other")
    verifier.verify(one)
    revocation_create(principal=ROOT, kind="token", value="one", issuer="b.test")
    revocations().refresh()
    with pytest.raises(TokenRevoked):
        verifier.verify(one)
    assert verifier.verify(other).token_id == "other"
    revocation_create(principal=ROOT, kind="key", value=b.fingerprint, issuer="b.test")
    revocations().refresh()
    with pytest.raises(TokenRevoked):
        verifier.verify(other)


def test_a_new_key_is_found_in_sql_and_else_asked_for_once(
    verifier: Verifier, b: OtherDomain, asked: list[str], clock: Clock
) -> None:
    verifier.verify(b.token())
    made = b.add_key()
    with pytest.raises(Unauthenticated, match=r"no key of b\.test"):
        verifier.verify(b.token(key=made))
    assert asked == ["b.test"] * len(asked)
    peer_document_followed(b.document(), name="b.test")  # its hello arrived
    clock.now += REFRESH_S
    assert verifier.verify(b.token(key=made)).key_id == made["kid"]


def test_what_is_asked_for_again_is_used_by_the_token_that_waited(
    verifier: Verifier, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier.verify(b.token())
    made = b.add_key()

    def refetch(name: str) -> Future[None]:
        peer_document_followed(b.document(), name=name)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    monkeypatch.setattr(peer_keys_module, "document_refetch", refetch)
    assert verifier.verify(b.token(key=made)).key_id == made["kid"]


def test_a_flood_of_made_up_keys_costs_the_peer_and_sql_nothing(
    verifier: Verifier, b: OtherDomain, asked: list[str], django_assert_max_num_queries: Callable[..., Any]
) -> None:
    verifier.verify(b.token())
    key = OtherDomain().keys[0]
    with django_assert_max_num_queries(3):
        for number in range(50):
            with pytest.raises(Unauthenticated):
                verifier.verify(b.token(key={**key, "kid": f"made-up-{number}"}))
    assert set(asked) == {"b.test"}, "and how often is limited where it is asked for: see the next test"


def test_a_peers_document_is_asked_for_again_at_most_once_in_a_while(
    b: OtherDomain, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(peer_documents, "_follow", lambda name: fetched.append(name) is None)
    refetching = Refetching(clock)
    for _ in range(3):
        first = refetching.refetch("b.test")
        assert first is not None
        first.result(5)
        for _ in range(20):
            assert refetching.refetch("b.test") is None
        clock.now += REFETCH_S
    assert fetched == ["b.test"] * 3


def test_a_flood_of_made_up_domains_costs_nothing(
    verifier: Verifier, b: OtherDomain, django_assert_num_queries: Callable[..., Any]
) -> None:
    verifier.verify(b.token())
    forger = OtherDomain()
    with django_assert_num_queries(0):
        for number in range(50):
            with pytest.raises(Unauthenticated, match="is no peer"):
                verifier.verify(forger.token(iss=f"d{number}.test"))


def test_what_a_retired_key_signed_is_verified_again_within_a_minute(
    verifier: Verifier, b: OtherDomain, clock: Clock
) -> None:
    key = b.add_key()
    peer_document_followed(b.document(), name="b.test")
    known = b.token(key=key)
    verifier.verify(known)
    key["exp"] = int(datetime.now(UTC).timestamp()) - 1
    peer_document_followed(b.document(), name="b.test")
    clock.now += KEYS_RELOAD_S
    with pytest.raises(Unauthenticated):
        verifier.verify(b.token("ben", key=key))  # whose turn it is to look
    assert verifier.peek(known) is None
    with pytest.raises(Unauthenticated):
        verifier.verify(known)


def test_an_own_token_with_the_audience_of_a_peer_is_not_for_us(verifier: Verifier, b: OtherDomain) -> None:
    from eventing.access.services.tokens import token_create

    with pytest.raises(Unauthenticated, match="not for localhost"):
        verifier.verify(token_create(subject="ann", audience="b.test").token)
