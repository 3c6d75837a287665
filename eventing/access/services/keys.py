"""The domain's signing keys: the first, rotation without downtime, and retirement in an emergency.

The life of a key: made, and published at /.well-known/jwks.json from that moment -> it signs from `not_before`, by when
every verifier has read the publication anew -> a rotation makes its successor; it goes on signing until that one begins,
and verifies until the longest token it could sign has ended (`not_after`) -> retired. An emergency cuts that short: the
key is revoked, which ends every token and session that it signed, and another one signs at once.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from joserfc.jwk import OKPKey
from redis.exceptions import RedisError

from eventing.access.models import DomainKey, Revocation
from eventing.access.rules.tokens import SKEW_S
from eventing.access.selectors.keys import key_get, keys_running, signing_key
from eventing.access.services.revocations import revocation_create
from eventing.audit.services import audit_record
from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, QuotaExceeded
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.sql.locking import lock_domain

SIGNS_AFTER_S = (
    180  # readers keep the published keys for 60 s (peering/api/well_known.py); three times that leaves room
)
SIGNS_AFTER_S_MAX = 86_400
KEYS_MAX = 32  # that have not ended; other domains take at most 100 keys of an issuer
log = logging.getLogger(__name__)


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
        made = _make(now, now)
        audit_record(action="key.create", on=("key", made.kid), now=now)
    return made.kid


def key_rotate(*, principal: Principal, signs_after_s: int = SIGNS_AFTER_S, now: datetime | None = None) -> DomainKey:
    """Make the key that signs next, and publish it.

    Args:
        principal: an administrator.
        signs_after_s: seconds from now, 0 to SIGNS_AFTER_S_MAX. With less than the default, tokens may be refused for
            a moment by who verifies them elsewhere and has not seen the new key.

    Returns the new key. Raises Forbidden, InvalidRequest, Conflict (a rotation is under way), QuotaExceeded.
    """
    now = now or timezone.now()
    require_keeper(principal)
    if not 0 <= signs_after_s <= SIGNS_AFTER_S_MAX:
        raise InvalidRequest(f"signs_after_s is from 0 to {SIGNS_AFTER_S_MAX} seconds.")
    with change(now, patient=False) as outbox:
        lock_domain()
        running = keys_running(now, lock=True)
        pending = next((key for key in running if key.not_before > now), None)
        if pending is not None:
            raise Conflict(
                f"A rotation is under way: the key {pending.kid} signs from {pending.not_before.isoformat()}. Retire it first.",
                kid=pending.kid,
            )
        if len(running) >= KEYS_MAX:
            raise QuotaExceeded(f"The domain has {KEYS_MAX} keys that still verify. Retire one.", limit=KEYS_MAX)
        begins_at = now + timedelta(seconds=signs_after_s)
        made = _make(now, begins_at)
        ends_at = begins_at + timedelta(seconds=config().lease_s_max + SKEW_S)
        for key in running:
            if key.not_after is None:
                key.not_after = ends_at
                key.save(update_fields=["not_after"])
        transaction.on_commit(_announce, robust=True)
        outbox.event(events.KEY_ROTATED, DOMAIN_ADMIN, {"key": key_data(made), "by": principal.identity})
        outbox.act("key.rotate", principal, "key", made.kid, signs_from=begins_at.isoformat())
    return made


def key_retire(*, principal: Principal, kid: str, reason: str = "", now: datetime | None = None) -> DomainKey:
    """End a key now: no token that it signed is good any more, and sessions of such tokens are closed.

    If it was the one that signs, the one published to follow does from now on, else a new one. Repeating it changes nothing.

    Returns the key. Raises Forbidden, NotFound, InvalidRequest, QuotaExceeded (too many revocations).
    """
    now = now or timezone.now()
    require_keeper(principal)
    with change(now, patient=False) as outbox:
        lock_domain()
        key = key_get(kid)
        if key is None:
            raise NotFound("This domain has no key with this kid.")
        if key.not_before > now:  # its window must not open any more
            key.not_before = now - timedelta(microseconds=1)
            key.save(update_fields=["not_before"])
        revocation_create(principal=principal, kind=Revocation.Kind.KEY, value=kid, reason=reason, now=now)
        left = [key for key in keys_running(now, lock=True) if key.not_after is None]
        if not left:
            _make(now, now)
        elif all(key.not_before > now for key in left):
            for successor in left:
                successor.not_before = now
                successor.save(update_fields=["not_before"])
        transaction.on_commit(_announce, robust=True)
        key.refresh_from_db()
        data = {"key": key_data(key), "by": principal.identity, "reason": reason}
        outbox.event(events.KEY_RETIRED, DOMAIN_ADMIN, data)
        outbox.act("key.retire", principal, "key", kid, reason=reason)
    return key


def key_data(row: DomainKey) -> dict[str, Any]:
    """A key as its events show it."""
    return {
        "kid": row.kid,
        "not_before": timestamp(row.not_before),
        "not_after": None if row.not_after is None else timestamp(row.not_after),
        "created_at": timestamp(row.created_at),
    }


def require_keeper(principal: Principal) -> None:
    """Raises Forbidden for all but administrators whose token is not narrowed."""
    if not principal.admin or principal.narrowed:
        raise Forbidden("Only an administrator's token that is not narrowed changes the domain's keys.")


def _make(now: datetime, begins_at: datetime) -> DomainKey:
    key = key_new()
    return DomainKey.objects.create(
        kid=key.thumbprint(),
        private_jwk=key.as_dict(private=True),
        public_jwk=key.as_dict(private=False),
        not_before=begins_at,
        created_at=now,
    )


def key_new() -> OKPKey:
    """A new Ed25519 key whose kid (RFC 7638 thumbprint) begins with no hyphen: a command line takes that for an option."""
    while True:
        key = OKPKey.generate_key("Ed25519")
        if not key.thumbprint().startswith("-"):
            return key


def _announce() -> None:
    """Tell all gateways; those that are not reached look at SQL by themselves (access/verification/verifier.py)."""
    try:
        control.announce_keys()
    except RedisError as error:
        log.warning("New keys were not announced, gateways find them by themselves: %s", error)
