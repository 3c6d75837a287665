"""Descriptors: what every operation at an RP is checked against, for RPs and for the administrative RPs derived from them."""

from __future__ import annotations

import math
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core import names
from eventing.core.descriptor import Ack, Descriptor
from eventing.core.errors import Gone, NotFound
from eventing.core.history import HistoryBounds
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMIN, is_admin
from eventing.core.policy import ADMINISTRATORS_ONLY, compile_policy
from eventing.models import RendezvousPoint

# Of every administrative RP. Events there are ~500 bytes; a month lets an operator look back after a holiday.
ADMIN_HISTORY = HistoryBounds(max_events=1000, max_bytes=1024 * 1024, max_age_s=30 * 86_400)
ADMIN_ACK = Ack(stored=True, replicas=0)
_ADMIN_POLICY = compile_policy(ADMINISTRATORS_ONLY)


def descriptor_get(reference: str, *, now: datetime | None = None) -> Descriptor:
    """The descriptor of the RP that `reference` means: an id, `ID.admin`, `domain.admin`, or a name.

    Raises NotFound, InvalidRequest for what can be none of these, and Gone for an RP whose lease has ended.
    """
    if reference == DOMAIN_ADMIN:
        return Descriptor(DOMAIN_ADMIN, "", 1, _ADMIN_POLICY, ADMIN_ACK, ADMIN_HISTORY, math.inf)
    administrative = names.is_id(reference) and is_admin(reference)
    if names.is_id(reference):
        row = RendezvousPoint.objects.filter(id=reference.removesuffix(ADMIN_SUFFIX)).first()
    else:
        row = RendezvousPoint.objects.filter(name=names.normalise(reference, config().domain)).first()
    if row is None:
        raise NotFound(f"There is no rendezvous point {reference}.")
    if row.expires_at <= (now or timezone.now()):
        raise Gone(f"The rendezvous point {reference} is gone: its lease ended.")
    if administrative:
        return Descriptor(reference, row.creator, 1, _ADMIN_POLICY, ADMIN_ACK, ADMIN_HISTORY, math.inf)
    return descriptor_of(row)


def descriptor_of(row: RendezvousPoint) -> Descriptor:
    """The descriptor that a row holds."""
    return Descriptor(
        row.id,
        row.creator,
        row.version,
        compile_policy(row.policy),
        Ack.parse(row.ack),
        row.bounds,
        row.expires_at.timestamp(),
    )
