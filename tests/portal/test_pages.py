"""The console's pages as a browser without scripts sees them: who gets in, what is shown, what a form does."""

from __future__ import annotations

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

from eventing.conf import config
from eventing.core.cloudevents import Event
from eventing.core.tokens import verify
from eventing.log import control
from eventing.models import RendezvousPoint
from eventing.selectors.keys import verification_keys
from eventing.services.rendezvous_points import rendezvous_point_create
from portal.accounts import login_link_create
from portal.pages.access import principal_of
from portal.pages.live import TOKEN_S

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
    for response in (Client().post("/console/token"), Client().get("/console/rates?ids=x")):
        assert response.status_code == 401
        assert response["Content-Type"] == "application/problem+json"
        assert response.json()["type"] == "urn:herald:problem:unauthenticated"


def test_looking_at_a_login_link_does_not_spend_it_and_pressing_its_button_does() -> None:
    link = login_link_create(User.objects.create_user("ann"))
    for _ in range(3):
        assert "One-time login" in text_of(Client().get(link))
    client = Client()
    response = client.post(link, follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert "Set a password" in text_of(response)
    again = Client().post(link)
    assert again.status_code == 410
    assert "does not work any more" in text_of(again)


def test_who_came_by_link_sets_a_password_without_the_old_one_and_logs_in_with_it() -> None:
    client = Client()
    client.post(login_link_create(User.objects.create_user("ann", password="forgotten-long-ago")))
    new = {"new_password1": "correct horse battery", "new_password2": "correct horse battery"}
    assert client.post("/password", new).status_code == 302
    assert client.get("/").status_code == 200, "the session in which it was set goes on"
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


def test_a_domain_without_rendezvous_points_says_how_to_start(logged_in: MakeClient) -> None:
    page = text_of(logged_in().get("/"))
    assert "Start here" in page
    assert "Create the first one" in page
    assert "herald rp create" in page


def test_the_list_is_searched_by_the_beginning_of_names(logged_in: MakeClient) -> None:
    for name in ("weather/bergen", "weather/oslo", "water/level"):
        made(name=name)
    client = logged_in()
    assert text_of(client.get("/")).count("/localhost/w") >= 3
    for typed in ("weat", "/localhost/weat", "weather/"):
        page = text_of(client.get("/", {"prefix": typed}))
        assert "/localhost/weather/bergen/" in page
        assert "/localhost/weather/oslo/" in page
        assert "water" not in page
    assert "No rendezvous point of yours" in text_of(client.get("/", {"prefix": "nonesuch"}))


def test_searching_an_id_leads_to_its_page(logged_in: MakeClient) -> None:
    rp = made()
    assert logged_in().get("/", {"prefix": rp.id})["Location"] == f"/rps/{rp.id}"


def test_the_list_goes_on_page_by_page_and_shows_each_once(
    logged_in: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.pages.views.PAGE_ROWS", 2)
    names = {made(name=f"many/{number}").name for number in range(5)}
    client = logged_in()
    for start in ("/", "/?prefix=many"):
        seen: list[str] = []
        address: str | None = start
        while address:
            content = client.get(address).content.decode()
            seen += re.findall(r"/localhost/many/\d/", content.replace("<wbr>", ""))
            following = re.search(r'href="(\?[^"]*)" rel="next"', content)
            address = "/" + following[1].replace("&amp;", "&") if following else None
        assert sorted(seen) == sorted(str(name) for name in names)


def test_what_a_user_may_not_see_is_not_listed(logged_in: MakeClient) -> None:
    made("ben", name="secret/plan", policy=NOBODY)
    assert "secret/plan" not in text_of(logged_in("ann").get("/"))
    assert "secret/plan" not in text_of(logged_in("ann").get("/", {"prefix": "secret"}))
    assert "secret/plan" in text_of(logged_in("ben").get("/"))
    assert "secret/plan" in text_of(logged_in("root", admin=True).get("/"))


# -- creating ---------------------------------------------------------------------------------------------------------


def test_a_rendezvous_point_is_created_as_typed(logged_in: MakeClient) -> None:
    typed = {**CREATE, "name": "weather/bergen", "title": "Rain", "max_age": 3, "ack": "accepted"}
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


def test_a_lease_that_was_shortened_is_said(logged_in: MakeClient) -> None:
    response = logged_in().post("/rps/new", {**CREATE, "lease": 400, "lease_unit": "days"}, follow=True)
    assert "The lease is 30 days: that is the longest this domain grants." in text_of(response)


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
        ("/rps/" + "a" * 26, 404, "There is nothing here"),
        ("/nowhere", 404, "There is nothing here"),
        (f"/rps/{secret.id}", 403, "This is not allowed to you"),
        (f"/rps/{secret.id}/delete", 403, "This is not allowed to you"),
    ):
        response = client.get(address)
        assert response.status_code == status
        assert title in text_of(response)
        assert "herald.css" in response.content.decode()


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
        for address in ("/", f"/rps/{rp.id}"):
            response = client.get(address)
            assert response.status_code == 503
            assert "data plane is away" in text_of(response)
        assert client.get(f"/console/rates?ids={rp.id}").status_code == 503


# -- what scripts ask -------------------------------------------------------------------------------------------------


def test_the_console_token_is_the_users_own_and_short(logged_in: MakeClient) -> None:
    for name, admin in (("ann", False), ("root", True)):
        client = logged_in(name, admin=admin)
        token = client.post("/console/token").json()["token"]
        moment = timezone.now().timestamp()
        principal = verify(token, verification_keys(), issuer="localhost", audience="localhost", now=moment)
        assert (principal.subject, principal.admin) == (name, admin)
        assert principal.expires_at <= moment + TOKEN_S


def test_a_token_is_given_to_no_other_sites_script(logged_in: MakeClient) -> None:
    client = logged_in(csrf=True)
    assert client.post("/console/token").status_code == 403
    assert client.get("/console/token").status_code == 405
    rp = made()
    csrf = re.search(r'<meta name="csrf" content="([^"]+)">', client.get(f"/rps/{rp.id}").content.decode())
    assert csrf is not None
    assert client.post("/console/token", headers={"X-CSRFToken": csrf[1]}).status_code == 200


def test_rates_tell_the_ends_of_the_logs_that_the_user_may_see(logged_in: MakeClient) -> None:
    open_one, secret = made(), made("ben", policy=NOBODY)
    event = Event("/s", "1", "t", b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}')
    appended = control.append(open_one.id, [event], open_one.bounds)
    ends = logged_in("ann").get(f"/console/rates?ids={open_one.id},{secret.id},{'a' * 26},,'").json()
    assert ends == {open_one.id: {"epoch": appended.epoch, "offset": 1, "first": 1, "bytes": len(event.body)}}
    assert logged_in("ann").get("/console/rates").json() == {}


# -- what a browser may run -------------------------------------------------------------------------------------------


def test_no_page_contains_or_allows_inline_scripts_or_styles(logged_in: MakeClient) -> None:
    rp = made(name="a/b", title="<script>alert(1)</script>")
    client = logged_in()
    link = login_link_create(User.objects.get(username="ann"))
    for address in ("/", "/rps/new", f"/rps/{rp.id}", f"/rps/{rp.id}/delete", "/password", link, "/nowhere", "/login"):
        response = (Client() if address == "/login" else client).get(address)
        content = response.content.decode()
        assert not re.search(r"<script(?![^>]* src=)", content), address
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", content), address
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "ws://testserver" in policy


def test_pages_are_not_kept_by_caches(logged_in: MakeClient) -> None:
    rp = made()
    for address in ("/", f"/rps/{rp.id}", "/login"):
        assert "no-store" in (Client() if address == "/login" else logged_in()).get(address)["Cache-Control"]


def test_an_error_of_ours_is_a_page_too() -> None:
    response = server_error(RequestFactory().get("/"))
    assert response.status_code == 500
    assert "Something went wrong here" in text_of(response)


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
