"""Sessions of the console: begun at each login, shown to their user, ended one by one or all together.

A session ends when it was not used for HERALD_CONSOLE_SESSION_S, and after SESSION_S_MAX however it is used. Its row
here names the user; Django's own row, which authenticates the browser, is deleted to end it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import datetime, timedelta

from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from eventing.client_address import request_address
from portal.accounts.models import ADDRESS_CHARS_MAX, AGENT_CHARS_MAX, ConsoleSession

SESSION_S_MAX = 14 * 86_400
"""However often it is used, a session ends after this: a copied cookie is not for ever."""

SEEN_EVERY_S = 60
"""A session in use is written down as seen this often; each time is a write."""

SESSIONS_PER_USER_MAX = 50
"""Beyond it the ones longest unseen end."""

SESSIONS_AT_ONCE = 500
"""Most sessions of one query."""

STARTED = "started_at"
SEEN = "seen_at"
UNKNOWN = "unknown"  # address of a client of which the server reports none
PREVIOUS = "previous_login"
"""Session key: when this user had logged in before, RFC 3339; missing at the first login."""
BY_LINK = "logged_in_by_link"
"""Session key: this session began with a link, so a new password may be set without the old one."""


def log_in(request: HttpRequest, user: User, *, backend: str, by_link: bool = False) -> None:
    """Begin a session of `user` under a new key, so that one planted before is worth nothing."""
    before = user.last_login  # what `login` exchanges
    login(request, user, backend=backend)
    if before is None:
        request.session.pop(PREVIOUS, None)
    else:
        request.session[PREVIOUS] = before.isoformat()
    request.session.set_expiry(None)
    if by_link:
        request.session[BY_LINK] = True
    else:
        request.session.pop(BY_LINK, None)
    _forget_expired(timezone.now())
    session_note(request, user)


def session_note(request: HttpRequest, user: User) -> None:
    """Record that the session belongs to `user` and is in use; called for each request, it writes every
    SEEN_EVERY_S."""
    now = timezone.now()
    moment = int(now.timestamp())
    if STARTED in request.session and moment - request.session.get(SEEN, 0) < SEEN_EVERY_S:
        return
    begun = int(request.session.setdefault(STARTED, moment))
    request.session[SEEN] = moment  # a change: Django saves the session, and its end moves on
    key = request.session.session_key
    if key is None:
        request.session.save()
        key = str(request.session.session_key)
    ConsoleSession.objects.update_or_create(
        session_key=key,
        defaults={"user": user, "seen_at": now, "address": address_of(request)[:ADDRESS_CHARS_MAX]},
        create_defaults={
            "user": user,
            "started_at": datetime.fromtimestamp(begun, tz=now.tzinfo),
            "seen_at": now,
            "address": address_of(request)[:ADDRESS_CHARS_MAX],
            "agent": request.headers.get("User-Agent", "")[:AGENT_CHARS_MAX].replace("\x00", ""),
        },
    )
    extra = ConsoleSession.objects.filter(user=user).order_by("-seen_at").values_list("session_key", flat=True)
    _end(list(extra[SESSIONS_PER_USER_MAX : SESSIONS_PER_USER_MAX + SESSIONS_AT_ONCE]))


def session_ends_at(session: SessionBase) -> float:
    """Return the Unix time in seconds at which the session ends, however often it is used."""
    return float(session.get(STARTED, math.inf)) + SESSION_S_MAX


def sessions_alive(keys: Collection[str]) -> set[str]:
    """Return the keys of sessions that have neither been ended nor expired by disuse."""
    listed, now = list(keys), timezone.now()
    alive: set[str] = set()
    for first in range(0, len(listed), SESSIONS_AT_ONCE):
        batch = listed[first : first + SESSIONS_AT_ONCE]
        rows = Session.objects.filter(session_key__in=batch, expire_date__gt=now)
        alive.update(rows.values_list("session_key", flat=True))
    return alive


def session_rekeyed(request: HttpRequest, before: str | None) -> None:
    """Move a session's row to its new key, which Django assigns after a new password."""
    ConsoleSession.objects.filter(session_key=before).update(session_key=request.session.session_key)


def sessions_of(user: User) -> list[ConsoleSession]:
    """Return the user's open sessions, most recently used first."""
    rows = list(ConsoleSession.objects.filter(user=user).order_by("-seen_at")[:SESSIONS_PER_USER_MAX])
    alive = sessions_alive([row.session_key for row in rows])
    return [row for row in rows if row.session_key in alive]


def sessions_end(user: User, *, keep: str | None = None) -> int:
    """End the user's sessions but the one of key `keep`. Returns how many were open."""
    rows = ConsoleSession.objects.filter(user=user).exclude(session_key=keep or "")
    return _end(list(rows.values_list("session_key", flat=True)))


def _end(keys: list[str]) -> int:
    if not keys:
        return 0
    ended, _ = Session.objects.filter(session_key__in=keys).delete()
    ConsoleSession.objects.filter(session_key__in=keys).delete()
    return ended


def _forget_expired(now: datetime) -> None:
    """Remove a batch of sessions that ended by time: nobody else does, and each login may leave one."""
    keys = list(Session.objects.filter(expire_date__lte=now).values_list("session_key", flat=True)[:SESSIONS_AT_ONCE])
    _end(keys)
    ConsoleSession.objects.filter(seen_at__lte=now - timedelta(seconds=SESSION_S_MAX)).delete()


def address_of(request: HttpRequest) -> str:
    """Return the client's address; behind trusted proxies the address that they report. UNKNOWN if the server reports
    none."""
    return request_address(request) or UNKNOWN
