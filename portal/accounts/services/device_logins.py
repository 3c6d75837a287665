"""Logins of programs that have no browser (RFC 8628): a program shows a code, a person approves it in the console, and the
program gets a token of that person.

A request lives for DEVICE_S. Only the hash of the device code, which the program keeps, is stored; the user code, which
people compare, is short and is accepted from logged-in users only. Requests, polls and wrong codes are throttled by
address, and at most DEVICES_MAX requests are open.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from eventing.access.selectors.console_users import role_of, user_principal
from eventing.access.services.tokens import IssuedToken, token_create
from eventing.audit.services import REFUSED, audit_record
from eventing.core.errors import InvalidRequest, NotFound, Unavailable
from eventing.core.principals import Principal
from eventing.core.roles import ADMINISTRATOR, scopes_of
from portal.accounts.models import ADDRESS_CHARS_MAX, CLIENT_CHARS_MAX, DeviceLogin

DEVICE_S = 600
"""Seconds for which a request can be approved: for a person who first has to log in."""

INTERVAL_S = 2
"""Seconds between two polls of one program; an earlier poll is answered `slow_down`."""

DEVICES_MAX = 1000
"""Most open requests of the domain; further ones are refused until some expire."""

DEVICE_CODE_BYTES = 32
DEVICE_CODE_CHARS_MAX = 64
LEASES_S = (3600, 12 * 3600, 7 * 86_400, 30 * 86_400)
"""Lifetimes of a token among which the approver chooses; the domain may shorten one."""

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # RFC 8628, section 6.1: no vowels, so no words
_LETTERS_COUNT = 8  # 20^8 codes, of which DEVICES_MAX are open: a guess hits one in 25 million


class PollAnswer(StrEnum):
    """Answers to a poll, by their names in RFC 8628, section 3.5."""

    PENDING = "authorization_pending"
    SLOW_DOWN = "slow_down"
    DENIED = "access_denied"
    EXPIRED = "expired_token"


@dataclass(frozen=True, slots=True)
class DeviceCodes:
    """A new request: the secret of the program, and the code for people."""

    device_code: str
    user_code: str


def device_login_begin(*, client: str, address: str, now: datetime | None = None) -> DeviceCodes:
    """Open a request.

    Args:
        client: name that the program states, for people; it proves nothing.

    Raises Unavailable while DEVICES_MAX are open.
    """
    now = now or timezone.now()
    codes = DeviceCodes(
        secrets.token_urlsafe(DEVICE_CODE_BYTES), "".join(secrets.choice(_LETTERS) for _ in range(_LETTERS_COUNT))
    )
    with transaction.atomic():
        DeviceLogin.objects.filter(expires_at__lte=now).delete()
        if DeviceLogin.objects.count() >= DEVICES_MAX:
            raise Unavailable("Too many logins wait for an approval. Try again in some minutes.", retry_after_s=60)
        DeviceLogin.objects.create(
            device_hash=_hash(codes.device_code),
            user_code=codes.user_code,
            client="".join(c if c.isprintable() else " " for c in client)[:CLIENT_CHARS_MAX],
            address=address[:ADDRESS_CHARS_MAX],
            expires_at=now + timedelta(seconds=DEVICE_S),
        )
    return codes


def user_code_shown(code: str) -> str:
    """Return a user code as people read it: BCDF-GHJK."""
    return f"{code[:4]}-{code[4:]}"


def device_login_open(code: str, *, now: datetime | None = None) -> DeviceLogin | None:
    """Return the undecided request with this user code, however it is written; None if there is none."""
    letters = "".join(c for c in code.upper()[:64] if c in _LETTERS)
    found = DeviceLogin.objects.filter(user_code=letters, user=None, expires_at__gt=now or timezone.now())
    return found.first() if len(letters) == _LETTERS_COUNT else None


def device_login_decide(
    *, user: User, code: str, approve: bool, lease_s: int, with_role: bool, now: datetime | None = None
) -> DeviceLogin:
    """Approve or refuse a request as `user`, once.

    Args:
        lease_s: of LEASES_S.
        with_role: whether the token has the rights of the user's role; else policies decide.

    Raises NotFound, InvalidRequest.
    """
    if lease_s not in LEASES_S:
        raise InvalidRequest("Choose one of the lifetimes.")
    with transaction.atomic():
        found = device_login_open(code, now=now)
        decided = found is not None and DeviceLogin.objects.filter(pk=found.pk, user=None).update(
            user=user, approved=approve, lease_s=lease_s, with_role=with_role
        )
        if found is None or not decided:
            raise NotFound("There is no open login with this code. It may have expired, or was decided already.")
        audit_record(
            action="login.device",
            outcome="ok" if approve else REFUSED,
            principal=_principal(user, now or timezone.now()),
            reason="" if approve else "The user refused it.",
            details={"client": found.client, "address": found.address},
        )
    return found


def device_login_poll(device_code: str, *, now: datetime | None = None) -> IssuedToken | PollAnswer:
    """Return the token of an approved request, which ends the request; else the answer for the program."""
    now = now or timezone.now()
    if not 0 < len(device_code) <= DEVICE_CODE_CHARS_MAX:
        return PollAnswer.EXPIRED
    with transaction.atomic():
        rows = DeviceLogin.objects.select_for_update(of=("self",)).select_related("user")
        found = rows.filter(device_hash=_hash(device_code), expires_at__gt=now).first()
        if found is None:
            return PollAnswer.EXPIRED
        if found.user is None:
            early = found.polled_at is not None and now < found.polled_at + timedelta(seconds=INTERVAL_S)
            DeviceLogin.objects.filter(pk=found.pk).update(polled_at=now)
            return PollAnswer.SLOW_DOWN if early else PollAnswer.PENDING
        taken, _ = DeviceLogin.objects.filter(pk=found.pk).delete()
        if not taken:
            return PollAnswer.EXPIRED
        if not found.approved or not found.user.is_active:
            return PollAnswer.DENIED
        return _token(found.user, found, now)


def _token(user: User, request: DeviceLogin, now: datetime) -> IssuedToken:
    role = role_of(user) if request.with_role else ""
    scopes = None if role == ADMINISTRATOR else scopes_of(role)
    return token_create(
        subject=user.get_username(),
        admin=bool(role),
        lease_s=request.lease_s,
        scopes=None if scopes is None else [{"rps": one.rps, "ops": sorted(one.operations)} for one in scopes],
        principal=_principal(user, now),
        now=now,
    )


def _principal(user: User, now: datetime) -> Principal:
    return user_principal(user, expires_at=now.timestamp() + DEVICE_S)


def _hash(code: str) -> str:
    """Return the hash of a device code, which is random and long: a plain one reveals nothing."""
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
