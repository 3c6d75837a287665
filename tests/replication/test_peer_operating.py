"""What operators do about peers: try one again, send it events again, keep it from being forgotten, export a proof."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from eventing.access.services.tokens import token_create
from eventing.audit.models import AuditEntry
from eventing.core import signing
from eventing.core.errors import Conflict, Forbidden, InvalidCursor, NotFound
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.core.roles import OPERATOR, VIEWER, scopes_of
from eventing.core.seals import seals
from eventing.core.signing import Signed
from eventing.peering.models import Peer, PeerDelivery
from eventing.peering.rules.domain_documents import from_published, read
from eventing.peering.services.evidence import evidence_keep
from eventing.peering.services.peer_operating import peer_renew
from eventing.peering.wire import client
from eventing.peering.wire.client import PeerError
from eventing.replication import operating
from eventing.replication.forwarding import wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.forwarding.sweeping import peers_sweep
from eventing.replication.ports import forward_start
from tests.operations.test_operating import are_of_the_catalogue
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at, principal
from tests.replication.answering import FakePeer, delivery, own, publish, shared
from tests.replication.shared_rp import Origin, head, peer_made

pytestmark = pytest.mark.usefixtures("transactional_db", "shared_stores")


def of_role(role: str) -> Principal:
    made = principal(role, admin=True)
    return Principal(made.issuer, made.subject, True, made.expires_at, made.claims, scopes_of(role))


@pytest.fixture
def operator() -> Principal:
    return of_role(OPERATOR)


@pytest.fixture
def woken() -> list[str]:
    """The peers that a task was sent for."""
    sent: list[str] = []
    forward_start.connect(sent.append)
    return sent


def domain_events(kind: str) -> list[dict[str, Any]]:
    return [one["data"] for one in events_at(DOMAIN_ADMIN) if one["type"] == f"io.herald.{kind}"]


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("id").values_list("action", flat=True))


@pytest.mark.parametrize("kind", ["busy", "invalid"])
def test_a_peer_is_tried_at_once_whatever_was_waited_for(
    peer: FakePeer, b: OtherDomain, operator: Principal, woken: list[str], kind: Any
) -> None:
    rp = shared(b, 5)
    peer.fails = [PeerError(kind, "Not now.", retry_after_s=3000)]
    peers_sweep()
    forward("b.test")
    assert (delivery().failure, delivery().failures) == (kind, 1)
    peers_sweep()
    forward("b.test")
    assert peer.requests == [], "it is not time, or it has stopped"

    woken.clear()
    operating.retry(principal=operator, name="b.test")
    assert woken == ["b.test"]
    assert delivery().failures == 1, "that it failed is known until it takes something"
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 5}
    assert delivery().failures == 0
    assert [one["peer"]["name"] for one in domain_events("peer.retried")] == ["b.test"]
    assert domain_events("peer.retried")[0]["by"] == "operator"
    assert "peer.retry" in actions()
    are_of_the_catalogue(DOMAIN_ADMIN)


def test_a_try_greets_at_once_and_says_what_came_of_it(
    b: OtherDomain, operator: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    Peer.objects.update(hello_at=timezone.now() + timedelta(hours=1))

    def unreachable(*_: Any) -> bytes:
        raise PeerError("unreachable", "Nobody is there.")

    monkeypatch.setattr(client, "call", unreachable)
    row = operating.retry(principal=operator, name="b.test")
    assert (row.hello_failures, row.hello_problem) == (1, "Nobody is there.")


def test_who_decides_nothing_tries_nothing_and_a_suspended_peer_is_not_tried(
    b: OtherDomain, operator: Principal
) -> None:
    with pytest.raises(Forbidden):
        operating.retry(principal=of_role(VIEWER), name="b.test")
    with pytest.raises(Forbidden):
        operating.replay(principal=principal("ann"), name="b.test", reference="a" * 26)
    with pytest.raises(NotFound):
        operating.retry(principal=operator, name="c.test")
    Peer.objects.update(state="suspended")
    with pytest.raises(Conflict):
        operating.retry(principal=operator, name="b.test")
    with pytest.raises(Conflict):
        operating.replay(principal=operator, name="b.test", reference="a" * 26)
    assert not PeerDelivery.objects.exists()


def test_what_a_peer_lost_after_a_cursor_is_sent_again(
    peer: FakePeer, b: OtherDomain, operator: Principal, woken: list[str]
) -> None:
    rp = shared(b, 3)
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 3}
    publish(rp, 4)
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 7}

    peer.vectors[rp] = {own(rp): 3}  # it was put back from a copy, and we go on believing what it said
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 3}
    sent_before = peer.events()

    woken.clear()
    operating.replay(principal=operator, name="b.test", reference=rp, after=f"{head(rp).epoch}:3")
    assert woken == ["b.test"]
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 7}
    assert peer.events() - sent_before == 4, "what came before the cursor is not sent again"

    peer.vectors[rp] = {}
    operating.replay(principal=operator, name="b.test", reference=rp)
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 7}
    afters = [one["after"] for one in domain_events("peer.replayed")]
    assert afters == [f"{head(rp).epoch}:3", "earliest"]
    assert actions().count("peer.replay") == 2
    are_of_the_catalogue(DOMAIN_ADMIN)


def test_only_what_is_shared_and_a_cursor_of_this_log_can_be_sent_again(b: OtherDomain, operator: Principal) -> None:
    rp = shared(b, 2)
    for wrong in ("aaaaaaaa:1", f"{head(rp).epoch}:9"):
        with pytest.raises(InvalidCursor):
            operating.replay(principal=operator, name="b.test", reference=rp, after=wrong)
    peer_made(OtherDomain("c.test"))
    with pytest.raises(NotFound):
        operating.replay(principal=operator, name="c.test", reference=rp)
    assert domain_events("peer.replayed") == []


def test_a_silent_peer_is_kept(b: OtherDomain, operator: Principal) -> None:
    before = Peer.objects.get().expires_at
    row = peer_renew(principal=operator, name="b.test")
    assert row.expires_at > before + timedelta(days=20)
    renewed = domain_events("lease.renewed")[0]
    assert (renewed["what"], renewed["id"], renewed["granted_s"]) == ("peer", "b.test", row.granted_s)
    are_of_the_catalogue(DOMAIN_ADMIN)
    with pytest.raises(Forbidden):
        peer_renew(principal=of_role(VIEWER), name="b.test")


@pytest.fixture
def root() -> APIClient:
    made = APIClient(raise_request_exception=True)
    made.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(subject='root', admin=True).token}")
    return made


def test_an_exported_proof_convicts_without_this_domain(b: OtherDomain, root: APIClient) -> None:
    told = Origin(b, "a" * 26)
    one, other = told.seal(told.events(2)), told.seal(told.events(2))
    assert evidence_keep(one, other, carrier="c.test")

    listed = root.get("/api/v1/evidence", {"origin": "b.test"}).json()["items"]
    assert [(item["origin"], item["rp"], item["carrier"]) for item in listed] == [("b.test", "a" * 26, "c.test")]
    assert root.get("/api/v1/evidence", {"origin": "c.test"}).json() == {"items": [], "next": None}
    answer = root.get(f"/api/v1/evidence/{listed[0]['digest']}")
    assert "attachment" in answer["Content-Disposition"]
    exported = answer.json()

    bytes_of: Callable[[str], bytes] = base64.b64decode
    both = [Signed(bytes_of(it["payload"]), it["kid"], bytes_of(it["signature"])) for it in exported["seals"]]
    document = read(from_published(exported["document"]))
    assert document.fingerprint == b.fingerprint
    assert seals.equivocate(*both)
    for statement in both:
        sealed_at_ms = seals.seal_read(statement).sealed_at_ms
        assert seals.signed_by(signing.SEAL, statement, sealed_at_ms, document.jwks)
    assert root.get(f"/api/v1/evidence/{'0' * 64}").status_code == 404
