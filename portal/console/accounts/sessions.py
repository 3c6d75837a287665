"""Sessions of the console: begun by every way to log in, seen by their user, ended one and all.

A session ends when it was not used for HERALD_CONSOLE_SESSION_S, and after SESSION_S_MAX however it is used. Its row here
says whose it is; Django's own row, which lets the browser in, is deleted to end it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from portal.console.accounts.addresses import address_of
from portal.models import ADDRESS_CHARS_MAX, AGENT_CHARS_MAX, ConsoleSession

SESSION_S_MAX = 14 * 86_400
"""However often it is used, a session ends after this: a copied cookie is not for ever."""

SEEN_EVERY_S = 60
"""A session in use is written down as seen this often; each time is a write."""

SESSIONS_PER_USER_MAX = 50
"""Beyond it the ones longest unseen end."""

EXPIRED_BATCH = 500
STARTED = "started_at"
SEEN = "seen_at"
BY_LINK = "logged_in_by_link"
"""Session key: this session began with a link, so a new password may be set without the old one."""


def log_in(request: HttpRequest, user: User, *, backend: str, by_link: bool = False) -> None:
    """Begin a session of `user` under a new key, so that one planted before is worth nothing."""
    login(request, user, backend=backend)
    request.session.set_expiry(None)
    if by_link:
        request.session[BY_LINK] = True
    else:
        request.session.pop(BY_LINK, None)
    _forget_expired(timezone.now())
    session_note(request, user)


def session_note(request: HttpRequest, user: User) -> None:
    """Write down that the session is `user`'s and in use now; called for each request, it writes every SEEN_EVERY_S."""
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
    _end(list(extra[SESSIONS_PER_USER_MAX : SESSIONS_PER_USER_MAX + EXPIRED_BATCH]))


def session_is_over(request: HttpRequest) -> bool:
    """Whether the session has lasted SESSION_S_MAX."""
    begun = request.session.get(STARTED)
    return begun is not None and timezone.now().timestamp() - begun > SESSION_S_MAX


def session_rekeyed(request: HttpRequest, before: str | None) -> None:
    """Django gave the session another key (a new password does): its row follows."""
    ConsoleSession.objects.filter(session_key=before).update(session_key=request.session.session_key)


def sessions_of(user: User) -> list[ConsoleSession]:
    """The user's open sessions, the latest used first."""
    rows = list(ConsoleSession.objects.filter(user=user).order_by("-seen_at")[:SESSIONS_PER_USER_MAX])
    now = timezone.now()
    keys = [row.session_key for row in rows]
    alive = set(Session.objects.filter(session_key__in=keys, expire_date__gt=now).values_list("session_key", flat=True))
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
    keys = list(Session.objects.filter(expire_date__lte=now).values_list("session_key", flat=True)[:EXPIRED_BATCH])
    _end(keys)
    ConsoleSession.objects.filter(seen_at__lte=now - timedelta(seconds=SESSION_S_MAX)).delete()
