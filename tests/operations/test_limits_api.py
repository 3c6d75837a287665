"""Quotas of principals, exact however many ask at once, and what /api/v1/limits says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import RequestFactory
from rest_framework.test import APIClient

from eventing.client_address import request_address, scope_address
from eventing.core.errors import QuotaExceeded
from eventing.core.principals import Principal
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors import quotas
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_create,
    rendezvous_point_delete,
    rendezvous_point_update,
)
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.services.subscriptions import subscription_create, subscription_delete
from tests.planes import in_threads, problem_code

pytestmark = pytest.mark.usefixtures("stores")

MIB = 1024 * 1024


def refusals(outcomes: list[Any]) -> int:
    """How many were refused; by nothing but a quota."""
    refused = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert all(isinstance(outcome, QuotaExceeded) for outcome in refused), refused
    return len(refused)


def test_one_principal_cannot_take_all_rendezvous_points(
    configure: Callable[..., None], ann: Principal, ben: Principal
) -> None:
    configure(rps_per_principal=2)
    mine = [rendezvous_point_create(principal=ann) for _ in range(2)]
    with pytest.raises(QuotaExceeded) as caught:
        rendezvous_point_create(principal=ann)
    assert caught.value.extra["limit"] == 2
    rendezvous_point_create(principal=ben)
    rendezvous_point_delete(reference=mine[0].id, principal=ann)
    rendezvous_point_create(principal=ann)
    assert quotas.rps_of("ann")[0] == 2


def test_reserved_history_of_one_principal_is_bounded_at_creation_and_at_change(
    configure: Callable[..., None], ann: Principal, root: Principal
) -> None:
    configure(history_bytes_per_principal=3 * MIB)
    rp = rendezvous_point_create(principal=ann, history={"max_bytes": 2 * MIB})
    with pytest.raises(QuotaExceeded) as caught:
        rendezvous_point_create(principal=ann, history={"max_bytes": 2 * MIB})
    assert (caught.value.extra["limit"], caught.value.extra["free"]) == (3 * MIB, MIB)
    with pytest.raises(QuotaExceeded):
        rendezvous_point_update(reference=rp.id, principal=ann, changes={"history": {"max_bytes": 4 * MIB}})
    assert RendezvousPoint.objects.get().max_bytes == 2 * MIB
    rendezvous_point_update(reference=rp.id, principal=ann, changes={"history": {"max_bytes": 3 * MIB}})
    configure(history_bytes_per_principal=MIB)  # lowered by the operator: what is held stays, and may only shrink
    with pytest.raises(QuotaExceeded):
        rendezvous_point_create(principal=ann, history={"max_bytes": 1})
    rendezvous_point_update(reference=rp.id, principal=ann, changes={"title": "x", "history": {"max_bytes": 2 * MIB}})
    rendezvous_point_update(
        reference=rp.id, principal=root, changes={"history": {"max_bytes": 5 * MIB}}
    )  # may give more


def test_history_is_reserved_whole_or_refused_however_many_ask_at_once(
    configure: Callable[..., None], ann: Principal
) -> None:
    configure(history_bytes_per_principal=3 * MIB + MIB // 2)
    outcomes = in_threads(6, lambda _: rendezvous_point_create(principal=ann, history={"max_bytes": MIB}))
    assert refusals(outcomes) == 3
    assert quotas.rps_of("ann") == (3, 3 * MIB)


def test_subscriptions_of_one_principal_are_bounded_over_all_rendezvous_points_at_once(
    configure: Callable[..., None], new_rp: Callable[..., Any], ben: Principal, ann: Principal
) -> None:
    configure(subscriptions_per_principal=2)
    rps = [new_rp().id for _ in range(5)]  # locks of their own: only the principal's is common
    outcomes = in_threads(5, lambda number: subscription_create(reference=rps[number], principal=ben))
    assert refusals(outcomes) == 3
    assert Subscription.objects.filter(owner="ben").count() == 2
    subscription_create(reference=rps[0], principal=ann)
    made = next(outcome for outcome in outcomes if isinstance(outcome, Subscription))
    subscription_delete(subscription_id=made.id, principal=ben)
    subscription_create(reference=rps[0], principal=ben)


def test_administrators_are_bounded_by_the_domain_only(configure: Callable[..., None], root: Principal) -> None:
    configure(rps_per_principal=1, history_bytes_per_principal=1, subscriptions_per_principal=1, rps_max=3)
    rps = [rendezvous_point_create(principal=root).id for _ in range(3)]
    for rp in rps:
        subscription_create(reference=rp, principal=root)
    with pytest.raises(QuotaExceeded):
        rendezvous_point_create(principal=root)


def test_zero_is_no_limit(configure: Callable[..., None], ann: Principal, ben: Principal) -> None:
    configure(rps_per_principal=0, history_bytes_per_principal=0, subscriptions_per_principal=0)
    rp = rendezvous_point_create(principal=ann, history={"max_bytes": 100 * MIB}).id
    subscription_create(reference=rp, principal=ben)


def test_a_refusal_over_rest_says_what_is_left(configure: Callable[..., None], api: APIClient) -> None:
    configure(history_bytes_per_principal=2 * MIB)
    refused = api.post("/api/v1/rps", {"history": {"max_bytes": 3 * MIB}}, format="json")
    assert refused.status_code == 409
    assert problem_code(refused) == "quota-exceeded"
    assert refused.json()["free"] == 2 * MIB
    assert "Request less" in refused.json()["detail"]


# /api/v1/limits


def states(client: APIClient, part: str = "limits", **query: str) -> dict[str, dict[str, Any]]:
    answer = client.get("/api/v1/limits", query)
    assert answer.status_code == 200, answer.content
    assert answer["Cache-Control"] == "no-store"
    return {state["name"]: state for state in answer.json()[part]}


def test_what_is_kept_is_told_as_it_is_enforced(
    configure: Callable[..., None], api: APIClient, client_of: Callable[..., APIClient]
) -> None:
    configure(rps_per_principal=3, history_bytes_per_principal=10 * MIB, subscriptions_per_principal=4)
    rp = api.post("/api/v1/rps", {"history": {"max_bytes": 4 * MIB}}, format="json").json()["id"]
    api.post(f"/api/v1/rps/{rp}/subscriptions", {}, format="json")
    mine = states(api)
    assert {name: (mine[name]["limit"], mine[name]["used"], mine[name]["remaining"]) for name in mine} == {
        "rps": (3, 1, 2),
        "history-bytes": (10 * MIB, 4 * MIB, 6 * MIB),
        "subscriptions": (4, 1, 3),
    }
    assert {state["counted"] for state in mine.values()} == {"domain"}
    remaining = mine["history-bytes"]["remaining"]
    assert api.post("/api/v1/rps", {"history": {"max_bytes": remaining + 1}}, format="json").status_code == 409
    assert api.post("/api/v1/rps", {"history": {"max_bytes": remaining}}, format="json").status_code == 201
    assert states(api, "rp", rp=rp)["rp-subscriptions"]["used"] == 1
    assert states(client_of("ben"))["rps"]["used"] == 0


def test_the_domain_is_told_to_administrators_only(
    configure: Callable[..., None], api: APIClient, client_of: Callable[..., APIClient]
) -> None:
    configure(history_quota_bytes=100 * MIB, rps_max=50)
    api.post("/api/v1/rps", {"history": {"max_bytes": 4 * MIB}}, format="json")
    assert api.get("/api/v1/limits").json()["domain"] is None
    root = client_of("root", admin=True)
    domain = states(root, "domain")
    assert (domain["domain-rps"]["used"], domain["domain-rps"]["remaining"]) == (1, 49)
    assert (domain["domain-history-bytes"]["used"], domain["domain-history-bytes"]["limit"]) == (4 * MIB, 100 * MIB)
    assert states(root)["rps"]["limit"] is None


def test_limits_of_a_rendezvous_point_are_for_those_who_may_describe_it(
    api: APIClient, client_of: Callable[..., APIClient]
) -> None:
    rp = api.post("/api/v1/rps", {"policy": []}, format="json").json()["id"]
    assert states(api, "rp", rp=rp)["rp-subscriptions"]["used"] == 0
    refused = client_of("ben").get("/api/v1/limits", {"rp": rp})
    assert (refused.status_code, problem_code(refused)) == (403, "forbidden")
    assert api.get("/api/v1/limits", {"rp": "a" * 26}).status_code == 404


def test_the_client_address_of_djangos_requests_is_that_of_the_edge(configure: Callable[..., None]) -> None:
    request = RequestFactory().get("/", headers={"X-Forwarded-For": "6.6.6.6, 198.51.100.1"})
    headers = [(b"x-forwarded-for", b"6.6.6.6"), (b"x-forwarded-for", b"198.51.100.1")]
    scope = {"client": ("127.0.0.1", 1), "headers": headers}
    assert request_address(request) == scope_address(scope) == "127.0.0.1"
    configure(trusted_proxies="127.0.0.0/8")
    assert request_address(request) == scope_address(scope) == "198.51.100.1"
    assert scope_address({"client": None, "headers": []}) == ""


def test_strangers_are_told_nothing() -> None:
    answer = APIClient().get("/api/v1/limits")
    assert (answer.status_code, problem_code(answer)) == (401, "unauthenticated")
