"""This domain's own record: content from settings and keys, a version above all before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.core.errors import Conflict
from eventing.membership.models import DirectoryDomain, OverlayMembership
from eventing.membership.rules.records import RECORD_BYTES_MAX, grant_read, record_bytes_most, record_sign
from eventing.overlay.directory_records import EXPIRY_S, DomainRecord
from eventing.peering.selectors.domain_documents import own_keys


def own_identity() -> Mapping[str, Any]:
    """Return the private JWK of this domain's identity key. Raises Conflict before the domain has a key."""
    keys = own_keys()
    if not keys:
        raise Conflict("This domain has no key yet; its gateway makes one when it starts.")
    return keys[0]


def own_record_problem(sponsor: str | None = None) -> str:
    """Return what keeps this domain from issuing a record, one sentence; empty if nothing does.

    Args:
        sponsor: the domain that is to sponsor this one; None: as it has joined.
    """
    settings, row = config(), OverlayMembership.objects.first()
    sponsor = sponsor if sponsor is not None else "" if row is None else row.sponsor
    url = settings.base_url if settings.overlay_callable else ""
    size = record_bytes_most(settings.domain, sponsor, url, settings.zone, settings.operator)
    if size <= RECORD_BYTES_MAX:
        return ""
    return (
        f"This domain's record would have {size} bytes, of {RECORD_BYTES_MAX} at most. Names count several times: use a shorter "
        f"HERALD_DOMAIN, HERALD_BASE_URL, HERALD_ZONE or HERALD_OPERATOR, or a sponsor with a shorter name."
    )


def own_record_issue(version: int, wall_s: float) -> DomainRecord:
    """Issue this domain's record, of at least this version and above all that were issued before: before a restart, and before it left
    an overlay that it joins again.

    Raises Conflict if this domain has not joined, or its record would be too large.
    """
    identity, signing, settings = own_identity(), signing_key(), config()
    with transaction.atomic():
        row = OverlayMembership.objects.select_for_update().first()
        if row is None:
            raise Conflict("This domain takes part in no overlay.")
        left = DirectoryDomain.objects.filter(name=settings.domain).values_list("version", flat=True).first() or 0
        row.version = max(version, row.version + 1, left + 1)
        row.save(update_fields=["version"])
    grant = grant_read(bytes(row.grant)) if row.grant else None
    record = DomainRecord(
        settings.domain,
        row.version,
        float(wall_s),
        float(wall_s + EXPIRY_S),
        url=settings.base_url if settings.overlay_callable else "",
        zone=settings.zone,
        operator=settings.operator,
        capacity=settings.capacity,
        sponsorship=None if grant is None else grant.sponsorship,
    )
    try:
        return record_sign(
            record, identity, [] if signing is None else [str(signing["x"])], b"" if grant is None else grant.signature
        )
    except ValueError as error:
        raise Conflict(str(error)) from None
