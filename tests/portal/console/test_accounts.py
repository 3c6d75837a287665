"""Users of the console: roles, invitations, sessions, and guessing made slow. Over HTTP where people meet it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import RequestFactory
from django.utils import timezone

from demo.harness.servers import Domain, wait_for
from eventing.access.models import Revocation
from eventing.access.selectors.console_users import role_of, user_principal
from eventing.audit.models import AuditEntry
from eventing.core.errors import Conflict, Forbidden, InvalidRequest
from eventing.core.principals import OPERATIONS, Principal, Scope
from eventing.core.roles import ROLES, operates, oversees, parse_role_mapping, reads_only, scopes_of, strongest
from portal.accounts.models import LoginAttempts
from portal.accounts.services import throttling
from portal.accounts.services.roles import role_store
from portal.accounts.services.throttling import ACCOUNT, ADDRESS, PAIR, attempt_link, attempt_login
from portal.accounts.services.users import user_deactivate, user_invite, user_reset, user_role_change
from portal.console.pages.access import principal_of
from tests.portal.console.identity_provider import IdentityProvider
from tests.portal.console.people import PASSWORD, Person, link_in, text_of

IN_DATABASE = pytest.mark.django_db
PROCESSES = pytest.mark.processes
EVENT = {"specversion": "1.0", "id": "1", "source": "/t", "type": "t"}


@pytest.fixture(scope="module")
def domain(console_domain: tuple[IdentityProvider, Domain]) -> Domain:
    return console_domain[1]


def page_of(admin: Person, name: str) -> str:
    """The address of a user's page."""
    found = next(part for part in admin.get("/users").text.split('href="/users/')[1:] if f">{name}<" in part)
    return "/users/" + found.split('"')[0]


def audited(domain: Domain, admin: Person, action: str) -> list[dict[str, Any]]:
    answer = admin.get(f"/api/v1/audit?action={action}&limit=100")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


# -- roles ------------------------------------------------------------------------------------------------------------


def test_what_each_role_may_do_everywhere() -> None:
    reading = {"describe", "subscribe", "history"}
    for role, granted in (("viewer", reading), ("operator", set(OPERATIONS)), ("administrator", set(OPERATIONS))):
        who = Principal("localhost", "ann", True, 0, {}, scopes_of(role))
        assert {operation for operation in OPERATIONS if who.permits(operation, "x", "/a/b/")} == granted
        assert who.narrowed is (role != "administrator"), "only who is not narrowed acts on the domain itself"
        assert reads_only(who) is (role == "viewer")
        assert oversees(who)
        assert operates(who) is (role != "viewer")
    assert not reads_only(Principal("localhost", "ann", False, 0, {}, (Scope(("*",), frozenset({"describe"})),)))


def test_of_several_roles_the_strongest_counts_and_unknown_ones_do_not() -> None:
    assert strongest({"viewer", "operator"}) == "operator"
    assert strongest({"root", "staff"}) == ""


@pytest.mark.parametrize(
    "text", ["x", "x=", "=viewer", "x=root", "a=viewer,b", ",".join(f"g{n}=viewer" for n in range(65))]
)
def test_a_role_mapping_that_cannot_be_is_refused_at_start(text: str) -> None:
    with pytest.raises(Exception, match="HERALD_OIDC_ROLES"):
        parse_role_mapping(text)


@IN_DATABASE
def test_roles_are_groups_made_by_the_migration_and_a_user_has_one() -> None:
    assert set(Group.objects.values_list("name", flat=True)) == set(ROLES)
    user = User.objects.create_user("ann")
    for role in (*ROLES, "", "operator", "viewer"):
        role_store(user, role)
        assert role_of(User.objects.get(pk=user.pk)) == role
        assert User.objects.get(pk=user.pk).is_superuser is (role == "administrator")


@IN_DATABASE
def test_membership_of_the_administrators_group_alone_makes_no_administrator() -> None:
    user = User.objects.create_user("ann")
    user.groups.add(Group.objects.get(name="administrator"))
    assert role_of(user) == ""
    assert not user_principal(user, expires_at=0).admin


# -- rules ------------------------------------------------------------------------------------------------------------


@IN_DATABASE
def test_the_last_administrator_stays(django_user_model: type[User]) -> None:
    root = django_user_model.objects.create_superuser("root")
    by = principal_of(root)
    with pytest.raises(Conflict, match="last administrator"):
        user_deactivate(user_id=root.pk, by=by)
    with pytest.raises(Conflict, match="last administrator"):
        user_role_change(user_id=root.pk, role="viewer", by=by)
    other = user_invite(name="other", role="administrator", by=by)[0]
    user_deactivate(user_id=other.pk, by=by)
    with pytest.raises(Conflict, match="last administrator"):
        user_role_change(user_id=root.pk, role="operator", by=by)
    refused = AuditEntry.objects.filter(outcome="refused", action__startswith="user.")
    assert refused.count() == 3


@IN_DATABASE
@pytest.mark.parametrize("role", ["viewer", "operator", ""])
def test_nobody_but_an_administrator_manages_users(role: str) -> None:
    user = User.objects.create_user("ann")
    role_store(user, role)
    by = principal_of(user)
    for act in (
        lambda: user_invite(name="friend", role="administrator", by=by),
        lambda: user_role_change(user_id=user.pk, role="administrator", by=by),
        lambda: user_deactivate(user_id=user.pk, by=by),
        lambda: user_reset(user_id=user.pk, by=by),
    ):
        with pytest.raises(Forbidden):
            act()
    assert User.objects.count() == 1
    assert role_of(User.objects.get()) == role


@IN_DATABASE
@pytest.mark.parametrize("name", ["", "Ann", "a#b", "ann ", "oidc-x", "x" * 65, "\u0430nn", "a\x00", "-ann", "a/b"])
def test_a_name_that_could_be_taken_for_another_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest):
        user_invite(name=name, role="viewer")


@IN_DATABASE
def test_losing_rights_revokes_tokens_and_gaining_them_does_not() -> None:
    User.objects.create_superuser("root")
    user = user_invite(name="ann", role="viewer")[0]
    user_role_change(user_id=user.pk, role="operator")
    assert not Revocation.objects.exists()
    user_role_change(user_id=user.pk, role="viewer")
    row = Revocation.objects.get()
    assert (row.kind, row.value) == ("subject", "ann")


@IN_DATABASE
def test_the_command_does_what_the_pages_do(capsys: pytest.CaptureFixture[str]) -> None:
    User.objects.create_superuser("root")
    call_command("users", "add", "ann", "--role", "operator")
    said = capsys.readouterr()
    assert "/login/once/" in said.out
    assert len(said.out.split()) == 1, "the link alone, for programs"
    assert said.err == "ann is invited, operator. Give the user this link, which logs in once, within 24 hours.\n"
    call_command("users", "role", "ann", "viewer")
    call_command("users", "deactivate", "ann")
    call_command("users", "list")
    listed = capsys.readouterr().out
    assert re.search(r"^ann +viewer +deactivated +never logged in$", listed, re.MULTILINE)
    assert re.search(r"^root +administrator +active", listed, re.MULTILINE)
    call_command("users", "activate", "ann")
    call_command("users", "reset", "ann")
    assert "/login/once/" in capsys.readouterr().out
    for arguments, refusal in (
        (("deactivate", "root"), "last administrator"),
        (("role", "nobody", "viewer"), "no user"),
    ):
        with pytest.raises(CommandError, match=refusal):
            call_command("users", *arguments)


# -- invitations, roles and sessions, as people meet them ---------------------------------------------------------------


@PROCESSES
def test_an_invited_user_comes_by_link_and_no_password_travels(domain: Domain, admin: Person) -> None:
    answer = admin.submit("/users/new", {"name": "ida", "role": "viewer"})
    link = link_in(answer)
    assert link.startswith(domain.url)
    assert link not in admin.get("/users").text, "it is shown once"
    assert "no password yet" in text_of(admin.get("/users"))
    ida = Person(domain).by_link(link).set_password()
    assert ida.is_in
    assert "no longer valid" in text_of(Person(domain).submit(link))
    again = Person(domain)
    again.log_in("ida")
    assert again.is_in
    assert "taken" in text_of(admin.submit("/users/new", {"name": "ida", "role": ""})) or "already" in text_of(
        admin.submit("/users/new", {"name": "ida", "role": ""})
    )


@PROCESSES
def test_a_viewer_sees_everything_and_changes_nothing(
    domain: Domain, admin: Person, invited: Callable[..., Person]
) -> None:
    viewer = invited("vera", "viewer")
    with domain.http(subject="owner") as owner:
        secret = owner.post("/api/v1/rps", json={"name": "vera/secret", "policy": []}).json()["id"]
        owner.post(f"/api/v1/rps/{secret}/events", json={"n": 1})
        theirs = owner.post(f"/api/v1/rps/{secret}/subscriptions", json={}).json()["id"]
    page = viewer.get(f"/rps/{secret}")
    assert page.status_code == 200
    assert "Publish a test event" not in page.text
    assert "Delete this rendezvous point" not in page.text
    assert "New rendezvous point" not in viewer.get("/rps").text
    assert viewer.get("/users").status_code == 403
    assert viewer.get(f"/api/v1/rps/{secret}").status_code == 200
    assert viewer.get(f"/api/v1/subscriptions/{theirs}").status_code == 200
    assert viewer.get(f"/api/v1/rps/{secret}/subscriptions").json()["items"][0]["id"] == theirs
    assert viewer.get("/api/v1/audit").status_code == 200
    for method, path, body in (
        ("POST", "/api/v1/rps", {}),
        ("PATCH", f"/api/v1/rps/{secret}", {"title": "x"}),
        ("DELETE", f"/api/v1/rps/{secret}", None),
        ("POST", f"/api/v1/rps/{secret}/renew", {}),
        ("POST", f"/api/v1/rps/{secret}/subscriptions", {}),
        ("PATCH", f"/api/v1/subscriptions/{theirs}", {"history": {"max_events": 1}}),
        ("POST", f"/api/v1/subscriptions/{theirs}/renew", {}),
        ("DELETE", f"/api/v1/subscriptions/{theirs}", None),
        ("POST", "/api/v1/tokens", {"subject": "vera", "admin": True}),
        ("POST", "/api/v1/revocations", {"kind": "token", "value": "stolen"}),
    ):
        assert viewer.ask(method, path, body).status_code == 403, (method, path)
    with viewer.websocket() as line:
        subscribed = line.ask("subscribe", rp=secret, **{"from": "earliest"})
        assert subscribed["op"] == "ok"
        assert line.frame()["event"]["data"] == {"n": 1}
        for op, members in (
            ("publish", {"rp": secret, "event": EVENT}),
            ("renew", {"rp": secret}),
            ("renew", {"subscription": theirs}),
            ("ack", {"subscription": theirs, "cursor": subscribed["cursor"]}),
        ):
            assert line.ask(op, **members)["type"] == "urn:herald:problem:forbidden", (op, members)
    assert viewer.submit(f"/rps/{secret}/delete", page="/account").status_code == 403
    new = {"lease": "1", "lease_unit": "hours", "max_events": "1", "max_age_unit": "days", "ack": "stored"}
    assert viewer.submit("/rps/new", new, page="/account").status_code == 403


@PROCESSES
def test_an_operator_acts_on_everything_but_the_domain_itself(domain: Domain, invited: Callable[..., Person]) -> None:
    operator = invited("otto", "operator")
    with domain.http(subject="owner") as owner:
        secret = owner.post("/api/v1/rps", json={"name": "otto/secret", "policy": []}).json()["id"]
    assert "Publish a test event" in operator.get(f"/rps/{secret}").text
    assert operator.get("/users").status_code == 403
    with operator.websocket() as line:
        assert line.ask("publish", rp=secret, event=EVENT)["op"] == "ok"
    assert operator.ask("PATCH", f"/api/v1/rps/{secret}", {"title": "x"}).status_code == 200
    assert operator.ask("DELETE", f"/api/v1/rps/{secret}").status_code == 204
    for body in ({"subject": "otto", "admin": True}, {"subject": "x"}):
        assert operator.ask("POST", "/api/v1/tokens", body).status_code == 403
    assert operator.ask("POST", "/api/v1/revocations", {"kind": "token", "value": "stolen"}).status_code == 201
    key = operator.get("/.well-known/jwks.json").json()["keys"][0]["kid"]
    assert operator.ask("POST", "/api/v1/revocations", {"kind": "key", "value": key}).status_code == 403
    assert operator.get("/api/v1/audit").status_code == 200


@PROCESSES
def test_a_changed_role_holds_from_the_next_page_on_and_ends_stronger_tokens(
    domain: Domain, admin: Person, invited: Callable[..., Person]
) -> None:
    person = invited("rolf", "operator")
    with domain.http(subject="rolf") as http:
        assert http.post("/api/v1/rps", json={}).status_code == 201
        address = page_of(admin, "rolf")
        assert "The role is changed" in text_of(admin.submit(f"{address}/role", {"role": "viewer"}, page=address))
        assert "viewer" in text_of(person.get("/account"))
        wait_refused(http)
    roles = [entry["details"]["role"] for entry in audited(domain, admin, "user.role") if entry["on"]["id"] == "rolf"]
    assert roles == [["operator", "viewer"]]


def wait_refused(http: httpx.Client) -> None:
    """Revocations reach a gateway within 5 s, whatever happens."""
    wait_for(lambda: http.get("/api/v1/rps").status_code == 401, about="the token is refused")


@PROCESSES
def test_a_deactivated_user_is_out_at_once_and_comes_back_only_when_activated(
    domain: Domain, admin: Person, invited: Callable[..., Person]
) -> None:
    person = invited("dora", "operator", password=True)
    http = domain.http(subject="dora")
    address = page_of(admin, "dora")
    admin.submit(f"{address}/active", {"active": "0"}, page=address)
    assert not person.is_in
    assert "correct username and password" in text_of(Person(domain, address="127.0.0.11").log_in("dora"))
    with http:
        wait_refused(http)
    assert "deactivated" in text_of(admin.get("/users"))
    admin.submit(f"{address}/active", {"active": "1"}, page=address)
    back = Person(domain, address="127.0.0.11")
    back.log_in("dora")
    assert back.is_in
    assert not person.is_in, "the old session stays ended"


@PROCESSES
def test_a_reset_takes_password_and_sessions_and_gives_a_link(
    domain: Domain, admin: Person, invited: Callable[..., Person]
) -> None:
    person = invited("rosa", "viewer", password=True)
    address = page_of(admin, "rosa")
    link = link_in(admin.submit(f"{address}/link", page=address))
    assert not person.is_in
    assert not logged_in(domain, "rosa", "127.0.0.12")
    assert Person(domain).by_link(link).set_password("another correct horse").is_in


def logged_in(domain: Domain, name: str, address: str, password: str = PASSWORD) -> bool:
    person = Person(domain, address=address)
    person.log_in(name, password)
    return person.is_in


@PROCESSES
def test_logging_out_everywhere_ends_every_session(domain: Domain, invited: Callable[..., Person]) -> None:
    first = invited("ella", "viewer", password=True)
    second = Person(domain, address="127.0.0.13")
    second.log_in("ella")
    seen = text_of(first.get("/account"))
    assert "127.0.0.13" in seen
    assert seen.count("this session") == 1
    assert re.search(r"Login before this one ?20\d\d-", text_of(second.get("/account")))
    assert "logged out everywhere" in text_of(second.submit("/account/logout-everywhere", page="/account"))
    assert not first.is_in
    assert not second.is_in


@PROCESSES
def test_another_password_ends_the_other_sessions_and_not_this_one(
    domain: Domain, invited: Callable[..., Person]
) -> None:
    first = invited("paul", "viewer", password=True)
    second = Person(domain, address="127.0.0.14")
    second.log_in("paul")
    typed = {
        "old_password": PASSWORD,
        "new_password1": "a better horse battery",
        "new_password2": "a better horse battery",
    }
    assert "The password is set" in text_of(second.submit("/password", typed))
    assert second.is_in
    assert not first.is_in
    assert "this session" in text_of(second.get("/account")), "its row has followed the new key"


@PROCESSES
def test_the_session_gets_another_key_at_login_and_its_cookie_is_kept_close(domain: Domain, admin: Person) -> None:
    person = Person(domain)
    name = f"herald_session_{domain.port}"
    person.http.cookies.set(name, "planted" * 4, domain="127.0.0.1")
    link = link_in(admin.submit("/users/new", {"name": "fixa", "role": "viewer"}))
    page = person.get(link)
    csrf = page.text.split('csrfmiddlewaretoken" value="')[1].split('"')[0]
    answer = person.http.post(link, data={"csrfmiddlewaretoken": csrf}, follow_redirects=False)
    cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith(name))
    assert "planted" not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


@PROCESSES
def test_every_form_needs_the_pages_csrf_token(domain: Domain, admin: Person) -> None:
    address = page_of(admin, "admin")
    for path in (
        "/login",
        "/logout",
        "/password",
        "/account/logout-everywhere",
        "/users/new",
        f"{address}/role",
        f"{address}/active",
        f"{address}/link",
        f"{address}/logout",
        "/rps/new",
    ):
        assert admin.http.post(path, data={}).status_code == 403, path
    assert admin.is_in


@PROCESSES
def test_logins_and_failures_are_in_the_audit_without_what_was_typed(
    domain: Domain, admin: Person, invited: Callable[..., Person]
) -> None:
    invited("auda", "viewer", password=True)
    person = Person(domain, address="127.0.0.15")
    person.log_in("auda", "my secret password typed wrong")
    person.log_in("typed my password as name", "x")
    person.log_in("auda")
    person.submit("/logout", page="/account")
    failed = audited(domain, admin, "login.failed")
    assert [entry["who"] for entry in failed if entry["address"] == "127.0.0.15"][:2] in (
        ["127.0.0.15", "auda"],
        ["auda", "127.0.0.15"],
    )
    assert "typed" not in str(failed)
    assert any(
        entry["who"] == "auda" and entry["details"] == {"by": "password"} for entry in audited(domain, admin, "login")
    )
    assert any(entry["who"] == "auda" for entry in audited(domain, admin, "logout"))


# -- guessing -----------------------------------------------------------------------------------------------------------


@PROCESSES
def test_guessing_is_told_to_wait_and_locks_nobody_else_out(domain: Domain, invited: Callable[..., Person]) -> None:
    invited("gina", "viewer", password=True)
    guesser = Person(domain, address="127.0.0.21")
    for _ in range(PAIR.free):
        assert "correct username and password" in text_of(guesser.log_in("gina", "wrong"))
    locked = guesser.log_in("gina")
    assert locked.status_code == 429, "even the right password has to wait"
    assert 0 < int(locked.headers["Retry-After"]) <= PAIR.first_s
    assert "Too many failed attempts. Wait" in text_of(locked)
    assert not guesser.is_in
    assert logged_in(domain, "gina", "127.0.0.22"), "its owner, from elsewhere"
    invited("greg", "viewer", password=True)
    assert logged_in(domain, "greg", "127.0.0.21"), "another account, from the guesser's address"


@PROCESSES
def test_a_name_that_does_not_exist_is_answered_like_one_that_does(
    domain: Domain, invited: Callable[..., Person]
) -> None:
    invited("real", "viewer", password=True)
    answers = []
    for name, address in (("real", "127.0.0.23"), ("unreal", "127.0.0.24")):
        person = Person(domain, address=address)
        told = [person.log_in(name, "wrong") for _ in range(PAIR.free + 1)]
        texts = [re.sub(r"Wait \d+ seconds", "Wait", text_of(answer).replace(name, "NAME")) for answer in told]
        answers.append([(answer.status_code, text) for answer, text in zip(told, texts, strict=True)])
    assert [status for status, _ in answers[0]] == [200] * PAIR.free + [429]
    assert answers[0] == answers[1]


@IN_DATABASE
def test_the_wait_doubles_to_an_hour_and_is_forgiven_with_time() -> None:
    now, waits = timezone.now(), []
    for _ in range(PAIR.free + 9):
        attempt = attempt_login(account="ann", address="192.0.2.1", now=now)
        if attempt.wait_s:
            waits.append(attempt.wait_s)
            now += timedelta(seconds=attempt.wait_s)
            assert attempt_login(account="ann", address="192.0.2.1", now=now).wait_s == 0
    assert waits == sorted(waits)
    assert waits[0] in (PAIR.first_s, PAIR.first_s + 1)
    assert waits[1] >= 2 * PAIR.first_s
    later = now + timedelta(seconds=PAIR.forgiven_s * (PAIR.free + 9))
    assert [attempt_login(account="ann", address="192.0.2.1", now=later).wait_s for _ in range(PAIR.free)] == [
        0
    ] * PAIR.free
    assert PAIR.wait_s(1000) == 3600


@IN_DATABASE
def test_many_accounts_from_one_address() -> None:
    now = timezone.now()
    for number in range(ADDRESS.free):
        assert attempt_login(account=f"user{number}", address="192.0.2.1", now=now).wait_s == 0
    assert attempt_login(account="one-more", address="192.0.2.1", now=now).wait_s > 0
    assert attempt_link(address="192.0.2.1", now=now).wait_s > 0, "links are attempts too"
    assert attempt_login(account="one-more", address="192.0.2.2", now=now).wait_s == 0


@IN_DATABASE
def test_one_account_from_many_addresses_is_slowed_and_its_owner_is_not() -> None:
    now = timezone.now()
    attempt_login(account="ann", address="198.51.100.7", now=now).succeeded()
    for number in range(ACCOUNT.free):
        assert attempt_login(account="ann", address=f"192.0.2.{number}", now=now).wait_s == 0
    assert 0 < attempt_login(account="ann", address="203.0.113.1", now=now).wait_s <= ACCOUNT.longest_s + 1
    assert attempt_login(account="ann", address="198.51.100.7", now=now).wait_s == 0, "the owner's known address"
    paced = now + timedelta(seconds=ACCOUNT.longest_s)
    assert attempt_login(account="ann", address="203.0.113.2", now=paced).wait_s == 0, "slowed, never locked"


@IN_DATABASE
def test_addresses_of_one_ipv6_subscriber_count_as_one() -> None:
    for number in range(PAIR.free):
        attempt_login(account="ann", address=f"2001:db8:1:2::{number:x}")
    assert attempt_login(account="ann", address="2001:db8:1:2:ffff::1").wait_s > 0
    assert attempt_login(account="ann", address="2001:db8:1:3::1").wait_s == 0


@IN_DATABASE
def test_a_right_password_takes_back_what_was_counted_in_advance() -> None:
    for _ in range(3 * ADDRESS.free):
        attempt = attempt_login(account="ann", address="192.0.2.1")
        assert attempt.wait_s == 0
        attempt.succeeded()


@pytest.mark.django_db(transaction=True)
def test_many_attempts_at_once_are_as_many_attempts() -> None:
    waits: list[int] = []

    def guess() -> None:
        try:
            waits.append(attempt_login(account="ann", address="192.0.2.1").wait_s)
        finally:
            connection.close()

    threads = [threading.Thread(target=guess) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(wait == 0 for wait in waits) == PAIR.free


@IN_DATABASE
def test_the_table_of_attempts_is_bounded_and_holds_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "ROWS_MAX", 20)
    for number in range(40):
        attempt_login(account=f"hunter{number}", address=f"192.0.2.{number}")
    assert LoginAttempts.objects.count() <= 22
    assert not any("hunter" in str(row) + row.key for row in LoginAttempts.objects.all())


@pytest.mark.parametrize("name", ["x" * 10_000, "\x00", "\ud800", "' OR 1=1 --"])
@IN_DATABASE
def test_a_strange_name_is_an_attempt_like_any(name: str) -> None:
    assert attempt_login(account=name, address=RequestFactory().get("/").META["REMOTE_ADDR"]).wait_s == 0
