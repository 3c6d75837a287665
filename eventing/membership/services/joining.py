"""Founding, joining and leaving an overlay: an administrator's decisions, audited."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.membership.models import OverlayFounder, OverlayLink, OverlayMembership
from eventing.membership.rules.records import (
    SponsorshipGrant,
    fingerprint_of,
    grant_bytes,
    identity_of,
    sponsorship_verified,
)
from eventing.membership.rules.sponsoring import BadChain, chain_founder
from eventing.membership.services.directory import directory_leave, directory_store
from eventing.membership.services.map_changes import map_clear
from eventing.membership.services.own_record import own_identity, own_record_issue, own_record_problem
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.overlay.directory_records import DomainRecord
from eventing.sql.locking import lock_domain

KNOWN_MAX = 6
"""Good links that are asked first after a start."""


def require_administrator(principal: Principal) -> None:
    """Raise Forbidden unless the principal is an administrator whose token is not narrowed."""
    if not principal.admin or principal.narrowed:
        raise Forbidden("Decisions about the overlay require an administrator's token that is not narrowed.")


def require_record(sponsor: str) -> None:
    """Raise Conflict unless this domain's record has room for its names with this sponsor (empty for a founder)."""
    problem = own_record_problem(sponsor)
    if problem:
        raise Conflict(problem)


def overlay_found(*, principal: Principal, now: datetime | None = None) -> OverlayMembership:
    """Found an overlay: the first domain of a federation, which needs no sponsor. Raises Forbidden, Conflict."""
    now = now or timezone.now()
    require_administrator(principal)
    fingerprint = str(own_identity()["kid"])
    require_record("")
    with change(now) as outbox:
        lock_domain()
        if OverlayMembership.objects.exists():
            raise Conflict("This domain takes part in an overlay already.")
        row = OverlayMembership.objects.create(grant=b"", joined_at=now)
        _trust(config().domain, fingerprint, config().domain, now)
        directory_store([own_record_issue(int(now.timestamp()), now.timestamp())], now=now)
        outbox.event(events.OVERLAY_JOINED, DOMAIN_ADMIN, {"sponsor": None, "founder": config().domain})
        outbox.act("overlay.found", principal, "domain", config().domain, fingerprint=fingerprint)
    return row


def overlay_join(
    *,
    principal: Principal,
    sponsor: str,
    fingerprint: str,
    grant: SponsorshipGrant,
    chain: Sequence[DomainRecord],
    now: datetime | None = None,
) -> OverlayMembership:
    """Join with the sponsorship that a peer granted. A member keeps its own sponsorship, and trusts the founder as well.

    Args:
        sponsor, fingerprint: the peer, as it was approved here.
        chain: its record, that of its sponsor, and so on up to a founder.

    Raises Forbidden, Conflict (the answer of the sponsor proves nothing).
    """
    now = now or timezone.now()
    require_administrator(principal)
    own = own_identity()
    try:
        founder = chain_founder(chain, sponsor, fingerprint)
    except BadChain as error:
        raise Conflict(f"The chain of sponsors that {sponsor} presents is not valid: {error}.") from None
    given = grant.sponsorship
    fits = (given.sponsor, given.newcomer) == (sponsor, config().domain)
    if not fits or not sponsorship_verified(grant, str(own["x"]), identity_of(chain[0])):
        raise Conflict(f"The sponsorship that {sponsor} granted is not valid.")
    with change(now) as outbox:
        lock_domain()
        row = OverlayMembership.objects.first()
        joined = row is None
        if row is None:
            row = OverlayMembership.objects.create(sponsor=sponsor, grant=grant_bytes(grant), joined_at=now)
        _trust(founder.domain, fingerprint_of(founder), sponsor, now)
        others = [record for record in chain if record.domain != config().domain]
        current = [record for record in others if record.expires_s > now.timestamp()]
        directory_store([record for record in others if record not in current], now=now, held=False)
        directory_store(current, now=now)
        if joined:
            directory_store([own_record_issue(int(now.timestamp()), now.timestamp())], now=now)
            outbox.event(events.OVERLAY_JOINED, DOMAIN_ADMIN, {"sponsor": sponsor, "founder": founder.domain})
        details = {"founder": founder.domain, "fingerprint": fingerprint_of(founder)}
        outbox.act("overlay.join", principal, "domain", sponsor, **details)
    return row


def overlay_leave(*, principal: Principal, now: datetime | None = None) -> None:
    """Leave the overlay. Sponsorships that were granted stay valid. Raises Forbidden, Conflict."""
    now = now or timezone.now()
    require_administrator(principal)
    with change(now) as outbox:
        lock_domain()
        if not OverlayMembership.objects.exists():
            raise Conflict("This domain takes part in no overlay.")
        OverlayMembership.objects.all().delete()
        OverlayFounder.objects.all().delete()
        OverlayLink.objects.all().delete()
        directory_leave()
        outbox.event(events.OVERLAY_LEFT, DOMAIN_ADMIN, {})
        map_clear(outbox)
        outbox.act("overlay.leave", principal, "domain", config().domain)


def known_links_store(names: Sequence[str]) -> None:
    """Remember the last good links."""
    OverlayMembership.objects.update(known=list(names)[:KNOWN_MAX])


def _trust(name: str, fingerprint: str, learned_from: str, now: datetime) -> None:
    """Trust a founder. Raises Conflict if one of this name with another key is trusted."""
    row, _ = OverlayFounder.objects.get_or_create(
        name=name, defaults={"fingerprint": fingerprint, "learned_from": learned_from, "added_at": now}
    )
    if row.fingerprint != fingerprint:
        raise Conflict(f"A founder called {name} with another identity key is trusted here already.")
