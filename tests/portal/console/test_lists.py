"""What the pages of lists are given by the server: limits and their settings, the checks of doctor within bounds."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import fields

import pytest
from django.test import Client

from eventing.core.config import Config
from eventing.core.errors import ApplicationError
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from portal.console.pages.quotas import AT_EACH_RP, EACH, KEPT, RATES
from portal.supervisor.diagnosis import checks
from portal.supervisor.diagnosis.findings import DiagnosisFinding, Grade, ok
from tests.planes import principal

PAGES = ("/leases", "/keys", "/audit", "/system", "/console/system", "/console/findings")


def test_every_limit_of_the_page_names_a_setting_that_exists() -> None:
    settings = {field.name for field in fields(Config)}
    for limit in (*KEPT, *RATES, *EACH, *AT_EACH_RP):
        assert not limit.setting or limit.setting in settings, limit


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_url")
def test_every_limit_that_is_answered_is_on_the_page(logged_in: Callable[..., Client]) -> None:
    root = logged_in("root", admin=True)
    answer = root.get("/api/v1/limits").json()
    named = {limit.name for limit in (*KEPT, *RATES, *EACH)}
    assert {state["name"] for state in (*answer["limits"], *answer["domain"])} <= named
    on_page = set(re.findall(r'data-limit="([a-z-]+)"', root.get("/quotas").content.decode()))
    assert on_page == named


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_url")
def test_who_does_not_oversee_the_domain_sees_only_their_own(logged_in: Callable[..., Client]) -> None:
    ann = logged_in("ann")
    for path in PAGES:
        assert ann.get(path).status_code == 403, path
    assert "data-live" not in ann.get("/subscriptions").content.decode()
    assert "domain-rps" not in ann.get("/quotas").content.decode()


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_url")
def test_overseers_see_what_other_principals_hold(logged_in: Callable[..., Client]) -> None:
    for who in ("ann", "ann", "ben"):
        rendezvous_point_create(principal=principal(who), policy=[], history={"max_bytes": 3_000_000})
    root = logged_in("root", admin=True)
    rows = re.findall(r'who=(\w+)">.*?data-name="Rendezvous points">(\d+)<', root.get("/quotas").content.decode())
    assert rows == [("ann", "2"), ("ben", "1")]
    one = root.get("/quotas", {"principal": "ben"}).content.decode()
    assert "who=ben" in one
    assert "who=ann" not in one
    assert "who=ann" not in logged_in("ann").get("/quotas", {"principal": "ann"}).content.decode()


def test_a_check_that_hangs_is_told_and_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    release, begun = threading.Event(), []

    def hang() -> list[DiagnosisFinding]:
        begun.append(1)
        release.wait(20)
        return [ok("slow", "answered")]

    def wrong() -> list[DiagnosisFinding]:
        raise ApplicationError("a secret address")

    monkeypatch.setattr(checks, "CHECKS", (("quick", lambda: [ok("quick", "well")]), ("slow", hang), ("wrong", wrong)))
    at = time.monotonic()
    try:
        for _ in range(2):
            found = {finding.subject: finding for finding in checks.findings_within(0.2)}
            assert found["quick"].grade == Grade.OK
            assert found["slow"].grade == Grade.WARN
            assert "0.2 s" in found["slow"].says
            assert found["wrong"].grade == Grade.FAIL
            assert "secret" not in found["wrong"].says
        assert time.monotonic() - at < 15
    finally:
        release.set()
    found = {finding.subject: finding for finding in checks.findings_within(10)}
    assert found["slow"].says == "answered"
    assert len(begun) == 1
