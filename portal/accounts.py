"""Who may use the console: the first administrator, and one-time links to log in without a password.

There are no default passwords. The first start makes the administrator `admin` without a usable password and prints a
link; `manage.py login_link` makes another at any time. A link is valid for LOGIN_LINK_S, works once, and replaces the
user's earlier link. Whoever can read the terminal or run commands on the data folder is the operator already.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from portal.models import LoginLink

ADMINISTRATOR_NAME = "admin"

LOGIN_LINK_S = 3600
"""How long a login link is valid. Longer leaves more time to whoever finds it in a scrolled-back terminal."""

TOKEN_BYTES = 32
TOKEN_CHARS_MAX = 64
"""A longer text is no token of ours and is not even hashed."""


def ensure_administrator() -> User | None:
    """The first active administrator; made when there is no user at all.

    None when there are users but no active administrator: somebody decided that, and a restart does not undo it.
    """
    users = get_user_model().objects
    with transaction.atomic():
        administrator = users.filter(is_superuser=True, is_active=True).order_by("pk").first()
        if administrator is None and not users.exists():
            administrator = users.create_superuser(ADMINISTRATOR_NAME, password=None)
    return administrator


def login_link_create(user: User) -> str:
    """A path `/login/once/TOKEN` that logs `user` in, once, within LOGIN_LINK_S. Ends the user's earlier link."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    now = timezone.now()
    with transaction.atomic():
        LoginLink.objects.filter(expires_at__lte=now).delete()
        LoginLink.objects.update_or_create(
            user=user, defaults={"token_hash": _hash(token), "expires_at": now + timedelta(seconds=LOGIN_LINK_S)}
        )
    return f"/login/once/{token}"


def login_link_redeem(token: str) -> User | None:
    """The user whom the link logs in; the link is spent then. None when it is unknown, spent, late, or the user inactive."""
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
    """The tokens are random and long, so a plain hash keeps them; nothing could be guessed from it."""
    return hashlib.sha256(token.encode()).hexdigest()
