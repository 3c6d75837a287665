"""One-time links that log a user in without a password: the first administrator, an invitation, a forgotten password.

A link is valid for LOGIN_LINK_S (an invitation for INVITATION_S), works once, and replaces the user's earlier link. Its
address is this domain's own base URL, never the Host header of a request, so that no request can create a link to
another site. A person who can read the terminal or run commands on the data folder is the operator already.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from eventing.conf import config
from eventing.sql.locking import lock_domain
from portal.accounts.models import LoginLink

ADMINISTRATOR_NAME = "admin"

LOGIN_LINK_S = 3600
"""Seconds for which a login link is valid. A longer time helps an attacker who finds the link in a terminal's
history."""

INVITATION_S = 24 * 3600
"""Seconds for which a link is valid that an administrator hands to another person, who may be asleep."""

TOKEN_BYTES = 32
TOKEN_CHARS_MAX = 64
"""A longer text is no token of ours and is not even hashed."""


def ensure_administrator() -> User | None:
    """The first active administrator; made when there is no user at all.

    None when there are users but no active administrator: a restart does not undo a deactivation.
    """
    users = get_user_model().objects
    with transaction.atomic():
        lock_domain()  # hosts of a domain may start at once
        administrator = users.filter(is_superuser=True, is_active=True).order_by("pk").first()
        if administrator is None and not users.exists():
            administrator = users.create_superuser(ADMINISTRATOR_NAME, password=None)
    return administrator


def login_link_create(user: User, *, valid_s: int = LOGIN_LINK_S) -> str:
    """A path `/login/once/TOKEN` that logs `user` in, once, within `valid_s` seconds. Ends the user's earlier link."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    now = timezone.now()
    with transaction.atomic():
        LoginLink.objects.filter(expires_at__lte=now).delete()
        LoginLink.objects.update_or_create(
            user=user, defaults={"token_hash": _hash(token), "expires_at": now + timedelta(seconds=valid_s)}
        )
    return f"/login/once/{token}"


def login_url_create(user: User, *, valid_s: int = LOGIN_LINK_S) -> str:
    """Create a one-time link as `login_link_create` does, and return its absolute URL."""
    return config().base_url + login_link_create(user, valid_s=valid_s)


def login_link_redeem(token: str) -> User | None:
    """Redeem a link and return its user. None when the link is unknown, used or expired, or the user is inactive."""
    if not 0 < len(token) <= TOKEN_CHARS_MAX:
        return None
    with transaction.atomic():
        link = LoginLink.objects.select_related("user").filter(token_hash=_hash(token)).first()
        if link is None:
            return None
        spent, _ = LoginLink.objects.filter(pk=link.pk, token_hash=link.token_hash).delete()
        if not spent or link.expires_at <= timezone.now() or not link.user.is_active:
            return None
        return link.user


def _hash(token: str) -> str:
    """Return the hash of a token. Tokens are random and long, so that a plain hash reveals nothing."""
    return hashlib.sha256(token.encode()).hexdigest()
