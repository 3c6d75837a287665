"""An invitation is decided by the standing policy alone, recorded, and carried out with no more history than it grants."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unavailable
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.log import control
from eventing.operations.placement.models import InvitationReceived
from eventing.operations.placement.services.bounds import standing_policy_set
from eventing.peering.selectors.peers import peer_get
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import VERSION
from eventing.replication.joining import client as joining
from eventing.replication.joining import handler
from eventing.replication.joining.messages import InviteRequest, JoinAnswer, ReleaseRequest, encode
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.quotas import log_bounds
from eventing.subscriptions.services.subscriptions import subscription_create
from tests.admin_rp.proving import Proof
from tests.operations.placement.volunteers import load_is
from tests.planes import events_at, events_made
from tests.replication.homes import ROOT, Home, make, peer

pytestmark = pytest.mark.usefixtures("home_stores")


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Home:
    """A peer that is trusted to host, and admits this domain whenever it joins."""
    made = Home()
    peer(made, host=True)

    def call(url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        return encode(JoinAnswer(VERSION, made.descriptor(), [made.admission()], [made.document()]))

    monkeypatch.setattr(joining, "call", call)
    return made


def invite(home: Home, events_per_s: float = 0.0) -> None:
    sender = Sender(home.name, "k", peer_get(home.name))
    handler.invite(sender, encode(InviteRequest(VERSION, home.descriptor(), [home.document()], events_per_s)))


def test_what_the_policy_accepts_is_joined_without_a_person(home: Home) -> None:
    invite(home)
    row = RendezvousPoint.objects.get(id=home.rp)
    assert (row.home, row.creator) == ("a.test", "a.test#a.test")
    invite(home)
    assert [one.reason for one in InvitationReceived.objects.all()] == [""], "what is held is not decided again"


def test_a_home_of_an_older_version_is_understood(home: Home) -> None:
    sender = Sender(home.name, "k", peer_get(home.name))
    handler.invite(sender, encode([VERSION, home.descriptor(), [home.document()]]))
    assert RendezvousPoint.objects.filter(id=home.rp).exists()


def test_no_more_history_is_kept_than_the_policy_grants(home: Home) -> None:
    standing_policy_set(principal=ROOT, policy={"history_bytes_max": 50_000})
    invite(home)
    assert RendezvousPoint.objects.get(id=home.rp).max_bytes == 50_000


def test_a_refusal_has_its_reason_and_is_told(home: Home) -> None:
    with Proof() as proof:
        standing_policy_set(principal=ROOT, policy={"events_per_s_max": 5})
        with pytest.raises(Forbidden, match="5 are the most"):
            invite(home, events_per_s=6.0)
    assert proof.types == ["placement.invitations.bounded", "placement.invitation.answered"]
    load_is(home.rp, 9_000)
    with pytest.raises(Unavailable, match="pressure is 90%"):
        invite(home)
    standing_policy_set(principal=ROOT, policy={"whom": "nobody"})
    with pytest.raises(Forbidden, match=r"accepts no invitations from a\.test"):
        invite(home)
    told = [one["data"] for one in events_at(DOMAIN_ADMIN) if one["type"].endswith("invitation.answered")]
    assert [one["reason"] for one in told] == ["rate", "busy", "not-trusted"]
    assert not RendezvousPoint.objects.exists()


def test_a_storm_of_invitations_is_refused_and_leaves_no_rows(home: Home) -> None:
    standing_policy_set(principal=ROOT, policy={"whom": "named", "named": ["c.test"], "per_home_per_hour_max": 3})
    for _ in range(3):
        with pytest.raises(Forbidden):
            invite(home)
    for _ in range(20):
        with pytest.raises(Unavailable, match="invitations in the last hour"):
            invite(home)
    assert InvitationReceived.objects.count() == 3


def test_a_policy_that_contradicts_itself_is_refused_by_name(client_of: Callable[..., APIClient]) -> None:
    with pytest.raises(InvalidRequest, match="named is empty"):
        standing_policy_set(principal=ROOT, policy={"whom": "named"})
    client = client_of("root", admin=True)
    before = client.get("/api/v1/plan/invitations").json()
    assert (before["version"], before["policy"]["whom"]) == (0, "trusted-peers")
    answer = client.patch("/api/v1/plan/invitations", {"whom": "named", "named": ["a.test"]}, format="json")
    assert (answer.status_code, answer.json()["version"]) == (200, 1)
    answer = client.patch("/api/v1/plan/invitations", {"refused": ["a.test"]}, format="json")
    assert (answer.status_code, "both contain a.test" in answer.json()["detail"]) == (400, True)


def release(home: Home) -> None:
    handler.release(Sender(home.name, "k", peer_get(home.name)), encode(ReleaseRequest(VERSION, home.rp)))


def test_a_home_ends_what_it_invited_to(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []

    def leave(rp: str, next_hops: object, **_: object) -> bool:
        left.append(rp)
        return True

    monkeypatch.setattr(joining, "announce_leave", leave)
    invite(home)
    release(home)
    assert not RendezvousPoint.objects.exists()
    assert left == [home.rp]
    with pytest.raises(NotFound):
        release(home)


def test_a_home_does_not_end_what_a_principal_here_asked_for_or_uses(home: Home) -> None:
    make(home, who=ROOT)
    with pytest.raises(Conflict, match="principal of this domain requested"):
        release(home)


def test_a_replica_with_durable_subscriptions_or_unsent_events_stays(home: Home) -> None:
    invite(home)
    bounds = log_bounds(home.rp)
    assert bounds is not None
    control.append(home.rp, events_made(1), bounds)
    with pytest.raises(Unavailable, match="not reached the home"):
        release(home)
    carl = Principal("a.test", "carl", False, float("inf"), {"iss": "a.test", "sub": "carl"}, local=False)
    subscription_create(reference=home.rp, principal=carl, lease_s=60)
    with pytest.raises(Conflict, match="1 durable subscriptions"):
        release(home)
