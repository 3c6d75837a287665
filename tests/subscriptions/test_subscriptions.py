"""Durable subscriptions: within their RP's bounds, at the place asked for, for their owner and whoever administers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from redis.exceptions import RedisError

from eventing.core.errors import (
    Forbidden,
    Gone,
    InvalidCursor,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
)
from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.core.principals import Principal
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import rendezvous_point_delete
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.selectors.subscriptions import subscription_get, subscription_view, subscriptions_page
from eventing.subscriptions.services.subscriptions import (
    subscription_create,
    subscription_delete,
    subscription_renew,
    subscription_update,
)
from tests.planes import events_at, events_made, in_threads, principal, types_at

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]


def epoch_of(rp: str) -> str:
    state = control.log_state(rp)
    assert state is not None
    return state.epoch


@pytest.mark.parametrize(("start", "offset"), [("now", 5), ("earliest", 2), ("last", 4)])
def test_reading_begins_where_it_was_asked_to(new_rp: NewRp, ben: Principal, start: str, offset: int) -> None:
    rp = new_rp(history={"max_events": 3})
    control.append(rp.id, events_made(5), rp.bounds)
    row = subscription_create(reference=rp.id, principal=ben, start=start)
    assert control.subscription_cursor(rp.id, row.id) == Cursor(epoch_of(rp.id), offset)
    assert subscription_view(row.id).start == Cursor(epoch_of(rp.id), offset)


def test_a_cursor_is_taken_as_it_is_so_that_the_gap_is_told_when_read(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp()
    row = subscription_create(reference=rp.id, principal=ben, start="oldepoch:7")
    assert control.subscription_cursor(rp.id, row.id) == Cursor("oldepoch", 7)


def test_a_lost_log_is_made_again_rather_than_refused(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp()
    control.delete_log(rp.id)
    row = subscription_create(reference=rp.id, principal=ben)
    assert subscription_view(row.id).start == Cursor(epoch_of(rp.id), 0)


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        (None, (100, 10_000, 60)),
        ({"max_events": 1}, (1, 10_000, 60)),
        ({"max_events": 10**9, "max_bytes": 5, "max_age_s": 10**9}, (100, 5, 60)),
        ({"max_age_s": None}, (100, 10_000, 60)),
    ],
)
def test_bounds_are_the_tighter_of_asked_and_the_rps(new_rp: NewRp, ben: Principal, asked: Any, granted: Any) -> None:
    rp = new_rp(history={"max_events": 100, "max_bytes": 10_000, "max_age_s": 60})
    row = subscription_create(reference=rp.id, principal=ben, history=asked)
    assert row.bounds == HistoryBounds(*granted)


def test_it_is_reported_where_its_rp_is(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp()
    row = subscription_create(reference=rp.id, principal=ben, lease_s=60)
    created, granted = events_at(admin_id(rp.id))[-2:]
    assert created["type"] == "io.herald.subscription.created"
    assert created["data"]["subscription"]["owner"] == "ben"
    assert (granted["data"]["what"], granted["data"]["id"], granted["data"]["granted_s"]) == (
        "subscription",
        row.id,
        60,
    )
    told = events_at(DOMAIN_ADMIN)[-1]
    assert (told["id"], told["data"]["subscriptions_in_domain"]) == (created["id"], 1), "the domain's lists are live"
    subscription_renew(subscription_id=row.id, principal=ben, lease_s=600)
    assert events_at(DOMAIN_ADMIN)[-1] == events_at(admin_id(rp.id))[-1]
    assert types_at(DOMAIN_ADMIN) == ["rp.created", "subscription.created", "lease.renewed"]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"start": "yesterday"}, InvalidCursor),
        ({"lease_s": 0}, InvalidRequest),
        ({"history": {"max_events": 0}}, InvalidRequest),
        ({"history": {"max": 1}}, InvalidRequest),
        ({"deliver": {"mode": "webhook"}}, InvalidRequest),
        ({"deliver": {"mode": "pull", "url": "x"}}, InvalidRequest),
        ({"deliver": {}}, InvalidRequest),
        ({"reference": "nowhere"}, NotFound),
    ],
)
def test_what_cannot_be_is_refused_with_nothing_half_made(
    new_rp: NewRp, ben: Principal, asked: dict[str, Any], error: type
) -> None:
    rp = new_rp()
    with pytest.raises(error):
        subscription_create(**{"reference": rp.id, "principal": ben, **asked})
    assert Subscription.objects.count() == 0


def test_the_policy_decides_and_the_past_needs_history(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp(policy=[{"issuer": "domain", "allow": ["subscribe"]}])
    subscription_create(reference=rp.id, principal=ben)
    with pytest.raises(Forbidden):
        subscription_create(reference=rp.id, principal=ben, start="earliest")
    with pytest.raises(Forbidden):
        subscription_create(reference=new_rp(policy=[]).id, principal=ben)


def test_admin_rps_are_subscribed_at_and_end_with_their_rp(new_rp: NewRp, ann: Principal, root: Principal) -> None:
    rp = new_rp()
    with pytest.raises(Forbidden):
        subscription_create(reference=admin_id(rp.id), principal=principal("ben"))
    row = subscription_create(reference=admin_id(rp.id), principal=ann, start="earliest")
    at_domain = subscription_create(reference=DOMAIN_ADMIN, principal=root)
    assert (row.at, row.rp_id) == (admin_id(rp.id), rp.id)
    rendezvous_point_delete(reference=rp.id, principal=ann)
    assert list(Subscription.objects.values_list("id", flat=True)) == [at_domain.id]
    subscription_delete(subscription_id=at_domain.id, principal=root)
    assert types_at(DOMAIN_ADMIN)[-1] == "subscription.deleted"


def test_the_number_at_one_rp_is_bounded_under_races(
    new_rp: NewRp, configure: Callable[..., None], root: Principal
) -> None:
    configure(subscriptions_per_rp_max=3)
    for reference in (new_rp().id, DOMAIN_ADMIN):
        results = in_threads(8, lambda _, at=reference: subscription_create(reference=at, principal=root))  # type: ignore[misc]
        assert sum(isinstance(result, Subscription) for result in results) == 3
        assert sum(isinstance(result, QuotaExceeded) for result in results) == 5


def test_nothing_is_made_when_the_data_plane_is_away(
    new_rp: NewRp, ben: Principal, configure: Callable[..., None]
) -> None:
    rp = new_rp()
    configure(redis_url="unix:///nowhere/redis.sock")
    with pytest.raises(RedisError):
        subscription_create(reference=rp.id, principal=ben)
    with pytest.raises(RedisError):
        new_rp()
    assert Subscription.objects.count() == 0
    assert RendezvousPoint.objects.count() == 1


def test_a_change_grows_the_version_and_nothing_changed_does_not(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp(history={"max_events": 10})
    row = subscription_create(reference=rp.id, principal=ben, history={"max_events": 5})
    changed = subscription_update(subscription_id=row.id, principal=ben, changes={"history": {"max_events": None}})
    assert (changed.version, changed.max_events) == (2, 10)
    assert subscription_update(subscription_id=row.id, principal=ben, changes={"deliver": None}).version == 2
    assert types_at(admin_id(rp.id))[-1] == "subscription.changed"
    with pytest.raises(PreconditionFailed):
        subscription_update(subscription_id=row.id, principal=ben, changes={}, versions=frozenset([1]))
    with pytest.raises(InvalidRequest):
        subscription_update(subscription_id=row.id, principal=ben, changes={"owner": "eve"})


def test_only_its_owner_and_who_administers_manage_it(new_rp: NewRp, ben: Principal, ann: Principal) -> None:
    row = subscription_create(reference=new_rp().id, principal=ben)
    for refused in (principal("eve"), principal("ben", ops=["publish"])):
        with pytest.raises(Forbidden):
            subscription_renew(subscription_id=row.id, principal=refused)
        with pytest.raises(Forbidden):
            subscription_delete(subscription_id=row.id, principal=refused)
    assert subscription_renew(subscription_id=row.id, principal=ben, lease_s=10**6).granted_s == 10**6
    subscription_delete(subscription_id=row.id, principal=ann)
    with pytest.raises(NotFound):
        subscription_get(row.id)


def test_its_end_takes_its_cursor(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp()
    row = subscription_create(reference=rp.id, principal=ben)
    subscription_delete(subscription_id=row.id, principal=ben)
    assert control.subscription_cursor(rp.id, row.id) is None
    assert types_at(admin_id(rp.id))[-1] == "subscription.deleted"


def test_one_whose_lease_has_ended_is_gone(new_rp: NewRp, ben: Principal) -> None:
    now = timezone.now()
    row = subscription_create(reference=new_rp().id, principal=ben, lease_s=5, now=now)
    for read in (subscription_get, subscription_view):
        with pytest.raises(Gone):
            read(row.id, now=now + timedelta(seconds=5))


@pytest.mark.parametrize("reference", ["", "sub_", "sub_" + "A" * 26, "x" * 10_000, "sub_\0", "sub_" + "a" * 26])
def test_an_unknown_id_is_not_found(reference: str) -> None:
    with pytest.raises(NotFound):
        subscription_get(reference)


def test_pages_walk_all_of_an_rp_once(new_rp: NewRp, ben: Principal, ann: Principal) -> None:
    rp = new_rp()
    made = {subscription_create(reference=rp.id, principal=who).id for who in [ben] * 5 + [ann] * 2}
    seen: list[str] = []
    cursor = None
    while True:
        page = subscriptions_page(at=rp.id, limit=3, cursor=cursor)
        seen += [row.id for row in page.items]
        if (cursor := page.next) is None:
            break
    assert len(seen) == len(set(seen)) == 7
    assert set(seen) == made
    assert len(subscriptions_page(at=rp.id, owner="ben").items) == 5
