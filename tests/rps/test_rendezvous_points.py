"""Rendezvous points: admitted whole or not at all, certified by their id, changed by whoever administers them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from eventing.access.rules.policy import compile_policy
from eventing.core.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidCursor,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
)
from eventing.core.ids import DOMAIN_ADMIN, admin_id, rp_id, same_json
from eventing.core.principals import Principal
from eventing.log import control
from eventing.outbox.administrative_events import ADMIN_HISTORY
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get, rendezvous_points_page, reserved_bytes
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_delete,
    rendezvous_point_renew,
    rendezvous_point_update,
)
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.services.subscriptions import subscription_create
from tests.planes import events_at, events_made, in_threads, principal, types_at

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]


def claiming(subject: str, **claims: Any) -> Principal:
    bearer = principal(subject)
    return replace(bearer, claims={**bearer.claims, **claims})


def test_the_id_certifies_the_genesis(new_rp: NewRp) -> None:
    row = new_rp(title="t", policy=[{"issuer": "domain", "claims": {"n": {"equals": 2**53 - 1}}, "allow": ["publish"]}])
    kept = RendezvousPoint.objects.get(id=row.id)
    assert rp_id(kept.genesis) == row.id
    assert kept.genesis["creator"] == "ann"
    assert new_rp(title="t").id != row.id


def test_creation_makes_the_log_and_is_reported_at_both_admin_rps(new_rp: NewRp) -> None:
    row = new_rp(name="a/b", lease_s=60, history={"max_events": 5})
    state = control.log_state(row.id)
    assert state is not None
    assert state.next == 1
    assert types_at(admin_id(row.id)) == ["rp.created", "lease.granted"]
    created = events_at(admin_id(row.id))[0]
    assert created == events_at(DOMAIN_ADMIN)[-1]
    assert created["source"] == f"/localhost/rps/{row.id}"
    assert created["data"]["rp"]["name"] == "/localhost/a/b/"
    granted = events_at(admin_id(row.id))[1]["data"]
    assert (granted["what"], granted["asked_s"], granted["granted_s"]) == ("rp", 60, 60)


def test_a_lease_is_shortened_to_the_longest_and_says_so(new_rp: NewRp, configure: Callable[..., None]) -> None:
    configure(lease_s_max=100, lease_s_default=50)
    row = new_rp(lease_s=10**9)
    assert (row.asked_s, row.granted_s) == (10**9, 100)
    assert new_rp().granted_s == 50


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"name": "a//b"}, InvalidRequest),
        ({"name": "/other.org/a/"}, InvalidRequest),
        ({"name": "/localhost/"}, InvalidRequest),
        ({"title": "x" * 256}, InvalidRequest),
        ({"lease_s": 0}, InvalidRequest),
        ({"lease_s": 2**70}, InvalidRequest),
        ({"history": {"max_events": 0}}, InvalidRequest),
        ({"history": {"max": 1}}, InvalidRequest),
        ({"history": {"max_events": 2**62}}, QuotaExceeded),
        ({"history": {"max_bytes": 2**62}}, QuotaExceeded),
        ({"policy": "everybody"}, InvalidRequest),
        ({"policy": [{"issuer": "domain", "allow": ["fly"]}]}, InvalidRequest),
        ({"ack": "replicated:99"}, InvalidRequest),
        ({"ack": "stored\n"}, InvalidRequest),
    ],
)
def test_what_cannot_be_is_refused_with_nothing_half_made(new_rp: NewRp, asked: dict[str, Any], error: type) -> None:
    with pytest.raises(error):
        new_rp(**asked)
    assert RendezvousPoint.objects.count() == 0
    assert list(control.logs()) == []


def test_a_name_is_given_once(new_rp: NewRp, ben: Principal) -> None:
    new_rp(name="a/b")
    with pytest.raises(Conflict):
        new_rp(name="/localhost/a/b/", principal=ben)


def test_the_name_of_one_whose_lease_has_ended_is_free_at_once(new_rp: NewRp) -> None:
    now = timezone.now()
    old = new_rp(name="a", lease_s=1, now=now)
    fresh = new_rp(name="a", now=now + timedelta(seconds=1))
    assert list(RendezvousPoint.objects.values_list("id", flat=True)) == [fresh.id]
    assert types_at(admin_id(old.id)) == ["rp.created", "lease.granted", "lease.expired", "rp.deleted"]


def test_a_token_narrowed_to_publishing_cannot_create(new_rp: NewRp) -> None:
    with pytest.raises(Forbidden):
        new_rp(principal=principal("ann", ops=["publish"]))


def test_the_quota_admits_whole_or_refuses(new_rp: NewRp, configure: Callable[..., None]) -> None:
    configure(history_quota_bytes=3_000_000)
    row = new_rp(history={"max_bytes": 2_000_000})
    with pytest.raises(QuotaExceeded) as refused:
        new_rp(history={"max_bytes": 1_000_001})
    assert refused.value.extra["free"] == 1_000_000
    new_rp(history={"max_bytes": 1_000_000})
    with pytest.raises(QuotaExceeded):
        rendezvous_point_update(
            reference=row.id, principal=principal("ann"), changes={"history": {"max_bytes": 2_000_001}}
        )
    rendezvous_point_update(reference=row.id, principal=principal("ann"), changes={"history": {"max_bytes": 500_000}})
    assert reserved_bytes() == 1_500_000


def test_the_number_of_rps_is_bounded(new_rp: NewRp, configure: Callable[..., None]) -> None:
    configure(rps_max=2)
    new_rp(), new_rp()
    with pytest.raises(QuotaExceeded):
        new_rp()


def test_racing_creations_never_exceed_the_quota(new_rp: NewRp, configure: Callable[..., None]) -> None:
    configure(history_quota_bytes=5_000_000, rps_max=100)
    results = in_threads(12, lambda _: new_rp(history={"max_bytes": 1_000_000}))
    assert sum(isinstance(result, RendezvousPoint) for result in results) == 5
    assert sum(isinstance(result, QuotaExceeded) for result in results) == 7
    assert reserved_bytes() == 5_000_000


def test_racing_creations_give_a_name_once(new_rp: NewRp) -> None:
    results = in_threads(8, lambda _: new_rp(name="same"))
    assert sum(isinstance(result, RendezvousPoint) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 7


def test_racing_changes_of_one_version_succeed_once(new_rp: NewRp, ann: Principal) -> None:
    row = new_rp()

    def change(number: int) -> Any:
        return rendezvous_point_update(
            reference=row.id, principal=ann, changes={"title": str(number)}, tags=frozenset(["1"])
        )

    results = in_threads(8, change)
    assert sum(isinstance(result, RendezvousPoint) for result in results) == 1
    assert sum(isinstance(result, PreconditionFailed) for result in results) == 7


def test_racing_changes_of_the_same_rules_succeed_once(new_rp: NewRp, ann: Principal) -> None:
    row = new_rp(watch=[{"silence": {"s": 60}}])

    def change(number: int) -> Any:
        return rendezvous_point_update(
            reference=row.id,
            principal=ann,
            changes={"watch": [*row.watch, {"lag": {"events": number + 1}}]},
            tags=frozenset([row.entity_tag]),
        )

    results = in_threads(8, change)
    assert sum(isinstance(result, RendezvousPoint) for result in results) == 1
    assert sum(isinstance(result, PreconditionFailed) for result in results) == 7
    kept = rendezvous_point_get(row.id)
    assert (len(kept.watch), kept.version) == (2, 1), "rules make no version of the signed descriptor"


def test_a_change_grows_the_version_and_is_reported(new_rp: NewRp, ann: Principal) -> None:
    row = new_rp(history={"max_events": 10, "max_age_s": 60})
    changed = rendezvous_point_update(
        reference=row.id,
        principal=ann,
        changes={"name": "n", "title": "T", "history": {"max_age_s": None}, "policy": [], "ack": "accepted"},
    )
    assert changed.version == 2
    kept = RendezvousPoint.objects.get(id=row.id)
    assert (kept.name, kept.title, kept.policy, kept.ack) == ("/localhost/n/", "T", [], "accepted")
    assert (kept.max_events, kept.max_age_s) == (10, None)
    report = events_at(admin_id(row.id))[-1]
    assert report["type"] == "io.herald.rp.changed"
    assert set(report["data"]["changed"]) == {"name", "title", "history", "policy", "ack"}
    assert report["data"]["rp"]["version"] == 2


RETYPED = [
    ({"equals": 1}, {"equals": True}),
    ({"equals": 0}, {"equals": False}),
    ({"in": [1]}, {"in": [True]}),
    ({"in": [False, "x"]}, {"in": [0, "x"]}),
    ({"range": {"min": 1}}, {"range": {"min": 1.0}}),
    ({"range": {"max": 0}}, {"range": {"max": 0.0}}),
]
"""Predicates that Python holds to be equal, and that a policy does not."""


@pytest.mark.parametrize(("before", "after"), [*RETYPED, *((after, before) for before, after in RETYPED)])
def test_a_policy_that_differs_in_the_type_of_a_value_only_is_stored_and_counts(
    new_rp: NewRp, ann: Principal, before: Any, after: Any
) -> None:
    def rules(predicate: Any) -> list[Any]:
        return [{"issuer": "domain", "claims": {"level": predicate}, "allow": ["publish"]}]

    row = new_rp(policy=rules(before))
    assert rendezvous_point_update(reference=row.id, principal=ann, changes={"policy": rules(after)}).version == 2
    kept = RendezvousPoint.objects.get(id=row.id)
    assert same_json(kept.policy, rules(after))
    assert events_at(admin_id(row.id))[-1]["data"]["changed"] == ["policy"]
    admitted = {
        json.dumps(level): descriptor_get(row.id).allows(claiming("ben", level=level), "publish")
        for level in (0, 1, False, True)
    }
    expected = compile_policy(rules(after))
    assert admitted == {
        json.dumps(level): expected.allows(claiming("ben", level=level), "publish") for level in (0, 1, False, True)
    }


@pytest.mark.parametrize(("before", "after"), RETYPED)
def test_an_audience_that_differs_in_the_type_of_a_value_only_is_stored_and_reported(
    new_rp: NewRp, ann: Principal, before: Any, after: Any
) -> None:
    def audience(predicate: Any) -> list[Any]:
        return [{"label": "a", "at_least": 1, "claims": {"level": predicate}}]

    row = new_rp(audience=audience(before))
    needs = descriptor_get(row.id).audience
    rendezvous_point_update(reference=row.id, principal=ann, changes={"audience": audience(after)})
    kept = RendezvousPoint.objects.get(id=row.id)
    assert same_json(kept.audience[0]["claims"], {"level": after})
    assert types_at(admin_id(row.id))[-1] == "watch.changed"
    assert descriptor_get(row.id).audience != needs, "a gateway compares what it counts by"


def test_nothing_changed_keeps_the_version_and_reports_nothing(new_rp: NewRp, ann: Principal) -> None:
    row = new_rp(title="T")
    assert rendezvous_point_update(reference=row.id, principal=ann, changes={"title": "T"}).version == 1
    assert len(events_at(admin_id(row.id))) == 2


def test_new_bounds_take_hold_in_the_log(new_rp: NewRp, ann: Principal) -> None:
    row = new_rp()
    rendezvous_point_update(reference=row.id, principal=ann, changes={"history": {"max_events": 2}})
    events = events_made(5)
    control.append(row.id, events, row.bounds)
    state = control.log_state(row.id)
    assert state is not None
    assert state.next - state.first == 2


@pytest.mark.parametrize("changes", [{"creator": "ben"}, {"title": "x" * 300}, {"policy": 5}, {"name": "a//"}])
def test_a_change_that_cannot_be_changes_nothing(new_rp: NewRp, ann: Principal, changes: dict[str, Any]) -> None:
    row = new_rp()
    with pytest.raises(InvalidRequest):
        rendezvous_point_update(reference=row.id, principal=ann, changes=changes)
    assert RendezvousPoint.objects.get(id=row.id).version == 1


def test_only_who_administers_changes_renews_and_deletes(new_rp: NewRp, ben: Principal, root: Principal) -> None:
    row = new_rp()
    for refused in (ben, principal("ann", ops=["publish"])):
        with pytest.raises(Forbidden):
            rendezvous_point_update(reference=row.id, principal=refused, changes={"title": "x"})
        with pytest.raises(Forbidden):
            rendezvous_point_renew(reference=row.id, principal=refused)
        with pytest.raises(Forbidden):
            rendezvous_point_delete(reference=row.id, principal=refused)
    assert rendezvous_point_update(reference=row.id, principal=root, changes={"title": "x"}).title == "x"


def test_a_policy_may_let_others_administer(new_rp: NewRp, ben: Principal) -> None:
    policy = [{"issuer": "domain", "claims": {"sub": {"equals": "ben"}}, "allow": ["administer"]}]
    row = new_rp(policy=policy)
    assert rendezvous_point_update(reference=row.id, principal=ben, changes={"title": "x"}).title == "x"


def test_admin_rps_are_not_changed_themselves(new_rp: NewRp, root: Principal) -> None:
    for reference in (admin_id(new_rp().id), DOMAIN_ADMIN):
        with pytest.raises(Forbidden):
            rendezvous_point_delete(reference=reference, principal=root)


def test_deletion_takes_history_and_subscriptions_and_is_reported(new_rp: NewRp, ann: Principal) -> None:
    row = new_rp(name="a")
    control.append(row.id, events_made(3), row.bounds)
    subscription_create(reference=row.id, principal=ann)
    rendezvous_point_delete(reference="/localhost/a/", principal=ann, tags=frozenset(["1"]))
    assert not RendezvousPoint.objects.exists()
    assert not Subscription.objects.exists()
    assert control.log_state(row.id) is None
    deleted = events_at(DOMAIN_ADMIN)[-1]
    assert deleted["type"] == "io.herald.rp.deleted"
    assert (deleted["data"]["reason"], deleted["data"]["subscriptions"]) == ("deleted", 1)
    assert deleted == events_at(admin_id(row.id))[-1]
    with pytest.raises(NotFound):
        rendezvous_point_get("a")


def test_renewal_counts_from_now_and_never_shortens(new_rp: NewRp, ann: Principal) -> None:
    now = timezone.now()
    row = new_rp(lease_s=100, now=now)
    later = now + timedelta(seconds=60)
    assert rendezvous_point_renew(reference=row.id, principal=ann, lease_s=10, now=later).granted_s == 40
    lease = rendezvous_point_renew(reference=row.id, principal=ann, lease_s=100, now=later)
    assert (lease.asked_s, lease.granted_s) == (100, 100)
    assert RendezvousPoint.objects.get(id=row.id).expires_at == later + timedelta(seconds=100)
    assert types_at(admin_id(row.id))[-1] == "lease.renewed"


def test_a_lease_that_has_ended_cannot_be_renewed(new_rp: NewRp, ann: Principal) -> None:
    now = timezone.now()
    row = new_rp(lease_s=5, now=now)
    with pytest.raises(Gone, match="lease ended"):
        rendezvous_point_renew(reference=row.id, principal=ann, now=now + timedelta(seconds=5))
    with pytest.raises(Gone):
        descriptor_get(row.id, now=now + timedelta(seconds=5))
    with pytest.raises(Gone):
        descriptor_get(admin_id(row.id), now=now + timedelta(seconds=5))


def test_an_ack_level_that_this_redis_cannot_reach_is_refused_at_creation(new_rp: NewRp) -> None:
    with pytest.raises(Conflict, match="needs 2 Redis replicas"):
        new_rp(ack="replicated:2")


def test_descriptors_are_found_by_id_name_and_admin_id(new_rp: NewRp) -> None:
    row = new_rp(name="a/b", ack="accepted", history={"max_events": 7})
    for reference in (row.id, "a/b", "a/b/", "/localhost/a/b/"):
        found = descriptor_get(reference)
        assert found.id == row.id
        assert (str(found.ack), found.history.max_events) == ("accepted", 7)
        assert found.expires_at == row.expires_at.timestamp()
    administrative = descriptor_get(admin_id(row.id))
    assert (administrative.creator, administrative.history) == ("ann", ADMIN_HISTORY)
    assert administrative.allows(principal("ann"), "subscribe")
    assert not administrative.allows(principal("ben"), "describe")
    assert not descriptor_get(DOMAIN_ADMIN).allows(principal("ann"), "describe")


@pytest.mark.parametrize("reference", ["a" * 26, "a" * 26 + ".admin", "a/b", "x", "/other/x/"])
def test_an_unknown_reference_is_not_found(reference: str) -> None:
    with pytest.raises(NotFound):
        descriptor_get(reference)


@pytest.mark.parametrize("reference", ["", "/", "a\0b", "ä", "a//b", "../x", "x" * 300, "a\n"])
def test_what_can_be_no_reference_is_invalid(reference: str) -> None:
    with pytest.raises(InvalidRequest):
        descriptor_get(reference)


def test_pages_walk_all_rps_once_newest_first(new_rp: NewRp, ann: Principal) -> None:
    now = timezone.now()
    made = [new_rp(now=now + timedelta(seconds=number // 3)).id for number in range(10)]  # some at the same instant
    seen: list[str] = []
    cursor = None
    while True:
        page = rendezvous_points_page(principal=ann, cursor=cursor, limit=3)
        seen += [item.rp.id for item in page.items]
        assert all(item.log is not None for item in page.items)
        if (cursor := page.next) is None:
            break
    assert sorted(seen) == sorted(made)
    assert seen[0] == max(made[9:], key=str)


def test_a_prefix_takes_the_subtree_by_name_and_nothing_beside_it(new_rp: NewRp, ann: Principal) -> None:
    for name in ("a/b", "a/b/c", "a/b/d", "a/bc", "A/b/e", "a0", "a/b-/x"):
        new_rp(name=name)
    first = rendezvous_points_page(principal=ann, prefix="/localhost/a/b", limit=2)
    assert first.next is not None
    rest = rendezvous_points_page(principal=ann, prefix="/localhost/a/b", limit=2, cursor=first.next)
    names = [item.rp.name for page in (first, rest) for item in page.items]
    assert names == ["/localhost/a/b/", "/localhost/a/b/c/", "/localhost/a/b/d/"]
    assert rest.next is None
    assert len(rendezvous_points_page(principal=ann, prefix="/localhost/").items) == 7
    assert rendezvous_points_page(principal=ann, prefix="/other/x/").items == []


def test_lists_show_only_what_one_may_describe(new_rp: NewRp, ben: Principal, root: Principal) -> None:
    hidden, shown = new_rp(policy=[]), new_rp()
    assert [item.rp.id for item in rendezvous_points_page(principal=ben).items] == [shown.id]
    assert {item.rp.id for item in rendezvous_points_page(principal=root).items} == {hidden.id, shown.id}
    assert rendezvous_points_page(principal=principal("ann", ops=["publish"])).items == []


@pytest.mark.parametrize(
    "cursor", ["", "x", "ä", "Y3JlYXRlZCA", "bmFtZSAvYS8", "Y3JlYXRlZCA5OTk5OTk5OTk5OTk5OTk5OTk5OSBh", "=" * 700]
)
def test_a_cursor_that_we_did_not_give_is_refused(ann: Principal, cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        rendezvous_points_page(principal=ann, cursor=cursor)
