"""The first administrator and one-time login links: once, in time, for active users only."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from portal.accounts.models import LoginLink
from portal.accounts.services.login_links import (
    LOGIN_LINK_S,
    ensure_administrator,
    login_link_create,
    login_link_redeem,
)

pytestmark = pytest.mark.django_db


def made(user: User) -> str:
    path = login_link_create(user)
    assert path.startswith("/login/once/")
    return path.removeprefix("/login/once/")


def test_the_first_start_makes_one_administrator_without_a_password() -> None:
    administrator = ensure_administrator()
    assert administrator is not None
    assert administrator.is_superuser
    assert not administrator.has_usable_password()
    assert ensure_administrator() == administrator
    assert User.objects.count() == 1


def test_an_administrator_who_was_removed_is_not_made_again() -> None:
    User.objects.create_user("ann")
    assert ensure_administrator() is None


def test_a_link_logs_its_user_in_once() -> None:
    user = User.objects.create_user("ann")
    token = made(user)
    assert login_link_redeem(token) == user
    assert login_link_redeem(token) is None


def test_a_link_is_stored_hashed_and_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    user = User.objects.create_user("ann")
    token = made(user)
    link = LoginLink.objects.get()
    assert token not in link.token_hash
    assert abs((link.expires_at - timezone.now()).total_seconds() - LOGIN_LINK_S) < 60
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert login_link_redeem(token) is None


def test_a_new_link_replaces_the_earlier_one() -> None:
    user = User.objects.create_user("ann")
    first, second = made(user), made(user)
    assert login_link_redeem(first) is None
    assert login_link_redeem(second) == user


def test_an_inactive_user_is_not_let_in() -> None:
    user = User.objects.create_user("ann")
    token = made(user)
    User.objects.update(is_active=False)
    assert login_link_redeem(token) is None


@pytest.mark.parametrize("token", ["", "x", "x" * 65, "x" * 1_000_000, "\x00", "ü" * 40])
def test_what_is_no_token_is_refused(token: str) -> None:
    assert login_link_redeem(token) is None
