"""The domain's signing keys: creation of the first, rotation without downtime, and retirement in an emergency.

Life of a key: made, and published at /.well-known/jwks.json from then on -> it signs from `not_before`, by which time
every verifier has read the publication again -> a rotation makes its successor; the key continues to sign until that
one begins, and verifies until the longest token it could sign has expired (`not_after`) -> retired. An emergency
shortens this: the key is revoked, which ends every token and session that it signed, and another one signs at once.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from joserfc.jwk import OKPKey

from eventing.access.models import DomainKey, Revocation
from eventing.access.rules.tokens import SKEW_S
from eventing.access.selectors.keys import key_get, keys_running, signing_key
from eventing.access.services.revocations import revocation_create
from eventing.access.shapes import KeyData
from eventing.audit.services import audit_record
from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, QuotaExceeded
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.sql.locking import lock_domain
from eventing.store.errors import RedisError

SIGNS_AFTER_S = (
    180  # verifiers cache the published keys for 60 s (peering/api/well_known.py); three times that leaves room
)
SIGNS_AFTER_S_MAX = 86_400
# Other domains accept at most 100 keys of an issuer.
KEYS_MAX = 32  # bound: keys of the domain that are still valid; 409
log = logging.getLogger(__name__)


def ensure_domain_key(*, now: datetime | None = None) -> str:
    """Return the `kid` of the key that signs now; make the first key if there is none. Safe in several processes at once."""
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
    """Make the next signing key, and publish it.

    Args:
        principal: an administrator.
        signs_after_s: seconds from now, 0 to SIGNS_AFTER_S_MAX. With less than the default, verifiers elsewhere that
            have not read the new key may refuse tokens for a short time.

    Returns the new key. Raises Forbidden, InvalidRequest, Conflict (a rotation is in progress), QuotaExceeded.
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
                f"A rotation is in progress: the key {pending.kid} signs from {pending.not_before.isoformat()}. Retire it first.",
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
        outbox.event(events.KEY_ROTATED, DOMAIN_ADMIN, {"key": KeyData.of(made), "by": principal.identity})
        outbox.act("key.rotate", principal, "key", made.kid, signs_from=begins_at.isoformat())
    return made


def key_retire(*, principal: Principal, kid: str, reason: str = "", now: datetime | None = None) -> DomainKey:
    """End a key now: tokens that it signed are no longer valid, and their sessions are closed.

    If it was the signing key, its published successor signs from now on, else a new key. Repeating the call changes
    nothing.

    Returns the key. Raises Forbidden, NotFound, InvalidRequest, QuotaExceeded (too many revocations).
    """
    now = now or timezone.now()
    require_keeper(principal)
    with change(now, patient=False) as outbox:
        lock_domain()
        key = key_get(kid)
        if key is None:
            raise NotFound("This domain has no key with this kid.")
        if key.not_before > now:  # its window must no longer open
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
        data = {"key": KeyData.of(key), "by": principal.identity, "reason": reason}
        outbox.event(events.KEY_RETIRED, DOMAIN_ADMIN, data)
        outbox.act("key.retire", principal, "key", kid, reason=reason)
    return key


def require_keeper(principal: Principal) -> None:
    """Raise Forbidden unless the principal is an administrator whose token is not narrowed."""
    if not principal.admin or principal.narrowed:
        raise Forbidden("Changing the domain's keys requires an administrator's token that is not narrowed.")


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
    """Make an Ed25519 key whose kid (RFC 7638 thumbprint) does not begin with a hyphen, which a command line takes for
    an option."""
    while True:
        key = OKPKey.generate_key("Ed25519")
        if not key.thumbprint().startswith("-"):
            return key


def _announce() -> None:
    """Notify all gateways; those that are not reached read SQL periodically (access/verification/verifier.py)."""
    try:
        control.announce_keys()
    except RedisError as error:
        log.warning("New keys were not announced; gateways find them by reading SQL: %s", error)
