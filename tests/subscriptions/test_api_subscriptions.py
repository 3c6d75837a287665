"""/api/v1/subscriptions and those at one RP, as their clients see them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from eventing.core.ids import admin_id
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from eventing.subscriptions.models import Subscription
from tests.planes import events_made, problem_code

pytestmark = pytest.mark.usefixtures("stores")

ClientOf = Callable[..., APIClient]


@pytest.fixture
def rp(api: APIClient) -> str:
    """An RP of ann with five events."""
    made: str = api.post("/api/v1/rps", {"name": "a/b", "history": {"max_events": 3}}, format="json").json()["id"]
    control.append(made, events_made(5), RendezvousPoint.objects.get().bounds)
    return made


def subscribe(client: APIClient, rp: str, **asked: Any) -> dict[str, Any]:
    response = client.post(f"/api/v1/rps/{rp}/subscriptions", asked, format="json")
    assert response.status_code == 201, response.content
    document: dict[str, Any] = response.json()
    return document


def test_creation_answers_what_was_granted(api: APIClient, client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    response = ben.post(
        f"/api/v1/rps/{rp}/subscriptions",
        {"lease_s": 60, "history": {"max_events": 1}, "deliver": {"mode": "pull"}, "from": "last"},
        format="json",
    )
    assert response.status_code == 201
    made = response.json()
    path = f"/api/v1/subscriptions/{made['id']}"
    assert (response["Location"], response["ETag"]) == (path, '"1"')
    assert (made["rp"], made["owner"], made["deliver"]) == (rp, "ben", {"mode": "pull"})
    assert (made["history"]["max_events"], made["lease"]["granted_s"]) == (1, 60)
    assert made["cursor"].endswith(":4")
    assert made["links"]["events"] == f"{path}/events"
    assert ben.get(path).json() == made
    assert api.get(path).json() == made  # who administers the RP


def test_one_is_made_by_name_and_at_admin_rps(api: APIClient, rp: str) -> None:
    for reference, at in (
        ("a/b/", rp),
        ("/localhost/a/b/", rp),
        ("%2Flocalhost%2Fa%2Fb%2F", rp),
        (admin_id(rp), admin_id(rp)),
    ):
        assert subscribe(api, reference)["rp"] == at


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"lease": 5}, "invalid-request"),
        ({"lease_s": "5"}, "invalid-request"),
        ({"lease_s": 0}, "invalid-request"),
        ({"history": 5}, "invalid-request"),
        ({"history": {"max_events": 0}}, "invalid-request"),
        ({"history": {"count": 1}}, "invalid-request"),
        ({"deliver": "pull"}, "invalid-request"),
        ({"deliver": {}}, "invalid-request"),
        ({"deliver": {"mode": "webhook"}}, "invalid-request"),
        ({"deliver": {"mode": ["pull"]}}, "invalid-request"),
        ({"deliver": {"mode": {}}}, "invalid-request"),
        ({"from": 5}, "invalid-request"),
        ({"from": ""}, "invalid-request"),
        ({"from": {"epoch": "a", "offset": 1}}, "invalid-request"),
        ({"from": "x" * 65}, "invalid-cursor"),
        ({"from": "x" * 9999}, "invalid-request"),
        ({"from": "tomorrow"}, "invalid-cursor"),
        ({"from": "abc:-1"}, "invalid-cursor"),
        ({"from": "abc:9007199254740993"}, "invalid-cursor"),
    ],
)
def test_what_cannot_be_is_refused(api: APIClient, rp: str, body: Any, code: str) -> None:
    assert problem_code(api.post(f"/api/v1/rps/{rp}/subscriptions", body, format="json")) == code
    assert not Subscription.objects.exists()


def test_nulls_mean_defaults(api: APIClient, rp: str) -> None:
    made = subscribe(api, rp, lease_s=None, history=None, deliver=None)
    assert made["history"]["max_events"] == 3


def test_the_policy_decides(api: APIClient, client_of: ClientOf) -> None:
    closed = api.post("/api/v1/rps", {"policy": []}, format="json").json()["id"]
    ben = client_of("ben")
    assert problem_code(ben.post(f"/api/v1/rps/{closed}/subscriptions")) == "forbidden"
    assert problem_code(ben.get(f"/api/v1/rps/{closed}/subscriptions")) == "forbidden"
    assert problem_code(ben.post(f"/api/v1/rps/{'a' * 26}/subscriptions")) == "not-found"


def test_lists_show_all_to_administrators_and_their_own_to_others(api: APIClient, client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    own = {subscribe(ben, rp)["id"] for _ in range(3)}
    everybodys = own | {subscribe(api, rp)["id"]}
    path = f"/api/v1/rps/{rp}/subscriptions"
    assert {item["id"] for item in ben.get(path).json()["items"]} == own
    page = api.get(path, {"limit": "2"}).json()
    rest = api.get(path, {"limit": "2", "cursor": page["next"]}).json()
    assert {item["id"] for item in page["items"] + rest["items"]} == everybodys
    assert rest["next"] is None
    assert problem_code(api.get(path, {"cursor": "x"})) == "invalid-cursor"


def test_changing_renewing_and_ending_it(client_of: ClientOf, rp: str) -> None:
    ben = client_of("ben")
    path = f"/api/v1/subscriptions/{subscribe(ben, rp)['id']}"
    changed = ben.patch(path, {"history": {"max_events": 2}}, format="json", headers={"If-Match": '"1"'})
    assert (changed.json()["history"]["max_events"], changed["ETag"]) == (2, '"2"')
    assert problem_code(ben.patch(path, {}, format="json", headers={"If-Match": '"1"'})) == "precondition-failed"
    assert problem_code(ben.patch(path, {"owner": "eve"}, format="json")) == "invalid-request"
    assert ben.post(f"{path}/renew", {"lease_s": 10**6}, format="json").json()["lease"]["granted_s"] == 10**6
    assert problem_code(ben.post(f"{path}/renew", {"lease_s": []}, format="json")) == "invalid-request"
    assert problem_code(ben.delete(path, headers={"If-Match": '"1"'})) == "precondition-failed"
    assert ben.delete(path).status_code == 204
    for response in (ben.get(path), ben.delete(path), ben.patch(path, {}, format="json"), ben.post(f"{path}/renew")):
        assert problem_code(response) == "not-found"


def test_others_do_nothing_with_it(client_of: ClientOf, rp: str) -> None:
    path = f"/api/v1/subscriptions/{subscribe(client_of('ben'), rp)['id']}"
    eve = client_of("eve")
    for response in (eve.get(path), eve.delete(path), eve.patch(path, {}, format="json"), eve.post(f"{path}/renew")):
        assert problem_code(response) == "forbidden"


def test_one_whose_lease_has_ended_is_gone(api: APIClient, rp: str) -> None:
    path = f"/api/v1/subscriptions/{subscribe(api, rp)['id']}"
    now = timezone.now()
    Subscription.objects.update(warn_at=now - timedelta(days=2), expires_at=now - timedelta(days=1))
    for response in (api.get(path), api.delete(path), api.patch(path, {}, format="json"), api.post(f"{path}/renew")):
        assert problem_code(response) == "gone"


@pytest.mark.parametrize("reference", ["x", "sub_" + "a" * 26, "sub_%00", "%ff", "x" * 5000, "sub_" + "a" * 26 + "%0A"])
def test_unknown_ids_are_not_found(api: APIClient, reference: str) -> None:
    assert problem_code(api.get(f"/api/v1/subscriptions/{reference}")) == "not-found"
