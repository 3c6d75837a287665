"""/api/v1/rps as its clients see it: every operation, in success and in every kind of refusal."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from eventing.audit.models import AuditEntry
from eventing.core.ids import DOMAIN_ADMIN, admin_id, rp_id
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from tests.planes import events_made, problem_code

pytestmark = pytest.mark.usefixtures("stores")

RPS = "/api/v1/rps"
ClientOf = Callable[..., APIClient]


def create(api: APIClient, **asked: Any) -> dict[str, Any]:
    response = api.post(RPS, asked, format="json")
    assert response.status_code == 201, response.content
    document: dict[str, Any] = response.json()
    return document


def test_creation_answers_what_was_granted(api: APIClient) -> None:
    response = api.post(
        RPS,
        {"name": "a/b", "title": "T", "lease_s": 60, "history": {"max_events": 5, "max_age_s": 60}, "ack": "accepted"},
        format="json",
    )
    assert response.status_code == 201
    rp = response.json()
    assert response["Location"] == f"{RPS}/{rp['id']}"
    assert re.fullmatch(r'"1-[a-z2-7]{13}"', response["ETag"])
    assert response["Content-Type"] == "application/json"
    state = control.log_state(rp["id"])
    assert state is not None
    assert (rp["epoch"], rp["offset"]) == (state.epoch, 0)
    assert (rp["name"], rp["title"], rp["domain"], rp["creator"]) == ("/localhost/a/b/", "T", "localhost", "ann")
    assert rp["history"] == {"max_events": 5, "max_bytes": 1024 * 1024, "max_age_s": 60}
    assert (rp["lease"]["asked_s"], rp["lease"]["granted_s"]) == (60, 60)
    assert rp["links"] == {
        "events": f"{RPS}/{rp['id']}/events",
        "stream": f"{RPS}/{rp['id']}/stream",
        "subscriptions": f"{RPS}/{rp['id']}/subscriptions",
        "admin": f"{RPS}/{rp['id']}.admin",
    }
    assert rp_id(rp["genesis"]) == rp["id"]
    assert api.get(response["Location"]).json() == rp


def test_everything_has_a_default(api: APIClient) -> None:
    assert api.post(RPS).status_code == 201
    rp = create(api)
    assert (rp["name"], rp["ack"]) == (None, "stored")
    assert rp["policy"] == [{"issuer": "domain", "allow": ["describe", "publish", "subscribe", "history"]}]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"nam": "a"}, "nam"),
        ({"history": {"max": 1}}, "history.max"),
        ({"name": 5}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": "/other.org/a"}, "name here begins"),
        ({"title": None}, "title"),
        ({"title": ["x"]}, "title"),
        ({"title": "x" * 256}, "title"),
        ({"lease_s": "60"}, "lease_s"),
        ({"lease_s": True}, "lease_s"),
        ({"lease_s": 1.5}, "lease_s"),
        ({"lease_s": 0}, "lease_s"),
        ({"lease_s": -(2**53) + 1}, "lease_s"),
        ({"lease_s": {}}, "lease_s"),
        ({"history": []}, "history"),
        ({"history": "x"}, "history"),
        ({"history": {"max_events": "5"}}, "history.max_events"),
        ({"history": {"max_age_s": 0}}, "history.max_age_s"),
        ({"policy": {}}, "policy"),
        ({"policy": 5}, "policy"),
        ({"policy": [5]}, "policy"),
        ({"policy": [{"issuer": "domain", "allow": [["x"]]}]}, "policy"),
        ({"policy": [{"issuer": "domain", "allow": [], "claims": {"a": {"in": [{}]}}}]}, "policy"),
        ({"policy": [{"issuer": {}, "allow": []}]}, "policy"),
        ({"ack": "maybe"}, "ack"),
        ({"ack": 1}, "ack"),
        ({"reliability": 1}, "reliability"),
        ({"reliability": 0}, "reliability"),
        ({"reliability": 0.9999999}, "reliability"),
        ({"reliability": "0.9"}, "reliability"),
        ({"reliability": True}, "reliability"),
        ({"x" * 1000: 1}, "unknown member"),
        ([], "body"),
        ("text", "body"),
        (5, "body"),
        (None, "body"),
    ],
)
def test_a_body_of_another_form_is_refused_naming_the_member(api: APIClient, body: Any, says: str) -> None:
    response = (
        api.post(RPS, body, format="json") if body is not None else api.generic("POST", RPS, "null", "application/json")
    )
    assert problem_code(response) == "invalid-request"
    assert says in response.json()["detail"].lower()
    assert RendezvousPoint.objects.count() == 0


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"title":"a","title":"b"}',
        '{"title":"\\u0000"}',
        '{"title":"\\ud800"}',
        '{"\\ud800":1}',
        b'{"title":"\xff"}',
        '{"lease_s":NaN}',
        '{"lease_s":1e999}',
        '{"lease_s":' + "9" * 5000 + "}",
        '{"lease_s":99999999999999999999}',
        "[" * 30_000,
        '{"policy":' * 5000,
        "\ufeff{}".encode(),
    ],
)
def test_json_that_is_not_strict_is_refused(api: APIClient, text: Any, key: str | None) -> None:
    headers = {"Idempotency-Key": key} if key else {}
    response = api.generic("POST", RPS, text, "application/json", headers=headers)
    assert problem_code(response) == "invalid-request"


def test_a_body_that_is_too_large_is_refused(api: APIClient) -> None:
    assert problem_code(api.post(RPS, {"title": "x" * 70_000}, format="json")) == "too-large"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x", ""]
)
def test_another_content_type_is_refused(api: APIClient, kind: str) -> None:
    assert problem_code(api.generic("POST", RPS, "title=x", kind)) == "unsupported-media-type"


def test_json_with_parameters_is_json(api: APIClient) -> None:
    assert api.generic("POST", RPS, "{}", "Application/JSON; charset=utf-8").status_code == 201


def test_quotas_and_names_are_refused_with_their_codes(api: APIClient, configure: Callable[..., None]) -> None:
    create(api, name="a")
    assert problem_code(api.post(RPS, {"name": "a"}, format="json")) == "conflict"
    configure(history_quota_bytes=2 * 1024 * 1024)
    refused = api.post(RPS, {"history": {"max_bytes": 2 * 1024 * 1024}}, format="json")
    assert problem_code(refused) == "quota-exceeded"
    assert refused.json()["free"] == 1024 * 1024
    assert problem_code(api.post(RPS, {"history": {"max_age_s": 2**53 - 1}}, format="json")) == "quota-exceeded"


def test_one_is_described_by_id_name_and_short_name(api: APIClient) -> None:
    rp = create(api, name="a/b")
    for reference in (rp["id"], quote("/localhost/a/b/", safe=""), "/localhost/a/b/", quote("a/b", safe=""), "a/b/"):
        response = api.get(f"{RPS}/{reference}")
        assert response.json()["id"] == rp["id"]
        assert re.fullmatch(r'"1-[a-z2-7]{13}"', response["ETag"])


def test_the_description_follows_the_log(api: APIClient) -> None:
    rp = create(api)
    row = RendezvousPoint.objects.get()
    control.append(row.id, events_made(3), row.bounds)
    assert api.get(f"{RPS}/{rp['id']}").json()["offset"] == 3
    control.delete_log(row.id)
    assert api.get(f"{RPS}/{rp['id']}").json()["epoch"] is None


def test_admin_rps_are_described_to_who_may_read_them(api: APIClient, client_of: ClientOf) -> None:
    rp = create(api)
    path = f"{RPS}/{admin_id(rp['id'])}"
    described = api.get(path).json()
    assert (described["id"], described["creator"], described["lease"]) == (admin_id(rp["id"]), "ann", None)
    assert described["offset"] == 2
    assert problem_code(client_of("ben").get(path)) == "forbidden"
    assert problem_code(api.get(f"{RPS}/{DOMAIN_ADMIN}")) == "forbidden"
    assert client_of("root", admin=True).get(f"{RPS}/{DOMAIN_ADMIN}").status_code == 200
    assert problem_code(api.delete(path)) == "forbidden"
    assert problem_code(api.patch(path, {"title": "x"}, format="json")) == "forbidden"
    assert problem_code(api.post(f"{path}/renew")) == "forbidden"


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("a" * 26, "not-found"),
        ("a" * 26 + ".admin", "not-found"),
        ("nowhere", "not-found"),
        ("%00", "invalid-request"),
        ("a%00b", "invalid-request"),
        ("%ff", "invalid-request"),
        ("%F0%9F%98%80", "invalid-request"),
        ("a%20b", "invalid-request"),
        ("x" * 5000, "invalid-request"),
        ("a%0A", "not-found"),
        ("/", "invalid-request"),
    ],
)
def test_references_that_lead_nowhere(api: APIClient, reference: str, code: str) -> None:
    assert problem_code(api.get(f"{RPS}/{reference}")) == code


def test_the_policy_hides_and_the_token_narrows(api: APIClient, client_of: ClientOf) -> None:
    hidden = create(api, policy=[])
    assert problem_code(client_of("ben").get(f"{RPS}/{hidden['id']}")) == "forbidden"
    assert problem_code(client_of("ann", operations=["publish"]).get(f"{RPS}/{hidden['id']}")) == "forbidden"
    assert problem_code(client_of("ann", operations=["publish"]).post(RPS)) == "forbidden"
    assert client_of("ben").get(RPS).json() == {"items": [], "next": None}


def test_one_whose_lease_has_ended_is_gone(api: APIClient) -> None:
    rp = create(api, name="a")
    RendezvousPoint.objects.update(
        warn_at=timezone.now() - timedelta(days=2), expires_at=timezone.now() - timedelta(days=1)
    )
    for response in (
        api.get(f"{RPS}/{rp['id']}"),
        api.get(f"{RPS}/a/"),
        api.patch(f"{RPS}/{rp['id']}", {}, format="json"),
        api.delete(f"{RPS}/{rp['id']}"),
        api.post(f"{RPS}/{rp['id']}/renew"),
        api.get(f"{RPS}/{rp['id']}/subscriptions"),
        api.post(f"{RPS}/{rp['id']}/subscriptions"),
    ):
        assert problem_code(response) == "gone"
    assert api.get(RPS).json()["items"] == []


def test_lists_walk_in_pages_without_the_genesis(api: APIClient) -> None:
    made = {create(api, name=f"a/{number}")["id"] for number in range(5)}
    page = api.get(RPS, {"limit": "2"}).json()
    seen = list(page["items"])
    while page["next"]:
        page = api.get(RPS, {"limit": "2", "cursor": page["next"]}).json()
        seen += page["items"]
    assert sorted(item["id"] for item in seen) == sorted(made)
    assert "genesis" not in seen[0]
    by_name = api.get(RPS, {"prefix": "a"}).json()
    assert [item["name"] for item in by_name["items"]] == [f"/localhost/a/{number}/" for number in range(5)]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid-request"),
        ("limit=-1", "invalid-request"),
        ("limit=x", "invalid-request"),
        ("limit=", "invalid-request"),
        ("limit=٣", "invalid-request"),
        ("limit=1&limit=2", "invalid-request"),
        ("limit=" + "9" * 5000, "invalid-request"),
        ("cursor=x", "invalid-cursor"),
        ("cursor=%00", "invalid-cursor"),
        ("cursor=%ff", "invalid-cursor"),
        ("prefix=%00", "invalid-request"),
        ("prefix=a%2F%2Fb", "invalid-request"),
        ("prefix=" + "x" * 5000, "invalid-request"),
    ],
)
def test_a_query_that_cannot_be_is_refused(api: APIClient, query: str, code: str) -> None:
    assert problem_code(api.get(f"{RPS}?{query}")) == code


def test_a_limit_above_the_most_is_lowered(api: APIClient) -> None:
    create(api)
    assert len(api.get(RPS, {"limit": "999999999"}).json()["items"]) == 1


def test_a_target_reliability_is_set_in_millionths_and_taken_away(api: APIClient) -> None:
    rp = create(api, reliability=0.99900049)
    assert rp["reliability"] == 0.999
    changed = api.patch(f"{RPS}/{rp['id']}", {"reliability": None}, format="json").json()
    assert (changed["reliability"], changed["version"]) == (None, rp["version"] + 1)


def test_a_change_answers_the_new_version(api: APIClient) -> None:
    rp = create(api, name="a", title="T")
    response = api.patch(f"{RPS}/{rp['id']}", {"title": "U", "name": None, "history": {"max_events": 3}}, format="json")
    assert response.status_code == 200
    assert response["ETag"].startswith('"2-')
    changed = response.json()
    assert (changed["title"], changed["name"], changed["version"], changed["history"]["max_events"]) == (
        "U",
        None,
        2,
        3,
    )
    assert changed["genesis"] == rp["genesis"]
    assert problem_code(api.patch(f"{RPS}/{rp['id']}", {"creator": "eve"}, format="json")) == "invalid-request"


@pytest.mark.parametrize(
    ("header", "status"),
    [('"1"', 200), ('"7", "1"', 200), ("*", 200), ('"2"', 412), ('W/"1"', 412), ("x", 412), ("", 412)],
)
def test_if_match_guards_changes_and_deletion(api: APIClient, header: str, status: int) -> None:
    path = f"{RPS}/{create(api)['id']}"
    assert api.patch(path, {}, format="json", headers={"If-Match": header}).status_code == status
    deleted = api.delete(path, headers={"If-Match": header})
    assert deleted.status_code == (204 if status == 200 else 412)


@pytest.mark.parametrize("local", [{"watch": [{"silence": {"s": 60}}]}, {"audience": [{"label": "a", "at_least": 1}]}])
def test_rules_that_another_replaced_are_not_replaced_by_who_read_those_before(
    api: APIClient, local: dict[str, object]
) -> None:
    path = f"{RPS}/{create(api)['id']}"
    read = api.get(path)["ETag"]
    changed = api.patch(path, local, format="json", headers={"If-Match": read})
    assert (changed.status_code, changed.json()["version"]) == (200, 1)
    assert changed["ETag"] == api.get(path)["ETag"] != read
    late_changes: list[dict[str, object]] = [{"watch": [], "audience": []}, {"title": "T"}]
    for late in late_changes:
        assert problem_code(api.patch(path, late, format="json", headers={"If-Match": read})) == "precondition-failed"
    assert problem_code(api.delete(path, headers={"If-Match": read})) == "precondition-failed"
    again = api.patch(path, {"watch": None, "audience": None}, format="json", headers={"If-Match": changed["ETag"]})
    assert (again.status_code, again["ETag"]) == (200, read), "the same rules again"


def test_a_version_alone_names_the_descriptor_whatever_the_rules(api: APIClient) -> None:
    path = f"{RPS}/{create(api)['id']}"
    api.patch(path, {"watch": [{"silence": {"s": 60}}]}, format="json")
    assert api.patch(path, {"title": "T"}, format="json", headers={"If-Match": '"1"'}).status_code == 200
    assert problem_code(api.patch(path, {"watch": []}, format="json", headers={"If-Match": '"1"'})) == (
        "precondition-failed"
    )


def test_others_neither_change_nor_delete_nor_renew(api: APIClient, client_of: ClientOf) -> None:
    path, ben = f"{RPS}/{create(api)['id']}", client_of("ben")
    assert problem_code(ben.patch(path, {"title": "x"}, format="json")) == "forbidden"
    assert problem_code(ben.delete(path)) == "forbidden"
    assert problem_code(ben.post(f"{path}/renew")) == "forbidden"


def test_a_deleted_one_is_not_found(api: APIClient) -> None:
    path = f"{RPS}/{create(api)['id']}"
    response = api.delete(path)
    assert (response.status_code, response.content) == (204, b"")
    assert problem_code(api.get(path)) == "not-found"
    assert problem_code(api.delete(path)) == "not-found"


def test_the_reason_of_a_deletion_is_in_the_audit(api: APIClient) -> None:
    first, second = create(api)["id"], create(api)["id"]
    for reason in ("x" * 256, "\0"):
        assert api.delete(f"{RPS}/{first}?{urlencode({'reason': reason})}").status_code == 400
    assert api.delete(f"{RPS}/{first}?reason=made%20for%20a%20test").status_code == 204
    assert api.delete(f"{RPS}/{second}").status_code == 204
    told = {one.on_id: one.details.get("reason") for one in AuditEntry.objects.filter(action="rp.delete", outcome="ok")}
    assert (told[first], told[second]) == ("made for a test", None)


def test_renewal_by_name_and_id_answers_the_lease(api: APIClient) -> None:
    rp = create(api, name="a/b", lease_s=60)
    for path in (
        f"{RPS}/{rp['id']}/renew",
        f"{RPS}//localhost/a/b//renew",
        f"{RPS}/{quote('/localhost/a/b/', safe='')}/renew",
    ):
        lease = api.post(path, {"lease_s": 3600}, format="json").json()["lease"]
        assert (lease["asked_s"], lease["granted_s"]) == (3600, 3600)
    assert api.post(f"{RPS}/{rp['id']}/renew").json()["lease"]["asked_s"] is None
    assert problem_code(api.post(f"{RPS}/{rp['id']}/renew", {"lease_s": "x"}, format="json")) == "invalid-request"


def test_an_action_is_never_part_of_a_name(api: APIClient) -> None:
    create(api, name="a/renew")
    assert api.get(f"{RPS}/a/renew").json()["name"] == "/localhost/a/renew/"
    response = api.post(f"{RPS}/a/renew")
    assert problem_code(response) == "method-not-allowed"
    assert response["Allow"] == "GET, HEAD, PATCH, DELETE"


def test_away_stores_are_a_503_to_retry(api: APIClient, configure: Callable[..., None]) -> None:
    rp = create(api)
    configure(redis_url="unix:///nowhere/redis.sock")
    for response in (api.get(f"{RPS}/{rp['id']}"), api.post(RPS), api.get(RPS)):
        assert problem_code(response) == "unavailable"
        assert response["Retry-After"]
