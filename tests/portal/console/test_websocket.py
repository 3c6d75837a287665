"""The console's WebSocket: opened by the session's cookie from the console's own pages, and closed with the session."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from websockets.exceptions import InvalidStatus

from demo.harness.servers import Domain
from eventing.access.services.revocations import revocation_create
from eventing.access.verification.revocations import revocations
from eventing.core.principals import Principal
from eventing.gateway.delivery.close_codes import CLOSE_TOKEN_EXPIRED, CLOSE_TOKEN_REVOKED
from portal.accounts.services.sessions import SESSION_S_MAX, STARTED, sessions_alive
from portal.console.websocket import CONNECTION_S, _principal
from tests.portal.console.identity_provider import IdentityProvider
from tests.portal.console.people import Person
from tests.portal.console.test_accounts import page_of

PROCESSES = pytest.mark.processes
CLOSED_WITHIN_S = 15.0  # 5 s on a machine that does nothing else


@pytest.fixture(scope="module")
def domain(console_domain: tuple[IdentityProvider, Domain]) -> Domain:
    return console_domain[1]


def refused(person: Person, **how: str | None) -> tuple[int, str]:
    """The status and problem code with which a handshake is refused."""
    with pytest.raises(InvalidStatus) as raised, person.websocket(**how):  # type: ignore[arg-type]
        pass
    answer = raised.value.response
    return answer.status_code, answer.body.decode().partition("urn:herald:problem:")[2].partition('"')[0]


@PROCESSES
def test_a_page_of_another_site_cannot_use_the_session(domain: Domain, admin: Person) -> None:
    """Cross-site WebSocket hijacking: the browser adds the cookie, whoever begins the handshake."""
    foreign = (
        "https://evil.example",
        f"https://127.0.0.1:{domain.port}",
        "http://127.0.0.1",
        f"http://127.0.0.1:{domain.port + 1}",
        f"http://127.0.0.1.evil.example:{domain.port}",
        f"http://evil.127.0.0.1:{domain.port}",
        "null",
        "http://[",
        "http://127.0.0.1:99999",
        None,
    )
    for origin in foreign:
        assert refused(admin, origin=origin) == (403, "forbidden"), origin
    with admin.websocket() as line:
        assert line.ask("ping")["op"] in ("ok", "pong")


@PROCESSES
def test_a_stranger_is_refused_and_a_token_is_no_session(domain: Domain, admin: Person) -> None:
    stranger = Person(domain)
    assert refused(stranger) == (401, "unauthenticated")
    assert refused(stranger, query=f"?access_token={domain.token(admin=True)}") == (401, "unauthenticated")
    stranger.http.cookies.set(f"herald_session_{domain.port}", "planted" * 4, domain="127.0.0.1")
    assert refused(stranger) == (401, "unauthenticated")


def log_out(person: Person, admin: Person, name: str) -> None:
    person.submit("/logout", page="/account")


def log_out_everywhere(person: Person, admin: Person, name: str) -> None:
    other = Person(person.domain)
    other.log_in(name)
    other.submit("/account/logout-everywhere", page="/account")


def deactivate(person: Person, admin: Person, name: str) -> None:
    address = page_of(admin, name)
    admin.submit(f"{address}/active", {"active": "0"}, page=address)
    admin.submit(f"{address}/active", {"active": "1"}, page=address)


def demote(person: Person, admin: Person, name: str) -> None:
    address = page_of(admin, name)
    for role in ("viewer", "operator"):
        admin.submit(f"{address}/role", {"role": role}, page=address)


def leave_unused(person: Person, admin: Person, name: str) -> None:
    key = person.http.cookies[f"herald_session_{person.domain.port}"]
    past = (datetime.now(UTC) - timedelta(seconds=1)).strftime("%Y-%m-%d %H:%M:%S")
    with closing(sqlite3.connect(person.domain.data_dir / "herald.sqlite3", timeout=60)) as database, database:
        changed = database.execute("update django_session set expire_date=? where session_key=?", (past, key))
        assert changed.rowcount == 1


@PROCESSES
@pytest.mark.parametrize("end", [log_out, log_out_everywhere, deactivate, demote, leave_unused])
def test_a_connection_closes_within_five_seconds_of_its_sessions_end(
    domain: Domain, admin: Person, invited: Callable[..., Person], end: Callable[[Person, Person, str], None]
) -> None:
    name = f"leo.{end.__name__}"  # a revocation of the subject covers connections that begin within the same second
    invited(name, "operator", password=True)
    person, other = Person(domain), Person(domain)
    for one in (person, other):
        one.log_in(name)
    with person.websocket() as line, other.websocket() as unconcerned:
        end(person, admin, name)
        ended = {CLOSE_TOKEN_EXPIRED, CLOSE_TOKEN_REVOKED}
        assert line.closed(CLOSED_WITHIN_S) in ended
        if end in (log_out, leave_unused):
            assert unconcerned.ask("ping")["op"] in ("ok", "pong"), "another session of the same user goes on"
        else:
            assert unconcerned.closed(CLOSED_WITHIN_S) in ended
    if end is demote:
        assert person.is_in, "the session goes on, with another role"
    else:
        assert refused(person) == (401, "unauthenticated")


@pytest.mark.django_db
def test_a_connection_lasts_ten_minutes_or_as_long_as_the_session_may() -> None:
    user, session, now = User.objects.create_user("ann", is_superuser=True), SessionStore(), 1_800_000_000.0
    session[STARTED] = now - 60
    principal = _principal(user, session, now)
    assert (principal.subject, principal.admin, principal.expires_at) == ("ann", True, now + CONNECTION_S)
    session[STARTED] = now + 60 - SESSION_S_MAX
    assert _principal(user, session, now).expires_at == now + 60


@pytest.mark.django_db
def test_a_revocation_of_the_subject_covers_earlier_connections_only() -> None:
    user, session, now = User.objects.create_user("ann"), SessionStore(), datetime.now(UTC)
    before = _principal(user, session, now.timestamp())
    after = _principal(user, session, now.timestamp() + 2)
    root = Principal("localhost", "root", True, float("inf"), {"iss": "localhost", "sub": "root", "admin": True})
    revocation_create(principal=root, kind="subject", value="ann", now=now)
    revocations().refresh()
    assert revocations().revoked(before) is not None
    assert revocations().revoked(after) is None


@pytest.mark.django_db
def test_sessions_are_looked_up_in_bounded_batches(django_assert_num_queries: Callable[[int], object]) -> None:
    kept = SessionStore()
    kept.create()
    unused = SessionStore()
    unused.set_expiry(-1)
    unused.create()
    keys = [str(kept.session_key), str(unused.session_key), *(f"{n:032}" for n in range(600))]
    with django_assert_num_queries(2):  # type: ignore[attr-defined]
        assert sessions_alive(keys) == {kept.session_key}
