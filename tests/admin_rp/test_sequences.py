"""Any sequence of changes: whoever took a snapshot at any time and followed the events since has the state that is real.

Also whoever took one that was ahead of its cursor, as a snapshot under load is: the first events then tell what it has already.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admin_rp.snapshots import Snapshot, domain_snapshot, rp_snapshot
from eventing.core.errors import ApplicationError
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.operations.services.leases import leases_reap
from eventing.peering.models import Peer
from eventing.peering.rules.peers import Stance
from eventing.peering.selectors.peers import peers_forget
from eventing.peering.services.peers import (
    hello_received,
    peer_add,
    peer_change,
    peer_remove,
    peer_resume,
    peer_suspend,
)
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.pausing import rendezvous_point_pause, rendezvous_point_resume
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_create,
    rendezvous_point_delete,
    rendezvous_point_renew,
    rendezvous_point_update,
)
from eventing.store.client import client as redis_client
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.services.subscriptions import subscription_create, subscription_delete, subscription_renew
from tests.admin_rp.proving import events_after, followed, same
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import ANN, ROOT, now_ms

pytestmark = pytest.mark.usefixtures("planes")

OTHERS = [OtherDomain("b.test"), OtherDomain("c.test")]
KINDS = [
    *("create", "change", "renew", "pause", "delete", "subscribe", "renew-sub", "unsubscribe", "reap"),
    *("peer", "hello", "trust", "suspend", "part"),
]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, 3),
    ),
    min_size=4,
    max_size=10,
)


def step(what: str, which: int) -> None:
    """Do something, where it can be done."""
    rps = list(RendezvousPoint.objects.order_by("id").values_list("id", flat=True))
    subs = list(Subscription.objects.order_by("id").values_list("id", flat=True))
    rp, sub, other = (
        (rps[which % len(rps)] if rps else ""),
        (subs[which % len(subs)] if subs else ""),
        OTHERS[which % 2],
    )
    match what:
        case "create":
            rendezvous_point_create(principal=ANN, name=f"n{which}", lease_s=60)
        case "change":
            rendezvous_point_update(reference=rp, principal=ANN, changes={"title": f"{now_ms()}"})
        case "renew":
            rendezvous_point_renew(reference=rp, principal=ANN, lease_s=60 + which)
        case "pause":
            (rendezvous_point_resume if which % 2 else rendezvous_point_pause)(reference=rp, principal=ANN)
        case "delete":
            rendezvous_point_delete(reference=rp, principal=ANN)
        case "subscribe":
            subscription_create(reference=rp, principal=ANN, lease_s=5)
        case "renew-sub":
            subscription_renew(subscription_id=sub, principal=ANN, lease_s=5 + which)
        case "unsubscribe":
            subscription_delete(subscription_id=sub, principal=ANN)
        case "reap":
            leases_reap(now=datetime.now(UTC) + timedelta(seconds=20))
        case "peer":
            peer_add(principal=ROOT, statement=other.document(), fingerprint=other.fingerprint)
        case "hello":
            hello_received(statement=other.document(), stance=list(Stance)[which], at_ms=now_ms())
        case "trust":
            peer_change(principal=ROOT, name=other.name, events_per_s=100 + which)
        case "suspend":
            (peer_resume if which > 1 else peer_suspend)(principal=ROOT, name=other.name)
        case "part":
            peer_remove(principal=ROOT, name=other.name)


def snapshots(rps: list[str]) -> dict[str, Snapshot]:
    found = {DOMAIN_ADMIN: domain_snapshot(), **{admin_id(rp): rp_snapshot(rp) for rp in rps}}
    return json.loads(json.dumps(found))


def cleared() -> None:
    RendezvousPoint.objects.all().delete()
    Peer.objects.all().delete()
    redis_client().flushdb()
    peers_forget()


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=STEPS, between=STEPS, ahead=st.booleans())
def test_whoever_follows_from_any_snapshot_has_the_real_state(
    before: list[Any], between: list[Any], ahead: bool
) -> None:
    cleared()
    first = rendezvous_point_create(principal=ANN, name="first").id

    def run(steps: list[Any]) -> None:
        for what, which in steps:
            with suppress(ApplicationError):  # there is nothing there to do it to, or it is done already
                step(what, which)

    run(before)
    taken = snapshots([first])
    run(between[: len(between) // 2])
    if ahead:  # the cursor is read before the state: the state may be this much newer
        newer = snapshots([first])
        taken = {at: {"cursor": one["cursor"], "state": newer[at]["state"]} for at, one in taken.items()}
    run(between[len(between) // 2 :])
    for at, real in snapshots([first]).items():
        which = "domain" if at == DOMAIN_ADMIN else "rp"
        told = events_after(at, taken[at]["cursor"])
        state = followed(which, taken[at], told)
        same(which, state, real["state"], {event["type"] for event in told})
