"""Changes to the console's users. Each is one transaction, is recorded in the audit, and keeps two rules: a domain
keeps an administrator who can log in, and a user who is given fewer rights loses sessions and tokens.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from eventing.access.selectors.console_users import role_of
from eventing.access.services.revocations import revocation_create
from eventing.audit.services import REFUSED, audit_record
from eventing.conf import config
from eventing.core.errors import ApplicationError, Conflict, Forbidden, InvalidRequest, NotFound
from eventing.core.principals import Principal
from eventing.core.roles import ADMINISTRATOR, ROLES
from eventing.sql.locking import lock_domain
from portal.accounts.models import LoginLink
from portal.accounts.services.login_links import INVITATION_S, login_url_create
from portal.accounts.services.roles import NO_ROLE, role_store
from portal.accounts.services.sessions import sessions_end

NAME = re.compile(r"[a-z0-9](?:[a-z0-9._@+-]{0,62}[a-z0-9])?")
"""One spelling per name, of characters that look like no others; no `#`, which marks foreign principals."""

EXTERNAL_PREFIX = "oidc-"
"""Prefix of the names of an identity provider's users (portal/console/oidc); invitations under such a name are
refused."""

USERS_MAX = 1000
"""Console users, not clients: those bring tokens and have no rows."""
DOMAIN = "domain"  # subject of what the domain does itself


def user_invite(*, name: str, role: str, by: Principal | None = None) -> tuple[User, str]:
    """Add a user without a password. Returns the user and the URL of a one-time link, to be handed over; there is no
    other way to log in. `by` is the acting principal; None for commands on the domain's machine. Raises InvalidRequest,
    Conflict, Forbidden.
    """
    with _administration("user.invite", by, name):
        if not NAME.fullmatch(name) or name.startswith(EXTERNAL_PREFIX):
            raise InvalidRequest(
                f"A user's name is 1 to 64 of a-z, 0-9 and . _ @ + - between them, and does not begin with {EXTERNAL_PREFIX}."
            )
        _require_role(role)
        with transaction.atomic():
            lock_domain()
            if User.objects.filter(username__iexact=name).exists():
                raise Conflict(f"A user {name} already exists.")
            if User.objects.count() >= USERS_MAX:
                raise Conflict(f"A console has at most {USERS_MAX} users; use OIDC or tokens for more.")
            try:
                user = User.objects.create_user(name)
            except IntegrityError:
                raise Conflict(f"A user {name} already exists.") from None
            role_store(user, role)
            _record("user.invite", by, user, role=role)
        return user, login_url_create(user, valid_s=INVITATION_S)


def user_role_change(*, user_id: int, role: str, by: Principal | None = None) -> User:
    """Give a user another role. Raises NotFound, InvalidRequest, Conflict (the last administrator), Forbidden."""
    with _administration("user.role", by, str(user_id)):
        _require_role(role)
        with transaction.atomic():
            user = _locked(user_id)
            before = role_of(user)
            if hasattr(user, "external_identity"):
                raise Conflict("The identity provider assigns this user's role at each login; change it there.")
            if before == role:
                return user
            if before == ADMINISTRATOR:
                _require_another_administrator(user)
            role_store(user, role)
            if weaker(role, before):
                tokens_revoke(user, by=by, reason="role changed")
            _record("user.role", by, user, role=[before, role])
        return user


def user_deactivate(*, user_id: int, by: Principal | None = None) -> User:
    """Deactivate a user: end sessions and links, and revoke the user's tokens. Objects that the user created stay.

    Raises NotFound, Conflict (the last administrator), Forbidden.
    """
    with _administration("user.deactivate", by, str(user_id)):
        with transaction.atomic():
            user = _locked(user_id)
            if not user.is_active:
                return user
            if role_of(user) == ADMINISTRATOR:
                _require_another_administrator(user)
            user.is_active = False
            user.save(update_fields=["is_active"])
            LoginLink.objects.filter(user=user).delete()
            ended = sessions_end(user)
            tokens_revoke(user, by=by, reason="user deactivated")
            _record("user.deactivate", by, user, sessions=ended)
        return user


def user_activate(*, user_id: int, by: Principal | None = None) -> User:
    """Activate a deactivated user with the previous role. Raises NotFound, Forbidden."""
    with _administration("user.activate", by, str(user_id)):
        with transaction.atomic():
            user = _locked(user_id)
            user.is_active = True
            user.save(update_fields=["is_active"])
            _record("user.activate", by, user)
        return user


def user_reset(*, user_id: int, by: Principal | None = None) -> tuple[User, str]:
    """Remove the user's password and end all sessions. Returns the user and the URL of a one-time link to set a new
    password.

    Raises NotFound, Conflict (not active, or of an identity provider), Forbidden.
    """
    with _administration("user.reset", by, str(user_id)):
        with transaction.atomic():
            user = _locked(user_id)
            if not user.is_active:
                raise Conflict("The user is deactivated; activate them first.")
            if hasattr(user, "external_identity"):
                raise Conflict("This user logs in at the identity provider and has no password in this domain.")
            user.set_unusable_password()
            user.save(update_fields=["password"])
            ended = sessions_end(user)
            _record("user.reset", by, user, sessions=ended)
        return user, login_url_create(user, valid_s=INVITATION_S)


def sessions_end_all(*, user: User, by: Principal | None = None, keep: str | None = None) -> int:
    """End the user's sessions everywhere, but the one of key `keep`. Returns how many there were."""
    with transaction.atomic():
        ended = sessions_end(user, keep=keep)
        _record("user.logout-everywhere", by, user, sessions=ended)
    return ended


def password_changed(*, user: User, by: Principal, keep: str | None) -> None:
    """The user has another password: sessions other than `keep` end, and an open login link dies."""
    with transaction.atomic():
        LoginLink.objects.filter(user=user).delete()
        ended = sessions_end(user, keep=keep)
        _record("user.password", by, user, sessions=ended)


def users_listed() -> list[User]:
    """Return all users, active ones first, by name."""
    return list(
        User.objects.select_related("external_identity")
        .prefetch_related("groups")
        .order_by("-is_active", "username")[:USERS_MAX]
    )


def user_named(name: str) -> User | None:
    """A user by name, deactivated ones too; None if there is none."""
    return User.objects.filter(username=name).first()


def user_get(user_id: int) -> User:
    """A user. Raises NotFound."""
    user = User.objects.select_related("external_identity").filter(pk=user_id).first()
    if user is None:
        raise NotFound("There is no such user.")
    return user


def may_administer_users(principal: Principal | None) -> bool:
    """Return whether the principal is an administrator with an unnarrowed credential: managing users means any role."""
    return principal is None or (principal.local and principal.admin and not principal.narrowed)


class _administration:  # noqa: N801 - used as a statement
    """Context of an administrator's act: checks the right, and records refusals."""

    def __init__(self, action: str, by: Principal | None, on: str) -> None:
        self._action, self._by, self._on = action, by, on

    def __enter__(self) -> None:
        if not may_administer_users(self._by):
            error = Forbidden("Only an administrator of this domain manages users.")
            self._record(error)
            raise error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ApplicationError):
            self._record(error)

    def _record(self, error: ApplicationError) -> None:
        audit_record(action=self._action, outcome=REFUSED, principal=self._by, on=("user", self._on), error=error)


def _locked(user_id: int) -> User:
    """The user, under the domain's lock: two administrators cannot remove each other at once."""
    lock_domain()
    user = User.objects.select_for_update().filter(pk=user_id).first()
    if user is None:
        raise NotFound("There is no such user.")
    return user


def _require_another_administrator(user: User) -> None:
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if not others.exists():
        raise Conflict(
            f"{user.get_username()} is the last administrator who can log in; appoint another administrator first."
        )


def _require_role(role: str) -> None:
    if role not in (*ROLES, NO_ROLE):
        raise InvalidRequest(f"A role is {', '.join(ROLES)}, or empty.")


def weaker(role: str, before: str) -> bool:
    """Return whether `role` has fewer rights than `before`."""
    order = (NO_ROLE, *ROLES)
    return order.index(role) < order.index(before)


def _record(action: str, by: Principal | None, user: User, *, now: datetime | None = None, **details: Any) -> None:
    audit_record(
        action=action,
        principal=by,
        on=("user", user.get_username()),
        details=details,
        now=now or timezone.now(),
    )


def tokens_revoke(user: User, *, by: Principal | None, reason: str) -> None:
    """Revoke all tokens issued so far in the user's name; connections that use them, and the user's console
    connections, end.

    `by` is an administrator; None for the domain itself. Tokens issued later are valid: a user who is activated again
    needs no lifting of the revocation.
    """
    issuer = config().domain
    domain = Principal(issuer, DOMAIN, True, float("inf"), {"iss": issuer, "sub": DOMAIN, "admin": True})
    revocation_create(principal=by or domain, kind="subject", value=user.get_username(), reason=reason)
