"""Leases end when they say: warned of once, reaped in bounded batches, each reported; a renewal always wins or is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from eventing.core.errors import ApplicationError
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.core.principals import Principal
from eventing.log import control
from eventing.operations.services import leases
from eventing.operations.services.leases import leases_reap, leases_warn
from eventing.outbox.models import OutboxEntry
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import rendezvous_point_renew
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.services.subscriptions import subscription_create, subscription_renew
from tests.planes import events_at, events_made, in_threads, types_at

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]


def test_an_rp_whose_lease_has_ended_is_removed_and_reported(new_rp: NewRp, ben: Principal) -> None:
    now = timezone.now()
    ending, staying = new_rp(lease_s=10, now=now, name="a"), new_rp(lease_s=100, now=now)
    control.append(ending.id, events_made(3), ending.bounds)
    subscription_create(reference=ending.id, principal=ben, now=now)
    assert leases_reap(now=now + timedelta(seconds=9)) == 0
    assert leases_reap(now=now + timedelta(seconds=10)) == 1
    assert list(RendezvousPoint.objects.values_list("id", flat=True)) == [staying.id]
    assert not Subscription.objects.exists()
    assert control.log_state(ending.id) is None
    assert types_at(admin_id(ending.id))[-2:] == ["lease.expired", "rp.deleted"]
    deleted = events_at(DOMAIN_ADMIN)[-1]
    assert (deleted["data"]["rp"]["id"], deleted["data"]["reason"]) == (ending.id, "lease-expired")
    assert leases_reap(now=now + timedelta(seconds=10)) == 0


def test_a_subscription_whose_lease_has_ended_is_removed_and_reported(new_rp: NewRp, ben: Principal) -> None:
    now = timezone.now()
    rp = new_rp(now=now)
    row = subscription_create(reference=rp.id, principal=ben, lease_s=10, now=now)
    assert leases_reap(now=now + timedelta(seconds=10)) == 1
    assert not Subscription.objects.exists()
    assert control.subscription_cursor(rp.id, row.id) is None
    expired, deleted = events_at(admin_id(rp.id))[-2:]
    assert (expired["data"]["what"], expired["data"]["id"]) == ("subscription", row.id)
    assert deleted["data"]["reason"] == "lease-expired"


def test_one_is_warned_of_once_before_its_end_and_again_after_a_renewal(
    new_rp: NewRp, ann: Principal, ben: Principal
) -> None:
    now = timezone.now()
    rp = new_rp(lease_s=100, now=now)
    row = subscription_create(reference=rp.id, principal=ben, lease_s=1000, now=now)
    assert leases_warn(now=now + timedelta(seconds=79)) == 0
    assert leases_warn(now=now + timedelta(seconds=80)) == 1
    assert leases_warn(now=now + timedelta(seconds=81)) == 0
    warned = events_at(admin_id(rp.id))[-1]
    assert (warned["type"], warned["data"]["what"]) == ("io.herald.lease.warned", "rp")
    rendezvous_point_renew(reference=rp.id, principal=ann, lease_s=1000, now=now + timedelta(seconds=90))
    assert leases_warn(now=now + timedelta(seconds=100)) == 0
    assert leases_warn(now=now + timedelta(seconds=890)) == 2
    assert Subscription.objects.get(id=row.id).warned_at is not None


def test_batches_are_bounded_and_the_rest_is_left_to_the_next(new_rp: NewRp, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    for _ in range(7):
        new_rp(lease_s=1, now=now)
    monkeypatch.setattr(leases, "REAP_BATCH", 2)
    monkeypatch.setattr(leases, "REAP_ROUNDS_MAX", 2)
    later = now + timedelta(seconds=1)
    assert leases_reap(now=later) == 4
    assert leases_reap(now=later) == 3
    assert not OutboxEntry.objects.exists()


def test_racing_reapers_report_each_end_once(new_rp: NewRp) -> None:
    now = timezone.now()
    made = [new_rp(lease_s=1, now=now) for _ in range(10)]
    counts = in_threads(4, lambda _: leases_reap(now=now + timedelta(seconds=1)))
    assert sum(counts) == 10
    for row in made:
        assert types_at(admin_id(row.id)).count("lease.expired") == 1


def test_a_renewal_that_was_granted_is_never_reaped(new_rp: NewRp, ann: Principal) -> None:
    now = timezone.now()
    rps = [new_rp(lease_s=10, now=now) for _ in range(8)]
    moment = now + timedelta(seconds=10)

    def renew_or_reap(number: int) -> Any:
        if number % 2:
            return leases_reap(now=moment)
        rp = rps[number // 2]
        return rendezvous_point_renew(
            reference=rp.id, principal=ann, lease_s=60, now=moment - timedelta(microseconds=1)
        )

    results = in_threads(8, renew_or_reap)
    for number in range(0, 8, 2):
        alive = RendezvousPoint.objects.filter(id=rps[number // 2].id).exists()
        assert alive is not isinstance(results[number], ApplicationError)


def test_a_subscription_is_renewed_from_now(new_rp: NewRp, ben: Principal) -> None:
    now = timezone.now()
    row = subscription_create(reference=new_rp(now=now).id, principal=ben, lease_s=10, now=now)
    subscription_renew(subscription_id=row.id, principal=ben, lease_s=10, now=now + timedelta(seconds=9))
    assert leases_reap(now=now + timedelta(seconds=10)) == 0
    assert leases_reap(now=now + timedelta(seconds=19)) == 1
