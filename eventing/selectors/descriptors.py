"""Descriptors: what every operation at an RP is checked against, for RPs and for the administrative RPs derived from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from eventing.conf import config
from eventing.core import names
from eventing.core.descriptor import Ack, Descriptor
from eventing.core.errors import Gone, HeraldError, NotFound
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
    (found,) = descriptors_get([reference], now=now)
    if isinstance(found, HeraldError):
        raise found
    return found


def descriptors_get(references: Sequence[str], *, now: datetime | None = None) -> list[Descriptor | HeraldError]:
    """As `descriptor_get` for many references, in two queries at most; what it would raise is in the reference's place."""
    now = now or timezone.now()
    wanted = [_wanted(reference) for reference in references]
    ids = {key.id for key in wanted if isinstance(key, _Wanted) and key.id}
    names_ = {key.name for key in wanted if isinstance(key, _Wanted) and key.name}
    by_id = RendezvousPoint.objects.in_bulk(ids) if ids else {}
    by_name = {row.name: row for row in RendezvousPoint.objects.filter(name__in=names_)} if names_ else {}
    found: list[Descriptor | HeraldError] = []
    for reference, key in zip(references, wanted, strict=True):
        if isinstance(key, _Wanted):
            row = by_id.get(key.id) if key.id else by_name.get(key.name)
            found.append(_answer(reference, row, now))
        else:
            found.append(key)
    return found


class _Wanted(NamedTuple):
    """The row that a reference asks for: by id, or by name if `id` is empty."""

    id: str
    name: str


def _wanted(reference: str) -> _Wanted | Descriptor | HeraldError:
    if reference == DOMAIN_ADMIN:
        return Descriptor(DOMAIN_ADMIN, "", 1, _ADMIN_POLICY, ADMIN_ACK, ADMIN_HISTORY, math.inf)
    if names.is_id(reference):
        return _Wanted(reference.removesuffix(ADMIN_SUFFIX), "")
    try:
        return _Wanted("", names.normalise(reference, config().domain))
    except HeraldError as error:
        return error


def _answer(reference: str, row: RendezvousPoint | None, now: datetime) -> Descriptor | HeraldError:
    if row is None:
        return NotFound(f"There is no rendezvous point {reference}.")
    if row.expires_at <= now:
        return Gone(f"The rendezvous point {reference} is gone: its lease ended.")
    if names.is_id(reference) and is_admin(reference):
        return Descriptor(reference, row.creator, 1, _ADMIN_POLICY, ADMIN_ACK, ADMIN_HISTORY, math.inf, row.name or "")
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
        row.name or "",
    )
