"""Endpoint pages: a link opens one endpoint to whoever has it, once, for a while, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from eventing.access.services.revocations import revocation_create
from eventing.access.verification.revocations import revocations
from eventing.core.errors import Forbidden, NotFound, QuotaExceeded, Unauthenticated
from eventing.core.principals import Principal, Scope
from eventing.rps.models import RendezvousPoint
from eventing.store.client import client as redis_client
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import EndpointStanding, EndpointState
from eventing.subscriptions.push.services.outcomes import StandingFound, standings_save
from eventing.subscriptions.push.services.pages import (
    LINKS_PER_HOUR_MAX,
    PageLink,
    page_link_create,
    page_open,
    page_session,
)
from eventing.subscriptions.services.subscriptions import subscription_create, subscription_delete
from portal.console.pages.endpoint_page import COOKIE
from tests.planes import principal

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]
STATED = {"mode": "webhook", "url": "https://hooks.example.org/in?key=hidden", "secret": "whsec_" + "A" * 40}
POSTS = ("endpoint/pause", "endpoint/resume", "endpoint/test", "endpoint/secret", "replay")


@pytest.fixture
def hook(new_rp: NewRp, ben: Principal) -> str:
    """A subscription of ben's whose endpoint has consented."""
    made = subscription_create(reference=new_rp().id, principal=ben, deliver=STATED)
    standings_save([StandingFound(made.id, 1, EndpointStanding(EndpointState.ACTIVE, verified=True))])
    return made.id


def token_of(link: PageLink) -> str:
    return link.url.partition("#")[2]


def link_to(hook: str, maker: Principal) -> str:
    return token_of(page_link_create(subscription_id=hook, principal=maker))


class Visitor:
    """A browser of its own, with the page's CSRF token."""

    def __init__(self) -> None:
        self.http = Client(enforce_csrf_checks=True)
        self.csrf = ""

    def get(self, path: str, **headers: str) -> Any:
        return self.http.get(path, headers=headers)

    def post(self, path: str, data: Any = None, kind: str = "application/json", **headers: str) -> Any:
        if not self.csrf:
            self.http.get("/endpoint")
            self.csrf = next(one.value for name, one in self.http.cookies.items() if "csrf" in name)
        sent = {"X-CSRFToken": self.csrf, **headers}
        return self.http.post(path, data if data is not None else {}, content_type=kind, headers=sent)

    def open(self, token: str) -> Any:
        return self.post("/endpoint/open", f"link={token}", "application/x-www-form-urlencoded")


@pytest.fixture
def opened(hook: str, ben: Principal) -> Visitor:
    """A visitor who has opened a link."""
    visitor = Visitor()
    assert visitor.open(link_to(hook, ben)).status_code == 204
    return visitor


def test_the_token_is_in_the_fragment_alone_and_not_stored(hook: str, ben: Principal) -> None:
    link = page_link_create(subscription_id=hook, principal=ben)
    address, _, token = link.url.partition("#")
    assert address.endswith("/endpoint")
    assert len(token) == 43
    kept: list[Any] = redis_client().keys("*")
    assert kept
    assert not any(token.encode() in key for key in kept)
    assert not any(token.encode() in (redis_client().get(key) or b"") for key in kept if b":endpoint-page:" in key)


def test_a_link_opens_the_page_of_its_subscription_once(hook: str, ben: Principal) -> None:
    token, visitor = link_to(hook, ben), Visitor()
    assert visitor.get("/endpoint/own/endpoint").status_code == 401
    assert visitor.open(token).status_code == 204
    shown = visitor.get("/endpoint/own/endpoint").json()
    assert (shown["state"], shown["url"]) == ("active", "https://hooks.example.org/in?…")
    assert visitor.get("/endpoint/own/subscription").json()["id"] == hook
    again = Visitor()
    assert again.open(token).status_code == 401
    assert again.get("/endpoint/own/endpoint").status_code == 401


def test_the_session_can_do_what_looking_after_the_endpoint_needs(hook: str, opened: Visitor) -> None:
    assert opened.post("/endpoint/own/endpoint/pause").json()["state"] == "paused"
    assert opened.post("/endpoint/own/endpoint/resume").json()["state"] == "active"
    assert opened.post("/endpoint/own/endpoint/test").status_code == 202
    rotated = opened.post("/endpoint/own/endpoint/secret", {"secret": "whsec_" + "B" * 40})
    assert rotated.json()["secrets"] == 2
    assert opened.post("/endpoint/own/replay").json() == {"dead_letters": 0}
    for path in ("attempts", "dead-letters"):
        assert opened.get(f"/endpoint/own/{path}").json()["items"] == []


def test_no_secret_and_nothing_of_the_address_behind_its_query_is_shown(opened: Visitor) -> None:
    for path in ("subscription", "endpoint", "attempts", "dead-letters"):
        text = opened.get(f"/endpoint/own/{path}").content.decode()
        assert "hidden" not in text
        assert "AAAA" not in text


def test_the_cookie_is_for_these_addresses_this_site_and_no_script(hook: str, ben: Principal) -> None:
    visitor = Visitor()
    cookie = visitor.open(link_to(hook, ben)).cookies[COOKIE]
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == ("/endpoint", True, "Strict")
    assert 0 < int(cookie["max-age"]) <= 3600


def test_the_session_is_worth_nothing_elsewhere(hook: str, opened: Visitor, new_rp: NewRp, ben: Principal) -> None:
    session = opened.http.cookies[COOKIE].value
    other = subscription_create(reference=new_rp().id, principal=ben, deliver=STATED)
    for path in (f"/api/v1/subscriptions/{hook}", f"/api/v1/subscriptions/{other.id}/endpoint", "/api/v1/rps"):
        assert opened.get(path).status_code == 401
        assert opened.get(path, Authorization=f"Bearer {session}").status_code == 401
    assert opened.get("/deliveries").status_code == 302
    assert opened.post(f"/api/v1/subscriptions/{other.id}/endpoint/pause").status_code == 401
    shown = opened.get(f"/endpoint/own/subscription?subscription_id={other.id}&id={other.id}").json()
    assert shown["id"] == hook


def test_other_methods_of_the_shared_views_are_not_served(hook: str, opened: Visitor) -> None:
    for method in ("patch", "delete", "put"):
        answer = getattr(opened.http, method)(
            "/endpoint/own/subscription", "{}", content_type="application/json", headers={"X-CSRFToken": opened.csrf}
        )
        assert answer.status_code == 405
    assert PushEndpoint.objects.filter(pk=hook).exists()


def test_the_consoles_session_and_tokens_are_not_read_there(django_user_model: Any) -> None:
    boss = django_user_model.objects.create_superuser("boss", password=None)
    visitor = Visitor()
    visitor.http.force_login(boss)
    assert visitor.get("/endpoint/own/endpoint").status_code == 401
    page = visitor.get("/endpoint")
    assert "boss" not in page.content.decode()


@pytest.mark.parametrize("path", ["open", "close", *(f"own/{path}" for path in POSTS)])
def test_a_page_of_another_site_can_change_nothing(hook: str, opened: Visitor, path: str) -> None:
    forged = opened.http.post(f"/endpoint/{path}", {}, content_type="application/json")
    assert forged.status_code == 403
    elsewhere = opened.http.post(
        f"/endpoint/{path}",
        {},
        content_type="application/json",
        headers={"X-CSRFToken": opened.csrf, "Origin": "https://evil.example.org"},
    )
    assert elsewhere.status_code == 403
    assert PushEndpoint.objects.get(pk=hook).state == "active"
    assert opened.get("/endpoint/own/endpoint").status_code == 200


def test_a_page_runs_no_script_of_others_and_is_not_stored(opened: Visitor) -> None:
    page = opened.get("/endpoint")
    policy = page["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe-inline" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "no-store" in page["Cache-Control"]
    assert "no-store" in opened.get("/endpoint/own/endpoint")["Cache-Control"]


def test_closing_ends_the_session_for_every_copy_of_its_cookie(opened: Visitor) -> None:
    copy = Visitor()
    copy.http.cookies[COOKIE] = opened.http.cookies[COOKIE].value
    assert copy.get("/endpoint/own/endpoint").status_code == 200
    assert opened.post("/endpoint/close").status_code == 204
    assert copy.get("/endpoint/own/endpoint").status_code == 401


def test_only_who_manages_the_subscription_makes_a_link(hook: str, ben: Principal, new_rp: NewRp) -> None:
    with pytest.raises(Forbidden):
        page_link_create(subscription_id=hook, principal=principal("eve"))
    viewer = replace(
        principal("vic", admin=True), scopes=(Scope(("*",), frozenset({"describe", "subscribe", "history"})),)
    )
    with pytest.raises(Forbidden):
        page_link_create(subscription_id=hook, principal=viewer)
    pulled = subscription_create(reference=new_rp().id, principal=ben)
    with pytest.raises(NotFound):
        page_link_create(subscription_id=pulled.id, principal=ben)


def test_a_page_acts_as_its_maker_without_the_makers_roles(hook: str, ben: Principal) -> None:
    _, _, session = page_open(link_to(hook, replace(ben, admin=True)))
    acts = session.principal
    assert (acts.identity, acts.admin, session.subscription) == (ben.identity, False, hook)
    assert acts.scopes is not None
    assert [sorted(one.operations) for one in acts.scopes] == [["history", "subscribe"]]
    boss = principal("boss", admin=True)
    token, _, session = page_open(link_to(hook, boss))
    assert session.principal.identity == "boss"
    assert not session.principal.permits("publish", session.principal.scopes[0].rps[0])  # type: ignore[index]
    assert page_session(token).principal.permits("administer", session.principal.scopes[0].rps[0])  # type: ignore[index]


def test_a_page_lasts_no_longer_than_its_makers_token_and_the_lease(hook: str, ben: Principal) -> None:
    _, session_s, _ = page_open(link_to(hook, replace(ben, expires_at=time.time() + 100)))
    assert session_s <= 100
    _, session_s, _ = page_open(link_to(hook, replace(ben, expires_at=float("inf"))))
    assert session_s <= 3600
    with pytest.raises(Unauthenticated):
        page_open(link_to(hook, replace(ben, expires_at=time.time() + 0.5)))


def test_a_link_says_until_when_it_can_be_opened(hook: str, ben: Principal) -> None:
    link = page_link_create(subscription_id=hook, principal=ben)
    assert timedelta(0) < link.expires_at - timezone.now() <= timedelta(seconds=900)
    kept: list[Any] = redis_client().keys("*endpoint-page:link:*")
    assert all(0 < redis_client().ttl(key) <= 900 for key in kept)


def test_a_revocation_of_the_maker_ends_the_page(hook: str, ben: Principal, opened: Visitor) -> None:
    revocation_create(kind="subject", value=ben.subject, reason="left", principal=principal("boss", admin=True))
    revocations().refresh()
    assert opened.get("/endpoint/own/endpoint").status_code == 401


def test_a_page_ends_with_its_subscription(hook: str, ben: Principal, opened: Visitor) -> None:
    subscription_delete(subscription_id=hook, principal=ben)
    assert opened.get("/endpoint/own/endpoint").status_code == 404


def test_links_of_a_subscription_are_bounded(hook: str, ben: Principal) -> None:
    for _ in range(LINKS_PER_HOUR_MAX):
        page_link_create(subscription_id=hook, principal=ben)
    with pytest.raises(QuotaExceeded):
        page_link_create(subscription_id=hook, principal=ben)


@pytest.mark.parametrize("wrong", ["", "x", "A" * 43, "../../login", "A" * 4000, "\x00" * 43])
def test_what_is_no_link_opens_nothing(wrong: str) -> None:
    visitor = Visitor()
    visitor.http.cookies[COOKIE] = "B" * 43
    answer = visitor.post("/endpoint/open", {"link": wrong}, "application/json")
    assert answer.status_code == 401
    with pytest.raises(Unauthenticated):
        page_open(wrong)
    with pytest.raises(Unauthenticated):
        page_session(wrong)


def test_guessing_is_slowed_down() -> None:
    visitor = Visitor()
    statuses = [visitor.open("A" * 43).status_code for _ in range(40)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
