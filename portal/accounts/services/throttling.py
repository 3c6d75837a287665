"""Throttling of logins: free failures, and waits after further ones.

Three counts, each with its own limits, so that a stranger can lock out only themself:

- of an account from an address: PAIR fails, then waits that double. This is the limit for a person who mistypes. - of
an address, whatever the account, one-time links included: ADDRESS. - of an account, from any address: ACCOUNT, and
never a lock-out: one try each ACCOUNT_PACE_S. Addresses that the account has logged in from are not counted there, so
guessing by others does not delay its owner.

An attempt is counted as failed before the password is looked at, in one transaction, and taken back when it was right:
a hundred at once are a hundred attempts. Failures are forgiven with time, the owner of an account most slowly: see
Patience. What is kept is a keyed hash of names and addresses. A one-time link from the terminal gets in meanwhile.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from portal.accounts.models import LoginAttempts

FORGOTTEN_S = 7 * 24 * 3600
"""A count is removed when nothing was added for so long; by then all is forgiven."""

KNOWN_S = 90 * 24 * 3600
"""An address that the account logged in from is known for so long."""

ROWS_MAX = 100_000
"""Most counts kept. Beyond it the ones longest without a failure are forgotten: a stranger may fill the table, not the disk."""

IPV6_SITE_BITS = 64
"""One subscriber has this many bits of addresses to choose from (RFC 6177), so they count as one."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Number of free failures, first wait and longest wait in seconds; each further failure doubles the wait.

    One failure is forgiven in `forgiven_s` seconds without another: the rate of guessing of an attacker who waits.
    """

    free: int
    first_s: int
    longest_s: int
    forgiven_s: int

    def wait_s(self, failures: int) -> int:
        """Return the seconds to wait after so many failures; 0 while failures are free."""
        over = failures - self.free
        return 0 if over < 0 else min(self.first_s << min(over, 16), self.longest_s)


PAIR = Patience(free=5, first_s=30, longest_s=3600, forgiven_s=3600)
ADDRESS = Patience(free=30, first_s=30, longest_s=3600, forgiven_s=600)
"""Wider than a pair: an office may have one address."""

ACCOUNT = Patience(free=50, first_s=10, longest_s=10, forgiven_s=60)
"""All addresses together that the account is not known from: at most 8,640 guesses a day, spread over any number of machines."""

PROVIDER = Patience(free=60, first_s=30, longest_s=3600, forgiven_s=60)
"""Logins begun at the identity provider from an address: each creates a row for its state, and most are completed."""

DEVICE = Patience(free=20, first_s=10, longest_s=600, forgiven_s=30)
"""Logins of programs begun from an address, and codes typed that are none: each of the first creates a row."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A counted attempt; call `succeeded` when it succeeds. With `wait_s` above 0 the attempt is refused for so many
    seconds."""

    wait_s: int
    _pair: str = ""
    _address: str = ""
    _account: str = ""

    def succeeded(self) -> None:
        """Record success: reset the pair and mark it as known, and take back the failure counted in advance for the
        others."""
        now = timezone.now()
        with transaction.atomic():
            LoginAttempts.objects.filter(key=self._pair).update(failures=0, locked_until=None, succeeded_at=now)
            for key in (self._address, self._account):  # in the order in which an attempt locks them
                LoginAttempts.objects.filter(key=key, failures__gt=0).update(
                    failures=F("failures") - 1, locked_until=None
                )


def attempt_login(*, account: str, address: str, now: datetime | None = None) -> Attempt:
    """Count an attempt at `account` from `address` in advance, or refuse it."""
    now = now or timezone.now()
    name = account.strip().lower()
    pair, place, whole = _key("pair", name, _site(address)), _key("address", _site(address)), _key("account", name)
    with transaction.atomic():
        own = _row(pair, PAIR, now)
        known = own.succeeded_at is not None and own.succeeded_at > now - timedelta(seconds=KNOWN_S)
        counts = [(own, PAIR), (_row(place, ADDRESS, now), ADDRESS)]
        counts += [] if known else [(_row(whole, ACCOUNT, now), ACCOUNT)]
        wait_s = max(_left_s(row, now) for row, _ in counts)
        if wait_s == 0:
            for row, patience in counts:
                _count(row, patience, now)
    return Attempt(wait_s, pair, place, "" if known else whole)


def attempt_link(*, address: str, now: datetime | None = None) -> Attempt:
    """Count the use of a one-time link from `address` in advance, or refuse it. Links cannot be guessed; the limit
    bounds the cost of attempts."""
    return _attempt_at(_key("address", _site(address)), ADDRESS, now)


def attempt_provider(*, address: str, now: datetime | None = None) -> Attempt:
    """Count a login begun at the identity provider from `address`, or refuse it."""
    return _attempt_at(_key("provider", _site(address)), PROVIDER, now)


def attempt_device(*, address: str, now: datetime | None = None) -> Attempt:
    """Count a login of a program begun from `address`, or a wrong code typed there, or refuse it."""
    return _attempt_at(_key("device", _site(address)), DEVICE, now)


def provider_succeeded(*, address: str) -> None:
    """Forgive a login at the identity provider that succeeded."""
    Attempt(0, _address=_key("provider", _site(address))).succeeded()


def _attempt_at(key: str, patience: Patience, now: datetime | None) -> Attempt:
    now = now or timezone.now()
    with transaction.atomic():
        row = _row(key, patience, now)
        wait_s = _left_s(row, now)
        if wait_s == 0:
            _count(row, patience, now)
    return Attempt(wait_s, _address=key)


def _row(key: str, patience: Patience, now: datetime) -> LoginAttempts:
    """Return the count under `key`, locked, created if missing, reduced by the failures forgiven since."""
    row, made = LoginAttempts.objects.select_for_update().get_or_create(key=key, defaults={"failed_at": now})
    if made:
        _forget(now)
    passed_s = max(0.0, (now - row.failed_at).total_seconds())  # who waited for the lock may have an earlier `now`
    row.failures = max(0, row.failures - int(passed_s // patience.forgiven_s))
    return row


def _count(row: LoginAttempts, patience: Patience, now: datetime) -> None:
    row.failures += 1
    wait_s = patience.wait_s(row.failures)
    row.failed_at = now
    row.locked_until = now + timedelta(seconds=wait_s) if wait_s else None
    row.save(update_fields=["failures", "failed_at", "locked_until"])


def _left_s(row: LoginAttempts, now: datetime) -> int:
    """Whole seconds until the next attempt is allowed."""
    if row.locked_until is None or row.locked_until <= now:
        return 0
    return int((row.locked_until - now).total_seconds()) + 1


def _forget(now: datetime) -> None:
    """Remove expired counts; beyond ROWS_MAX also the oldest of the others."""
    old = now - timedelta(seconds=FORGOTTEN_S)
    LoginAttempts.objects.filter(
        Q(succeeded_at=None) | Q(succeeded_at__lte=now - timedelta(seconds=KNOWN_S)), failed_at__lte=old
    ).delete()
    over = LoginAttempts.objects.count() - ROWS_MAX
    if over > 0:
        oldest = list(LoginAttempts.objects.order_by("failed_at").values_list("pk", flat=True)[: min(over, 500)])
        LoginAttempts.objects.filter(pk__in=oldest).delete()


def _site(address: str) -> str:
    """Return the unit of counting: the address, or the network of one IPv6 subscriber."""
    try:
        ip = ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip, IPV6_SITE_BITS), strict=False))
    return str(ip)


def _key(kind: str, *parts: str) -> str:
    """Keyed, so that a copy of the table cannot be searched for a password that somebody typed as a name."""
    text = "\x00".join((kind, *parts)).encode("utf-8", "surrogatepass")
    return hmac.digest(settings.SECRET_KEY.encode(), b"herald login attempts\x00" + text, "sha256").hex()
