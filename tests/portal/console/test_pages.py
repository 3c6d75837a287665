"""The console's pages as a browser without scripts sees them: who gets in, what is shown, what a form does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.test.utils import override_settings
from django.urls import reverse
from django.utils import timezone
from django.views.defaults import server_error

from eventing.access.rules.tokens import verify
from eventing.access.selectors.keys import verification_keys
from eventing.conf import config
from eventing.core.events.cloudevents import Event
from eventing.core.events.cursors import Cursor
from eventing.core.ids import admin_id
from eventing.log import control
from eventing.outbox.administrative_events import HISTORY_TRIMMED, LOAD_SAMPLED, RP_PAUSED, admin_history
from eventing.replication.services.proofs import event_proof
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from portal.accounts.services.login_links import login_link_create
from portal.console.pages.access import principal_of
from portal.console.pages.start import TOKEN_S
from portal.console.rp_history import RETENTION_TOLD
from portal.supervisor.diagnosis.checks import console_finding

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

NOBODY: list[dict[str, Any]] = []
CREATE = {
    "name": "",
    "title": "",
    "lease": 2,
    "lease_unit": "hours",
    "max_events": 10,
    "max_age_unit": "days",
    "ack": "stored",
}
MakeClient = Callable[..., Client]


@pytest.fixture(autouse=True)
def no_logs_left() -> Iterator[None]:
    yield
    for rp in RendezvousPoint.objects.values_list("id", flat=True):
        control.delete_log(rp)


def made(owner: str = "ann", **stated: Any) -> RendezvousPoint:
    user = User.objects.filter(username=owner).first() or User.objects.create_user(owner)
    return rendezvous_point_create(principal=principal_of(user), **stated)


def text_of(response: Any) -> str:
    """What is written on a page, in one line."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.content.decode()))


# -- who gets in ------------------------------------------------------------------------------------------------------


def test_every_page_about_rendezvous_points_asks_to_log_in_first() -> None:
    for name, arguments in (
        ("rp-list", []),
        ("rp-create", []),
        ("rp", ["x"]),
        ("rp-renew", ["x"]),
        ("rp-delete", ["x"]),
    ):
        address = reverse(f"portal:{name}", args=arguments)
        response = Client().get(address)
        assert response.status_code == 302
        assert response["Location"] == f"/login?next={address}"


def test_a_script_without_a_session_gets_a_problem_document_and_no_login_page() -> None:
    for response in (Client().get("/console/session"), Client().get("/console/rates?ids=x")):
        assert response.status_code == 401
        assert response["Content-Type"] == "application/problem+json"
        assert response.json()["type"] == "urn:herald:problem:unauthenticated"


def test_looking_at_a_login_link_does_not_spend_it_and_pressing_its_button_does() -> None:
    link = login_link_create(User.objects.create_user("ann"))
    for _ in range(3):
        assert "One-time login" in text_of(Client().get(link))
    client = Client()
    response = client.post(link, follow=True)
    assert response.redirect_chain == [("/", 302), ("/rps", 302)]
    assert "Set a password" in text_of(response)
    again = Client().post(link)
    assert again.status_code == 410
    assert "no longer valid" in text_of(again)


def test_who_came_by_link_sets_a_password_without_the_old_one_and_logs_in_with_it() -> None:
    client = Client()
    client.post(login_link_create(User.objects.create_user("ann", password="forgotten-long-ago")))
    new = {"new_password1": "correct horse battery", "new_password2": "correct horse battery"}
    assert client.post("/password", new).status_code == 302
    assert client.get("/account").status_code == 200, "the session in which it was set goes on"
    other = Client()
    response = other.post("/login", {"username": "ann", "password": "correct horse battery", "next": "/rps/new"})
    assert response["Location"] == "/rps/new"
    refused = other.post("/password", new)
    assert refused.status_code == 200, "from then on a change asks for the old password"
    assert "Old password" in text_of(refused)


def test_a_wrong_password_is_said_and_lets_nobody_in() -> None:
    User.objects.create_user("ann", password="correct horse battery")
    client = Client()
    assert "correct username and password" in text_of(client.post("/login", {"username": "ann", "password": "x"}))
    assert client.get("/").status_code == 302


def test_logging_in_never_leads_to_another_site() -> None:
    User.objects.create_user("ann", password="correct horse battery")
    typed = {"username": "ann", "password": "correct horse battery", "next": "https://evil.example/"}
    assert Client().post("/login", typed)["Location"] == "/"


def test_logging_out_ends_the_session(logged_in: MakeClient) -> None:
    client = logged_in()
    assert client.post("/logout")["Location"] == "/login"
    assert client.get("/").status_code == 302


# -- the list ---------------------------------------------------------------------------------------------------------


def test_a_domain_without_rendezvous_points_leads_to_start_here(logged_in: MakeClient) -> None:
    client = logged_in("root", admin=True)
    assert client.get("/")["Location"] == "/start"
    page = text_of(client.get("/start"))
    assert "Create a rendezvous point" in page
    assert "herald rp create" in page
    assert 'href="/start"' in logged_in("ann").get("/rps").content.decode()
    made()
    assert client.get("/").status_code == 200


def test_start_here_creates_and_goes_on_with_what_was_made(logged_in: MakeClient) -> None:
    client = logged_in("ann")
    response = client.post("/start", {**CREATE, "name": "hello/world"})
    rp = RendezvousPoint.objects.get()
    assert response["Location"] == f"/start?rp={rp.id}"
    page = text_of(client.get(response["Location"]))
    assert "/localhost/hello/world/" in page
    assert "Waiting for the first event" in page
    refused = client.post("/start", {**CREATE, "name": "hello/world"})
    assert refused.status_code == 400
    assert "is taken" in text_of(refused)


def test_start_heres_token_is_for_that_one_rendezvous_point_and_the_users_own_rights(logged_in: MakeClient) -> None:
    rp, secret = made(), made("ben", policy=NOBODY)
    client = logged_in("ann")
    token = client.post(f"/console/start-token?rp={rp.id}").json()["token"]
    moment = timezone.now().timestamp()
    principal = verify(token, verification_keys(), issuer="localhost", audience="localhost", now=moment)
    assert (principal.subject, principal.admin) == ("ann", False)
    assert principal.scopes is not None
    assert [scope.rps for scope in principal.scopes] == [(rp.id,)]
    assert "publish" in principal.scopes[0].operations
    assert "administer" not in principal.scopes[0].operations
    assert principal.expires_at <= moment + TOKEN_S
    assert client.post(f"/console/start-token?rp={secret.id}").status_code == 403
    assert client.get(f"/start?rp={secret.id}").status_code == 403
    assert client.post("/console/start-token?rp=" + "a" * 26).status_code == 404


# -- the overview -----------------------------------------------------------------------------------------------------


def test_the_overview_is_for_who_oversees_the_domain(logged_in: MakeClient) -> None:
    rp = made(name="weather/bergen")
    assert logged_in("ann").get("/")["Location"] == "/rps"
    assert logged_in("ann").get("/console/load").status_code == 403
    root = logged_in("root", admin=True)
    assert "History reserved" in text_of(root.get("/"))
    assert set(root.get("/console/load").json()) == {"start", "until", "step_s", "steps", "series", "seen"}
    assert root.get(f"/console/labels?ids={rp.id},nonsense").json() == {rp.id: "/localhost/weather/bergen/"}


def test_names_are_told_only_of_what_a_user_may_see(logged_in: MakeClient) -> None:
    secret = made("ben", name="secret/plan", policy=NOBODY)
    assert logged_in("ann").get(f"/console/labels?ids={secret.id}").json() == {}
    assert logged_in("ben").get(f"/console/labels?ids={secret.id}").json() == {secret.id: "/localhost/secret/plan/"}


def test_the_navigation_lists_the_pages_that_exist_and_marks_this_one(logged_in: MakeClient) -> None:
    rp = made()
    content = logged_in("ann").get(f"/rps/{rp.id}").content.decode()
    assert re.search(r'<a href="/rps" aria-current="true">', content), "a page under it"
    assert re.search(r'<a href="/">', content)
    assert 'href="/users"' not in content
    assert 'href="/users"' in logged_in("root", admin=True).get("/rps").content.decode()
    assert re.search(r'<a href="/rps" aria-current="page">', logged_in("ann").get("/rps").content.decode())


def test_without_its_scripts_a_page_says_how_to_build_them(
    logged_in: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.bundle._read", lambda changed_ns: {})
    assert "are not built. Stop the domain and start it with make run" in text_of(logged_in().get("/rps"))
    finding = console_finding()
    assert (finding.grade, finding.subject) == ("warn", "console")
    monkeypatch.setattr("portal.bundle._read", lambda changed_ns: {"rp_list.js": "rp_list-ABCDEFGH.js"})
    content = logged_in().get("/rps").content.decode()
    assert "are not built" not in content
    assert "/static/portal/dist/rp_list-ABCDEFGH.js" in content


def test_the_list_is_searched_by_parts_of_names_and_titles(logged_in: MakeClient) -> None:
    for name in ("weather/bergen", "weather/oslo", "water/level"):
        made(name=name, title="Rain and wind" if name == "weather/oslo" else "")
    client = logged_in()
    assert text_of(client.get("/rps")).count("/localhost/w") >= 3
    for typed, found in (("EATHER", {"bergen", "oslo"}), ("/localhost/weat", {"bergen", "oslo"}), ("wind", {"oslo"})):
        page = text_of(client.get("/rps", {"q": typed}))
        assert {name for name in ("bergen", "oslo", "level") if f"/{name}/" in page} == found
    assert "No results" in text_of(client.get("/rps", {"q": "nonesuch"}))
    assert client.get("/rps", {"q": "x" * 200}).status_code == 200, "cut to what a search may have"


def test_the_list_of_a_subtree_is_by_name_and_leads_back(logged_in: MakeClient) -> None:
    for name in ("weather/oslo", "weather/bergen", "water/level"):
        made(name=name)
    client = logged_in()
    page = text_of(client.get("/rps", {"prefix": "/localhost/weather/"}))
    assert 0 < page.index("/weather/bergen/") < page.index("/weather/oslo/")
    assert "/water/level/" not in page
    assert "Show all" in page
    assert "No rendezvous points below this name" in text_of(client.get("/rps", {"prefix": "weather/none"}))
    assert client.get("/rps", {"prefix": "no spaces"}).status_code == 400


@pytest.mark.parametrize(
    ("sort", "first", "direction"),
    [("created", "c", "descending"), ("name", "a", "ascending"), ("ends", "b", "ascending")],
)
def test_the_list_is_sorted_by_its_heads(logged_in: MakeClient, sort: str, first: str, direction: str) -> None:
    for name, lease_s in (("a/x", 7200), ("b/x", 60), ("c/x", 3600)):
        made(name=name, lease_s=lease_s)
    content = logged_in().get("/rps", {"sort": sort}).content.decode().replace("<wbr>", "")
    assert re.findall(r"/localhost/([abc])/x/", content)[0] == first
    assert content.count("aria-sort=") == 1
    assert f'aria-sort="{direction}"' in content
    assert logged_in().get("/rps", {"sort": "colour"}).status_code == 400


def test_the_list_goes_on_page_by_page_and_shows_each_once(
    logged_in: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.console.pages.rp_list.PAGE_ROWS", 2)
    names = {made(name=f"many/{number}").name for number in range(5)}
    client = logged_in()
    for start in ("/rps", "/rps?prefix=many", "/rps?sort=name", "/rps?q=many&sort=ends"):
        seen: list[str] = []
        address: str | None = start
        while address:
            content = client.get(address).content.decode()
            seen += re.findall(r"(?<=>)/localhost/many/\d/", content.replace("<wbr>", ""))
            following = re.search(r'href="(\?[^"]*)" rel="next"', content)
            address = "/rps" + following[1].replace("&amp;", "&") if following else None
        assert sorted(seen) == sorted(str(name) for name in names)


def test_what_a_user_may_not_see_is_not_listed(logged_in: MakeClient) -> None:
    made("ben", name="secret/plan", policy=NOBODY)
    assert "secret/plan" not in text_of(logged_in("ann").get("/rps"))
    assert "secret/plan" not in text_of(logged_in("ann").get("/rps", {"q": "secret"}))
    assert "secret/plan" in text_of(logged_in("ben").get("/rps"))
    assert "secret/plan" in text_of(logged_in("root", admin=True).get("/rps"))


# -- creating ---------------------------------------------------------------------------------------------------------


def test_a_rendezvous_point_is_created_as_typed(logged_in: MakeClient) -> None:
    typed = {
        **CREATE,
        "name": "weather/bergen",
        "title": "Rain",
        "max_age": 3,
        "ack": "accepted",
        "reliability": "0.999",
    }
    response = logged_in().post("/rps/new", typed, follow=True)
    rp = RendezvousPoint.objects.get()
    assert response.redirect_chain == [(f"/rps/{rp.id}", 302)]
    assert (rp.name, rp.title, rp.creator, rp.granted_s, rp.ack) == (
        "/localhost/weather/bergen/",
        "Rain",
        "ann",
        7200,
        "accepted",
    )
    assert (rp.max_events, rp.max_age_s) == (10, 3 * 86_400)
    assert "Created." in text_of(response)
    assert "unless used or renewed" in text_of(response)
    assert rp.renew_on_use
    assert rp.reliability == 0.999
    assert "Target reliability" in text_of(response)
    logged_in().post("/rps/new", {**CREATE, "renewal": "request"})
    other = RendezvousPoint.objects.exclude(id=rp.id).get()
    assert (other.renew_on_use, other.reliability) == (False, None)


def test_a_lease_that_was_shortened_is_said(logged_in: MakeClient) -> None:
    response = logged_in().post("/rps/new", {**CREATE, "lease": 400, "lease_unit": "days"}, follow=True)
    assert "The lease is 30 days, the longest that this domain grants." in text_of(response)


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"name": "no spaces here"}, "id_name", "Each part of a name"),
        ({"name": "taken"}, "id_name", "is taken"),
        ({"name": "/elsewhere/a/"}, "id_name", "A name here begins with"),
        ({"lease": 0}, "id_lease", "greater than or equal to 1"),
        ({"max_events": 10**12}, "id_max_events", "is at most"),
        ({"max_age": 9999}, "id_max_age", "is at most"),
        ({"max_events": "many"}, "id_max_events", "whole number"),
    ],
)
def test_a_refusal_is_shown_at_its_field_and_nothing_is_made(
    logged_in: MakeClient, wrong: dict[str, Any], field: str, said: str
) -> None:
    made(name="taken")
    response = logged_in().post("/rps/new", {**CREATE, **wrong})
    assert response.status_code == 400
    content = response.content.decode()
    error = re.search(rf'id="{field}_error">(.*?)</ul>', content, re.DOTALL)
    assert error is not None
    assert said in error[1]
    assert re.search(rf'id="{field}"', content)
    assert RendezvousPoint.objects.count() == 1


# -- one rendezvous point ---------------------------------------------------------------------------------------------


def test_the_page_of_a_rendezvous_point_leads_to_its_websub_hub(logged_in: MakeClient) -> None:
    rp, base = made(), config().base_url
    assert logged_in("ann").get(f"/rps/{rp.id}")["Link"] == (
        f'<{base}/websub/hub>; rel="hub", <{base}/websub/topics/{rp.id}>; rel="self"'
    )


def test_the_page_of_a_rendezvous_point_shows_its_facts(logged_in: MakeClient) -> None:
    rp = made(name="weather/bergen", title="Rain", lease_s=7200, history={"max_events": 10})
    event = Event("/s", "1", "t", b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}')
    control.append(rp.id, [event], rp.bounds)
    page = text_of(logged_in("ben").get(f"/rps/{rp.id}"))
    for fact in (rp.id, "/localhost/weather/bergen/", "Rain", "ann", "on disk (stored)", "1 of 10 events", "1 MiB"):
        assert fact in page
    assert "Renew" not in page, "only who administers it"
    assert "Delete" not in page
    assert "Delete this rendezvous point" in text_of(logged_in("ann").get(f"/rps/{rp.id}"))


def test_what_is_not_there_or_not_allowed_is_a_page_of_the_same_look(logged_in: MakeClient) -> None:
    secret = made("ben", policy=NOBODY)
    client = logged_in("ann")
    for address, status, title in (
        ("/rps/" + "a" * 26, 404, "Page not found"),
        ("/nowhere", 404, "Page not found"),
        (f"/rps/{secret.id}", 403, "Operation not permitted"),
        (f"/rps/{secret.id}/delete", 403, "Operation not permitted"),
    ):
        response = client.get(address)
        assert response.status_code == status
        assert title in text_of(response)
        assert "portal/dist/console" in response.content.decode()


def test_the_lease_is_renewed_from_now(logged_in: MakeClient) -> None:
    rp = made(lease_s=60)
    response = logged_in().post(f"/rps/{rp.id}/renew", {"lease": 5, "lease_unit": "hours"}, follow=True)
    assert "The lease is renewed." in text_of(response)
    rp.refresh_from_db()
    assert rp.granted_s == 5 * 3600
    assert "was not renewed" in text_of(logged_in().post(f"/rps/{rp.id}/renew", {"lease": "long"}, follow=True))


def test_deleting_asks_first_and_then_deletes(logged_in: MakeClient) -> None:
    rp = made(name="short/lived")
    client = logged_in()
    assert "Delete this rendezvous point?" in text_of(client.get(f"/rps/{rp.id}/delete"))
    assert RendezvousPoint.objects.exists()
    response = client.post(f"/rps/{rp.id}/delete", follow=True)
    assert "/localhost/short/lived/ is deleted." in text_of(response)
    assert not RendezvousPoint.objects.exists()


def test_without_the_data_plane_the_page_says_so(logged_in: MakeClient) -> None:
    rp = made()
    client = logged_in()
    away = replace(config(), redis_url="unix:///nonexistent/redis.sock")
    with override_settings(HERALD=away):
        for address in ("/rps", f"/rps/{rp.id}"):
            response = client.get(address)
            assert response.status_code == 503
            assert "Data plane not available" in text_of(response)
        assert client.get(f"/console/rates?ids={rp.id}").status_code == 503


# -- what scripts ask -------------------------------------------------------------------------------------------------


def test_rates_tell_the_ends_of_the_logs_that_the_user_may_see(logged_in: MakeClient) -> None:
    open_one, secret = made(), made("ben", policy=NOBODY)
    event = Event("/s", "1", "t", b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}')
    appended = control.append(open_one.id, [event], open_one.bounds)
    ends = logged_in("ann").get(f"/console/rates?ids={open_one.id},{secret.id},{'a' * 26},,'").json()
    assert ends == {open_one.id: {"epoch": appended.epoch, "offset": 1, "first": 1, "bytes": len(event.body)}}
    assert logged_in("ann").get("/console/rates").json() == {}


def test_figures_of_a_shown_page_are_told_as_far_as_the_user_may_know_them(logged_in: MakeClient) -> None:
    rp, secret = made(name="told/figures"), made("ben", policy=NOBODY)
    event = Event("/s", "1", "t", b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}')
    control.append(rp.id, [event], rp.bounds)
    held = {"events": 1, "bytes": len(event.body)}
    more = ("readers", "subscriptions", "behind", "lost", "alarms", "critical")
    asked = f"/console/rps/figures?ids={rp.id},{secret.id},{'a' * 26},,'"
    assert logged_in("ben").get(asked).json() == {
        rp.id: {**held, **dict.fromkeys(more)},
        secret.id: {"events": 0, "bytes": 0, **dict.fromkeys(more, 0)},
    }
    assert logged_in("ann").get(asked).json() == {rp.id: {**held, **dict.fromkeys(more, 0)}}
    assert logged_in("ann").get("/console/rps/figures").json() == {}


def test_the_past_of_an_rp_is_told_to_who_may_watch_it(logged_in: MakeClient) -> None:
    rp = made("ben", name="told/past")
    logged_in("ben").post(f"/rps/{rp.id}/renew", {"lease": 5, "lease_unit": "hours"})
    sample = {"gateway": "g", "at": "2026-11-21T20:00:07.000000Z", "interval_s": 1.0, "publishes": 1, "events_in": 30}
    sample |= {"bytes_in": 900, "deliveries": 60, "bytes_out": 1800, "readings": 2, "joined": 0, "left": 0}
    events = [administrative(LOAD_SAMPLED, sample), administrative(RP_PAUSED, {"by": "ben"})]
    control.append(admin_id(rp.id), events, admin_history(admin_id(rp.id)))
    assert logged_in("ann").get(f"/console/rps/{rp.id}/past").status_code == 403
    for who, admin in (("ben", False), ("root", True)):
        told = logged_in(who, admin=admin).get(f"/console/rps/{rp.id}/past").json()
        assert told["events"][0]["event"]["type"] == RP_PAUSED, "the newest first"
        assert LOAD_SAMPLED not in {one["event"]["type"] for one in told["events"]}
        assert max(rate for rate in told["load"]["series"]["deliveries"] if rate is not None) == pytest.approx(
            60 / 7, abs=1e-3
        )


def test_reports_of_retention_leave_room_for_what_people_did(logged_in: MakeClient) -> None:
    rp = made("ben", name="told/retention")
    acts = [administrative(RP_PAUSED, {"by": "ben"}), administrative(HISTORY_TRIMMED, {"removed": 1, "by": "ben"})]
    reports = [administrative(HISTORY_TRIMMED, {"removed": 3}, str(number)) for number in range(400)]
    control.append(admin_id(rp.id), [*acts, *reports], admin_history(admin_id(rp.id)))
    told = logged_in("ben").get(f"/console/rps/{rp.id}/past").json()["events"]
    assert [one["event"]["data"].get("by") for one in told[RETENTION_TOLD : RETENTION_TOLD + 2]] == ["ben", "ben"]
    assert [one["event"]["id"] for one in told[:2]] == ["399", "398"]
    assert sorted((one["offset"] for one in told), reverse=True) == [one["offset"] for one in told]


def administrative(kind: str, data: dict[str, Any], id_: str = "") -> Event:
    id_ = id_ or kind
    body = {"specversion": "1.0", "id": id_, "source": "/localhost", "type": kind, "time": "2026-11-21T20:00:07Z"}
    return Event("/localhost", id_, kind, json.dumps({**body, "data": data}).encode())


def test_how_far_a_feed_is_sealed_is_told(logged_in: MakeClient) -> None:
    rp, secret = made(), made("ben", policy=NOBODY)
    client = logged_in("ann")
    assert client.get(f"/console/rps/{rp.id}/seals").json() == {"own": None, "others": [], "epochs": []}
    event = Event("/s", "1", "t", b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}')
    appended = control.append(rp.id, [event], rp.bounds)
    own = client.get(f"/console/rps/{rp.id}/seals").json()["own"]
    assert (own["last"], own["sealed"], own["at"]) == (1, 0, None)
    event_proof(rp=rp.id, place=Cursor(appended.epoch, 1))
    own = client.get(f"/console/rps/{rp.id}/seals").json()["own"]
    assert (own["last"], own["sealed"]) == (1, 1)
    assert own["at"]
    assert client.get(f"/console/rps/{secret.id}/seals").status_code == 403


def test_only_who_may_act_is_offered_it(logged_in: MakeClient) -> None:
    rp = made("ann", name="acts/on")
    ids = {"pause-rp", "trim-rp", "change-rp", "delete-rp", "renew", "change-policy", "invite", "explain"}

    def offered(who: str, *, admin: bool = False) -> set[str]:
        content = logged_in(who, admin=admin).get(f"/rps/{rp.id}").content.decode()
        return {name for name in ids if f'id="{name}"' in content}

    assert offered("ann") == offered("root", admin=True) == ids
    assert offered("ben") == set()


# -- what a browser may run -------------------------------------------------------------------------------------------


def test_no_page_contains_or_allows_inline_scripts_or_styles(logged_in: MakeClient) -> None:
    rp = made(name="a/b", title="<script>alert(1)</script>")
    client = logged_in(admin=True)
    link = login_link_create(User.objects.get(username="ann"))
    pages = (
        "/",
        "/start",
        f"/start?rp={rp.id}",
        "/rps",
        "/rps/new",
        f"/rps/{rp.id}",
        f"/rps/{rp.id}/delete",
        "/password",
    )
    for address in (*pages, link, "/nowhere", "/login"):
        response = (Client() if address == "/login" else client).get(address)
        content = response.content.decode()
        assert not re.search(r'<script(?![^>]* src=|[^>]* type="application/json")', content), address
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", content), address
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "ws://testserver" in policy


def test_pages_are_not_kept_by_caches(logged_in: MakeClient) -> None:
    rp = made()
    for address in ("/", "/rps", "/start", f"/rps/{rp.id}", "/login"):
        assert "no-store" in (Client() if address == "/login" else logged_in()).get(address)["Cache-Control"]


def test_an_error_of_ours_is_a_page_too() -> None:
    response = server_error(RequestFactory().get("/"))
    assert response.status_code == 500
    assert "Internal error" in text_of(response)


def test_static_files_are_served_whole_in_parts_and_not_again(client: Client) -> None:
    whole = client.get("/static/js/herald.js")
    assert whole.status_code == 200
    assert whole["Content-Type"].startswith("text/javascript")
    assert b"export class Client" in whole.content
    part = client.get("/static/js/herald.js", headers={"Range": "bytes=0-9"})
    assert (part.status_code, part.content) == (206, whole.content[:10])
    again = client.get("/static/js/herald.js", headers={"If-Modified-Since": whole["Last-Modified"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head("/static/js/herald.js")["Content-Length"] == str(len(whole.content))
