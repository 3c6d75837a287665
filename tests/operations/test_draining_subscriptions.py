"""A domain that drains has others hold its subscriptions, and states what it cannot hand over; one that closes notifies whom it leaves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

import msgspec
import pytest
from django.utils import timezone

from eventing.core.ids import DOMAIN_ADMIN
from eventing.operations.models import DomainDrain
from eventing.operations.services.drain_preview import drain_preview
from eventing.operations.services.draining import drain_begin, drain_shown, drain_sweep
from eventing.replication.services.replica_admissions import replica_admit
from eventing.replication.services.replica_links import links_offer
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store.client import client
from eventing.store.keys import PUSH_ENDINGS_KEY
from eventing.store.push_endings import PushEnding
from eventing.subscriptions.models import SharedSubscription, Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.services.vault import EndpointSecrets, seal
from eventing.subscriptions.selectors.shared_subscriptions import record_of
from eventing.subscriptions.services.subscriptions import subscription_create
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at
from tests.replication.homes import ANN, OPEN_TO_B, ROOT, join_of, peer

pytestmark = pytest.mark.usefixtures("home_stores")
HOOK = {"mode": "webhook", "url": "https://hooks.example.org/in", "warn_url": "https://hooks.example.org/warn"}


@pytest.fixture
def row(b: OtherDomain) -> RendezvousPoint:
    """An RP in which b.test takes part, which trusts this domain."""
    peer(b, host=True)
    made = rendezvous_point_create(
        principal=ANN, name="weather", policy=[*OPEN_TO_B, {"issuer": "domain", "allow": ["subscribe"]}]
    )
    replica_admit(join=join_of(b.name, made.id))
    links_offer(rps=[made.id])
    return made


def pulled(rp: str) -> Subscription:
    return subscription_create(reference=rp, principal=ANN)


def endpoint(rp: str, mode: str) -> str:
    """A subscription with an endpoint that has consented, as its protocol makes it."""
    made = subscription_create(reference=rp, principal=ANN, deliver=HOOK)
    if mode != "webhook":
        sealed = seal(made.id, EndpointSecrets(url="https://hooks.example.org/in"))
        PushEndpoint.objects.filter(pk=made.id).update(sealed=sealed)
        Subscription.objects.filter(pk=made.id).update(deliver={**made.deliver, "mode": mode})
    PushEndpoint.objects.filter(pk=made.id).update(state="active", verified=True)
    return made.id


def begun(*, closes: bool = False, for_s: float = 3600) -> datetime:
    now = timezone.now()
    drain_begin(principal=ROOT, until=now + timedelta(seconds=for_s), closes=closes)
    return now


def test_a_pull_subscription_is_held_by_a_peer_as_well_from_where_its_reader_is(row: RendezvousPoint) -> None:
    one = pulled(row.id)
    begun()
    assert drain_shown().subscriptions == 1
    drain_sweep()
    shared = SharedSubscription.objects.get(id=one.id)
    assert record_of(shared).holders == ["localhost", "b.test"]
    one.refresh_from_db()
    assert (one.keeper, one.version) == ("localhost", 2)
    shown = drain_shown()
    assert (shown.subscriptions, shown.shared, shown.deliveries) == (0, 1, 1), "b.test has not taken it over yet"
    drain_sweep()
    assert drain_shown().shared == 1


def test_what_cannot_be_handed_over_is_listed_before_it_begins(row: RendezvousPoint) -> None:
    alone = rendezvous_point_create(principal=ANN, name="alone", policy=[{"issuer": "domain", "allow": ["subscribe"]}])
    pulled(row.id)
    pulled(alone.id)
    for mode in ("webhook", "ws-eventing"):
        endpoint(row.id, mode)
    fates = {(one.what, one.mode, one.fate): one.count for one in drain_preview(closes=False).items}
    assert fates == {
        ("home", "", "handed-over"): 1,
        ("home", "", "waits"): 1,
        ("subscription", "pull", "handed-over"): 1,
        ("subscription", "pull", "waits"): 1,
        ("endpoint", "webhook", "waits"): 1,
        ("endpoint", "ws-eventing", "waits"): 1,
    }
    closing = {(one.what, one.mode): one.fate for one in drain_preview(closes=True).items if one.fate != "handed-over"}
    assert closing == {
        ("home", ""): "ends",
        ("subscription", "pull"): "ends",
        ("endpoint", "webhook"): "paused",
        ("endpoint", "ws-eventing"): "ends",
    }
    assert DomainDrain.objects.count() == 0, "nothing began"
    begun()
    drain_sweep()
    assert drain_shown().endpoints == 2
    assert Subscription.objects.count() == 4, "nothing ends in a drain of a domain that returns"


def test_a_domain_that_closes_notifies_subscribers_as_their_protocols_provide() -> None:
    rp = rendezvous_point_create(principal=ANN, name="alone", policy=[{"issuer": "domain", "allow": ["subscribe"]}]).id
    ids = {mode: endpoint(rp, mode) for mode in ("webhook", "ws-eventing", "websub")}
    client().delete(PUSH_ENDINGS_KEY)
    begun(closes=True)
    drain_sweep()
    found = [
        msgspec.msgpack.decode(one, type=PushEnding)
        for one in cast("list[bytes]", client().lrange(PUSH_ENDINGS_KEY, 0, -1))
    ]
    assert {one.mode: (one.subscription, one.status) for one in found} == {
        "ws-eventing": (ids["ws-eventing"], "SourceShuttingDown"),
        "websub": (ids["websub"], "SourceShuttingDown"),
    }
    assert [one.id for one in Subscription.objects.all()] == [ids["webhook"]]
    hook = PushEndpoint.objects.get()
    assert (hook.state, hook.reason, hook.warn_at is not None) == ("paused", "domain-closes", True)
    ended = [one["data"] for one in events_at(DOMAIN_ADMIN) if one["type"] == "io.herald.subscription.deleted"]
    assert [one["reason"] for one in ended] == ["domain-closes"] * 2
    shown = drain_shown()
    assert (shown.state, shown.closed, shown.endpoints) == ("done", 3, 0)
    drain_sweep()
    assert drain_shown().closed == 3, "once"


def test_subscribers_are_notified_before_the_end_even_if_something_cannot_leave(row: RendezvousPoint) -> None:
    endpoint(row.id, "ws-eventing")
    began = begun(closes=True, for_s=600)
    drain_sweep(now=began + timedelta(seconds=1))
    assert (drain_shown().homes, drain_shown().endpoints) == (1, 1), "b.test cannot be reached"
    drain_sweep(now=began + timedelta(seconds=550))
    assert (drain_shown().homes, drain_shown().endpoints) == (1, 0)
