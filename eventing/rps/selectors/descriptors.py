"""Descriptors against which every operation is checked, for RPs and for the administrative RPs derived from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from eventing.access.rules.policy import ADMINISTRATORS_ONLY, compile_policy
from eventing.conf import config
from eventing.core import names
from eventing.core.errors import ApplicationError, Gone, NotFound
from eventing.core.events.ack_level import Ack
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMINS, is_admin
from eventing.outbox.administrative_events import ADMIN_HISTORY, admin_history
from eventing.rps.models import RendezvousPoint
from eventing.rps.ports import links_of_rps
from eventing.rps.rules.audience import compile_audience
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.leases import renewed_from

ADMIN_ACK = Ack(stored=True, replicas=0)
_ADMIN_POLICY = compile_policy(ADMINISTRATORS_ONLY)


def descriptor_get(reference: str, *, now: datetime | None = None) -> Descriptor:
    """Return the descriptor of the RP denoted by `reference`: an id, `ID.admin`, `domain.admin`, `overlay.admin`, or a name.

    Raises NotFound, InvalidRequest for a malformed reference, and Gone for an RP whose lease has ended.
    """
    (found,) = descriptors_get([reference], now=now)
    if isinstance(found, ApplicationError):
        raise found
    return found


def descriptors_get(references: Sequence[str], *, now: datetime | None = None) -> list[Descriptor | ApplicationError]:
    """Return `descriptor_get` for many references, in at most three queries; its errors stand in the references' places."""
    now = now or timezone.now()
    wanted = [_wanted(reference) for reference in references]
    ids = {key.id for key in wanted if isinstance(key, _Wanted) and key.id}
    names_ = {key.name for key in wanted if isinstance(key, _Wanted) and key.name}
    by_id = RendezvousPoint.objects.in_bulk(ids) if ids else {}
    by_name = {row.name: row for row in RendezvousPoint.objects.filter(name__in=names_)} if names_ else {}
    links = links_of_rps([row.id for row in (*by_id.values(), *by_name.values())])
    found: list[Descriptor | ApplicationError] = []
    for reference, key in zip(references, wanted, strict=True):
        if isinstance(key, _Wanted):
            row = by_id.get(key.id) if key.id else by_name.get(key.name)
            found.append(_answer(reference, row, now, links.get(row.id, ()) if row else ()))
        else:
            found.append(key)
    return found


class _Wanted(NamedTuple):
    """Row for a reference: by id, or by name if `id` is empty."""

    id: str
    name: str


def _wanted(reference: str) -> _Wanted | Descriptor | ApplicationError:
    if reference in DOMAIN_ADMINS:
        return Descriptor(reference, "", 1, _ADMIN_POLICY, ADMIN_ACK, admin_history(reference), math.inf)
    if names.is_id(reference):
        return _Wanted(reference.removesuffix(ADMIN_SUFFIX), "")
    try:
        return _Wanted("", names.normalise(reference, config().domain))
    except ApplicationError as error:
        return error


def _answer(
    reference: str, row: RendezvousPoint | None, now: datetime, links: tuple[str, ...]
) -> Descriptor | ApplicationError:
    if row is None:
        return NotFound(f"There is no rendezvous point {reference}.")
    if row.expires_at <= now:
        return Gone(f"The rendezvous point {reference} no longer exists: its lease ended.")
    if names.is_id(reference) and is_admin(reference):
        return Descriptor(reference, row.creator, 1, _ADMIN_POLICY, ADMIN_ACK, ADMIN_HISTORY, math.inf, row.name or "")
    return descriptor_of(row, links)


def descriptor_of(row: RendezvousPoint, links: tuple[str, ...] = ()) -> Descriptor:
    """Make the descriptor from a row; `links` are only needed where events are forwarded."""
    policy = compile_policy(row.policy)
    authority = "" if row.authority == config().domain else row.authority
    return Descriptor(
        row.id,
        "" if row.home else row.creator,
        row.version,
        policy.seen_from(config().domain, authority) if authority else policy,
        Ack.parse(row.ack),
        row.bounds,
        row.expires_at.timestamp(),
        row.name or "",
        row.home,
        links,
        None if row.paused_at is None else row.paused_reason,
        compile_audience(row.audience),
        renewed_from(row),
        authority,
    )
