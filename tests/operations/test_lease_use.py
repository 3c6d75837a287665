"""Use renews leases: when, for how long, in batches; and what is said of the end of a lease."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from eventing.audit.models import AuditEntry
from eventing.core.ids import admin_id
from eventing.core.principals import Principal
from eventing.log import control
from eventing.operations.selectors.leases import ENDING_COUNTED_MAX, leases_ending
from eventing.operations.services.leases import leases_warn
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import rendezvous_point_renew, rendezvous_point_update
from eventing.sql.leases import renewed_from
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.services import lease_use
from eventing.subscriptions.services.lease_use import leases_use
from eventing.subscriptions.services.subscriptions import subscription_create
from tests.planes import events_made, types_at

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]

DAY_S = 86_400


def test_use_renews_from_now_for_what_was_asked_and_reports_it(new_rp: NewRp, ben: Principal) -> None:
    now = timezone.now()
    rp = new_rp(lease_s=1000, now=now)
    row = subscription_create(reference=rp.id, principal=ben, lease_s=2000, now=now)
    acts = AuditEntry.objects.count()
    early, due, later = (now + timedelta(seconds=after) for after in (249, 500, 520))
    assert leases_use(rps=[rp.id], subscriptions=[row.id], now=early)[rp.id] == renewed_from(rp)
    rp.refresh_from_db()
    assert rp.expires_at == now + timedelta(seconds=1000), "a quarter has not passed"
    found = leases_use(rps=[rp.id, "a" * 26], subscriptions=[row.id], now=due)
    rp.refresh_from_db()
    row.refresh_from_db()
    assert (rp.expires_at, rp.asked_s, rp.granted_s) == (due + timedelta(seconds=1000), 1000, 1000)
    assert row.expires_at == due + timedelta(seconds=2000)
    assert found == {
        rp.id: (due + timedelta(seconds=250)).timestamp(),
        row.id: (due + timedelta(seconds=500)).timestamp(),
    }
    leases_use(rps=[rp.id], subscriptions=[row.id], now=later)
    assert types_at(admin_id(rp.id)).count("lease.renewed") == 2, "once each"
    assert AuditEntry.objects.count() == acts, "nobody did anything"
    assert leases_warn(now=now + timedelta(seconds=900)) == 0


def test_use_never_shortens_and_revives_nothing(new_rp: NewRp, ann: Principal) -> None:
    now = timezone.now()
    rp, ended = new_rp(lease_s=1000, now=now), new_rp(lease_s=100, now=now)
    rendezvous_point_renew(reference=rp.id, principal=ann, lease_s=100, now=now)
    leases_use(rps=[rp.id, ended.id], now=now + timedelta(seconds=500))
    rp.refresh_from_db()
    ended.refresh_from_db()
    assert rp.expires_at == now + timedelta(seconds=1000)
    assert ended.expires_at == now + timedelta(seconds=100)


def test_replicas_short_leases_and_those_switched_off_are_left(new_rp: NewRp, ann: Principal) -> None:
    now = timezone.now()
    short, off, replica = new_rp(lease_s=59, now=now), new_rp(renew_on_use=False, now=now), new_rp(now=now)
    RendezvousPoint.objects.filter(id=replica.id).update(home="b.example")
    replica.refresh_from_db()
    assert {renewed_from(row) for row in (short, off, replica)} == {math.inf}
    assert leases_use(rps=[short.id, off.id, replica.id], now=now + timedelta(seconds=50)) == {
        row.id: math.inf for row in (short, off, replica)
    }
    changed = rendezvous_point_update(reference=off.id, principal=ann, changes={"renew_on_use": True}, now=now)
    assert (changed.version, renewed_from(changed)) == (2, (now + timedelta(hours=1)).timestamp())


def test_batches_of_renewals_are_bounded(new_rp: NewRp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_use, "USE_BATCH", 2)
    now = timezone.now()
    rows = [new_rp(lease_s=100, now=now) for _ in range(5)]
    leases_use(rps=[row.id for row in rows], now=now + timedelta(seconds=50))
    ends = set(RendezvousPoint.objects.values_list("expires_at", flat=True))
    assert ends == {now + timedelta(seconds=150)}


def test_a_durable_subscription_has_a_week_by_default_and_less_if_asked(
    new_rp: NewRp, ben: Principal, configure: Callable[..., None]
) -> None:
    rp = new_rp()
    assert subscription_create(reference=rp.id, principal=ben).granted_s == 7 * DAY_S
    assert subscription_create(reference=rp.id, principal=ben, lease_s=60).granted_s == 60
    configure(lease_s_max=2 * DAY_S)
    assert subscription_create(reference=rp.id, principal=ben).granted_s == 2 * DAY_S
    configure(lease_s_max=30 * DAY_S, lease_s_default=20 * DAY_S)
    assert subscription_create(reference=rp.id, principal=ben).granted_s == 20 * DAY_S


def test_a_creation_is_answered_with_what_is_deleted_when(api: APIClient) -> None:
    made = api.post("/api/v1/rps", {"lease_s": DAY_S}, format="json").json()
    assert made["renew_on_use"] is True
    until = made["lease"]["expires_at"][:16].replace("T", " ") + " UTC"
    assert made["notice"] == f"Deleted with its 0 events on {until} unless used or renewed."
    row = RendezvousPoint.objects.get(id=made["id"])
    control.append(row.id, events_made(3), row.bounds)
    subscription = api.post(f"/api/v1/rps/{row.id}/subscriptions", {}, format="json").json()
    assert subscription["notice"].endswith(
        f" unless used or renewed; its rendezvous point is deleted on {until}, and the subscription with it, unless used or renewed."
    )
    found = api.get(f"/api/v1/rps/{row.id}").json()
    assert found["notice"] == f"Deleted with its 3 events and 1 subscription on {until} unless used or renewed."
    off = api.patch(f"/api/v1/rps/{row.id}", {"renew_on_use": False}, format="json").json()
    assert off["notice"].endswith(f"{until} unless renewed.")
    assert "notice" not in api.get("/api/v1/rps").json()["items"][0]
    assert api.patch(f"/api/v1/rps/{row.id}", {"renew_on_use": "yes"}, format="json").status_code == 400


def test_what_ends_within_a_day_is_counted_without_what_is_in_use(new_rp: NewRp, ben: Principal) -> None:
    now = timezone.now()
    used, unused, long = (
        new_rp(lease_s=DAY_S, now=now),
        new_rp(lease_s=3600, now=now),
        new_rp(lease_s=3 * DAY_S, now=now),
    )
    row = subscription_create(reference=long.id, principal=ben, lease_s=3600, now=now)
    later = now + timedelta(seconds=1800)
    leases_use(rps=[used.id], now=later)
    assert leases_ending(within=timedelta(days=1), now=later) == 2
    leases_use(rps=[unused.id], subscriptions=[row.id], now=later)
    assert leases_ending(within=timedelta(days=1), now=later) == 0
    assert leases_ending(within=timedelta(days=1), now=now + timedelta(days=2, hours=1)) == 1
    assert Subscription.objects.count() == 1
    assert ENDING_COUNTED_MAX >= 1000
