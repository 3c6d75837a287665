"""Property statements of homes at participants: taken from any carrier, in the order of their times.

They are not part of the descriptor, whose members are fixed: an older release refuses a descriptor with another member, and
ignores a property statement, which travels in a member of the request that it does not read (decision 91).
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.signing import Signed
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import (
    BadStatement,
    PropertyStatement,
    packed,
    properties_read,
    properties_verified,
    unpacked,
)
from eventing.rps.selectors.event_data import rp_data
from eventing.rps.services.descriptors import properties_sign

logger = logging.getLogger(__name__)


def properties_accept(rp: str, statement: Signed, *, carrier: str, now: datetime | None = None) -> bool:
    """Accept the home's property statement if it is newer than the held one; return whether it was.

    An invalid one is refused and counted against the carrier.
    """
    held = RendezvousPoint.objects.filter(id=rp).values_list("property_statement", flat=True).first()
    if held is not None and bytes(held) == packed(statement):
        return False
    try:
        with change(now or timezone.now()) as outbox:
            row = RendezvousPoint.objects.select_for_update().filter(id=rp).first()
            if row is None or row.descriptor is None:
                return False  # this domain does not participate
            home = row.home or config().domain
            if row.term and properties_read(statement).home != home:
                return False  # a former home's
            stated = properties_verified(statement, domain_keys(home), rp=rp, home=home)
            if stated.issued_at_ms <= _issued_at_ms(row):
                return False
            if row.home:
                _take(row, statement, stated, outbox)
            else:
                _own_seen(row, statement, outbox)
    except BadStatement as error:
        misbehaviour_note("forged", carrier=carrier, rp=rp, detail=str(error))
        return False
    return True


def _issued_at_ms(row: RendezvousPoint) -> int:
    """Return the time of the held statement; -1 without one."""
    return -1 if row.property_statement is None else properties_read(unpacked(row.property_statement)).issued_at_ms


def _take(row: RendezvousPoint, statement: Signed, stated: PropertyStatement, outbox: Outbox) -> None:
    changed = ["reliability"] if row.reliability != stated.reliability else []
    row.property_statement, row.reliability = packed(statement), stated.reliability
    row.changed_at = outbox.now
    row.statements += 1
    row.save(update_fields=["property_statement", "reliability", "changed_at", "statements"])
    outbox.announce(row.id)
    if changed:
        outbox.event(events.RP_CHANGED, row.id, {"rp": rp_data(row), "changed": changed}, domain_too=True)


def _own_seen(row: RendezvousPoint, statement: Signed, outbox: Outbox) -> None:
    """Sign the present properties anew, later than an own statement that is newer than the held one: the database was
    restored from a copy, and other domains would keep the statement that is forgotten here."""
    row.property_statement = packed(statement)
    row.property_statement = properties_sign(row, outbox.now)
    row.statements += 1
    row.save(update_fields=["property_statement", "statements"])
    outbox.announce(row.id)
    logger.warning(
        "Others hold later properties of %s than this domain, which was restored; it states them anew", row.id
    )
