"""Granting sponsorships to peers: numbered, signed, within a quota per day, audited, reported on `domain.admin`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.ed25519 import BadPublicKey, public_key
from eventing.core.errors import ApplicationError, Conflict, InvalidRequest, NotFound, QuotaExceeded
from eventing.core.ids import DOMAIN_ADMIN
from eventing.membership.models import GrantedSponsorship, OverlayMembership
from eventing.membership.rules.records import SponsorshipGrant, grant_read, sponsorship_sign
from eventing.membership.rules.sponsoring import day_of, quota_of
from eventing.membership.services.own_record import own_identity
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.overlay.directory_records import DAY_S, QUOTA_PER_DAY, Sponsorship
from eventing.peering.rules.domain_documents import thumbprint
from eventing.sql.locking import lock_domain

FOUNDERS_DAYS = 365
"""Days of which a founder uses numbers, at QUOTA_PER_DAY each."""


def sponsorship_grant(*, newcomer: str, key: str, fingerprint: str, now: datetime | None = None) -> SponsorshipGrant:
    """Sponsor a peer. A repetition gets the same sponsorship.

    Args:
        key: member `x` of the newcomer's identity key, as it states it.
        fingerprint: of its identity key, as an administrator here approved it.

    Raises NotFound (this domain has not joined), InvalidRequest, Conflict, QuotaExceeded; refusals are reported, too.
    """
    now = now or timezone.now()
    try:
        return _granted(newcomer, key, fingerprint, now)
    except ApplicationError as error:
        with change(now) as outbox:
            _report(outbox, events.OVERLAY_SPONSORSHIP_REFUSED, newcomer, reason=error.detail)
        raise


def _granted(newcomer: str, key: str, fingerprint: str, now: datetime) -> SponsorshipGrant:
    try:
        public_key(key)
    except BadPublicKey as error:
        raise InvalidRequest(f"The identity key is not usable: {error}.") from None
    if thumbprint(key) != fingerprint:
        raise Conflict(f"The identity key is not that of {newcomer} as it was approved here.")
    identity = own_identity()
    with change(now) as outbox:
        lock_domain()
        membership = OverlayMembership.objects.first()
        if membership is None:
            raise NotFound(f"{config().domain} takes part in no overlay: its administrator runs herald overlay found.")
        row = GrantedSponsorship.objects.filter(newcomer=newcomer).first()
        if row is not None and row.key != key:
            raise Conflict(f"{newcomer} was sponsored with another identity key, which others remember for its name.")
        if row is not None:
            given = Sponsorship(config().domain, newcomer, row.day, row.number)
            return SponsorshipGrant(given, bytes(row.signature))
        day, number = _next(membership, now)
        grant = sponsorship_sign(Sponsorship(config().domain, newcomer, day, number), key, identity)
        GrantedSponsorship.objects.create(
            newcomer=newcomer, key=key, day=day, number=number, signature=grant.signature, granted_at=now
        )
        _report(outbox, events.OVERLAY_SPONSORSHIP_GRANTED, newcomer, day=day, number=number)
        outbox.act("overlay.sponsor", None, "domain", newcomer, who=newcomer, day=day, number=number)
    return grant


def _next(membership: OverlayMembership, now: datetime) -> tuple[int, int]:
    """Return day and number of the next sponsorship. Raises QuotaExceeded.

    A domain uses numbers of all days since it was sponsored itself, because others count them together; a founder those of any day.
    """
    today = day_of(now.timestamp())
    since = today - FOUNDERS_DAYS if not membership.grant else int(grant_read(bytes(membership.grant)).sponsorship.day)
    quota = quota_of(founder=not membership.grant)
    today_began = datetime.fromtimestamp(today * DAY_S, now.tzinfo)
    if GrantedSponsorship.objects.filter(granted_at__gte=today_began).count() < quota:
        for day, number in _numbers(today, since):
            if not GrantedSponsorship.objects.filter(day=day, number=number).exists():
                return day, number
    raise QuotaExceeded(f"{config().domain} sponsors at most {quota} domains a day. Try again tomorrow.", limit=quota)


def _numbers(today: int, since: int) -> Iterator[tuple[int, int]]:
    for day in range(today, max(since, 0) - 1, -1):
        for number in range(QUOTA_PER_DAY):
            yield day, number


def _report(outbox: Outbox, kind: str, newcomer: str, **more: object) -> None:
    outbox.event(kind, DOMAIN_ADMIN, {"domain": newcomer, **more})
