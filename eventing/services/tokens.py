"""The domain's keys and the tokens they sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from joserfc.jwk import OKPKey

from eventing.conf import config
from eventing.core import leases, tokens
from eventing.core.errors import InvalidRequest
from eventing.core.policy import OPERATIONS
from eventing.models import DomainKey
from eventing.selectors.keys import signing_key
from eventing.services.database import lock_domain
from eventing.services.random_ids import random_id


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token and what was granted: `granted_s` seconds, until `expires_at`."""

    token: str
    id: str
    subject: str
    admin: bool
    operations: tuple[str, ...] | None
    granted_s: int
    expires_at: datetime


def ensure_domain_key(*, now: datetime | None = None) -> str:
    """The `kid` of the key that signs now; the first key is made if there is none. Safe in several processes at once."""
    now = now or timezone.now()
    existing = signing_key(now)
    if existing is not None:
        return str(existing["kid"])
    with transaction.atomic():
        lock_domain()
        existing = signing_key(now)
        if existing is not None:
            return str(existing["kid"])
        key = OKPKey.generate_key("Ed25519")
        made = DomainKey.objects.create(
            kid=key.thumbprint(),
            private_jwk=key.as_dict(private=True),
            public_jwk=key.as_dict(private=False),
            not_before=now,
            created_at=now,
        )
    return made.kid


def token_create(
    *,
    subject: str,
    admin: bool = False,
    lease_s: int | None = None,
    operations: Sequence[str] | None = None,
    now: datetime | None = None,
) -> IssuedToken:
    """Sign a token of this domain for itself.

    Args:
        subject: who it speaks for, 1 to 255 characters.
        admin: whether it administers the domain.
        lease_s: how long it lasts, seconds; None for the default lease; longer than the longest is shortened.
        operations: what it is narrowed to (of core.policy.OPERATIONS); None for no narrowing.

    Raises InvalidRequest.
    """
    now = now or timezone.now()
    if not 1 <= len(subject) <= tokens.SUBJECT_CHARS_MAX or "\0" in subject:
        raise InvalidRequest(f"subject is a text of 1 to {tokens.SUBJECT_CHARS_MAX} characters.")
    if operations is not None and not set(operations) <= set(OPERATIONS):
        raise InvalidRequest(f"ops is a list of {', '.join(OPERATIONS)}.")
    granted = leases.grant(lease_s, now, default_s=config().lease_s_default, longest_s=config().lease_s_max)
    ensure_domain_key(now=now)
    key = signing_key(now)
    if key is None:  # only if it was retired in this very moment
        raise InvalidRequest("The domain has no valid key; repeat.")
    issued_at = int(now.timestamp())
    operations = None if operations is None else tuple(sorted(set(operations)))
    claims: dict[str, Any] = {
        "iss": config().domain,
        "aud": config().domain,
        "sub": subject,
        "iat": issued_at,
        "exp": issued_at + granted.granted_s,
        "jti": random_id(),
        **({"admin": True} if admin else {}),
        **({"ops": list(operations)} if operations is not None else {}),
    }
    return IssuedToken(
        tokens.sign(claims, key),
        claims["jti"],
        subject,
        admin,
        operations,
        granted.granted_s,
        datetime.fromtimestamp(claims["exp"], tz=now.tzinfo),
    )
