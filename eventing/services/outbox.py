"""The outbox: effects of a change in the data plane, written with the change and carried out after its commit.

The life of an effect: a service adds it to the `Outbox` of its transaction -> it is a row, committed or rolled back with
the change -> right after the commit the same process carries it out and removes the row -> if the process or the data
plane dies in between, the sweep (`outbox_relay`) does it later. Effects may therefore happen twice; each is harmless
then: events are recognised by (source, id) within the deduplication window, the others are idempotent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from redis.exceptions import RedisError, ResponseError

from eventing.core.ids import DOMAIN_ADMIN, admin_id, is_admin
from eventing.core.principals import Principal
from eventing.log import control
from eventing.models import OutboxEntry, RendezvousPoint, Subscription
from eventing.selectors.descriptors import ADMIN_HISTORY
from eventing.services import administrative_events as events
from eventing.services.audit import Act, audit_record_all

logger = logging.getLogger(__name__)

RELAY_BATCH = 500  # entries of one sweep
RELAY_AFTER_S = 3  # younger entries are left to the process that wrote them
GIVE_UP_AFTER_S = 86_400  # an entry that the data plane refuses (not: cannot be reached for) is dropped then

Kind = OutboxEntry.Kind


class Outbox:
    """The effects of one transaction, in order."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._entries: list[OutboxEntry] = []
        self._acts: list[Act] = []

    def act(self, action: str, principal: Principal, kind: str, object_id: str, **details: Any) -> None:
        """Have the audit say who did this: `action` on the object of this kind and id. Written last, as the audit asks."""
        self._acts.append(Act(action, principal=principal, on=(kind, object_id), details=details, at=self.now))

    def event(self, kind: str, about: str, data: Mapping[str, Any], *, domain_too: bool = False) -> None:
        """Report an event about the RP with id `about` on its administrative RP, and with `domain_too` on the domain's."""
        content = events.content(kind, events.source_of(about), data, self.now)
        self._add(Kind.EVENT, about if is_admin(about) else admin_id(about), content)
        if domain_too:
            self._add(Kind.EVENT, DOMAIN_ADMIN, content)

    def lease_event(self, kind: str, row: RendezvousPoint | Subscription) -> None:
        """Report what happened to the lease of `row`."""
        what, about = ("rp", row.id) if isinstance(row, RendezvousPoint) else ("subscription", row.at)
        self.event(kind, about, {"what": what, "id": row.id, **events.lease_data(row)})

    def ensure(self, rp: str) -> None:
        """Make the log, or give it its new bounds."""
        self._add(Kind.ENSURE, rp)

    def announce(self, rp: str) -> None:
        """Have gateways drop what they cached of the RP."""
        self._add(Kind.ANNOUNCE, rp)

    def delete(self, rp: str) -> None:
        """Remove the log."""
        self._add(Kind.DELETE, rp)

    def forget(self, rp: str, subscription: str) -> None:
        """Drop the subscription's cursor."""
        self._add(Kind.FORGET, rp, {"subscription": subscription})

    def save(self) -> None:
        """Write the entries, and carry them out once the transaction has committed."""
        entries = OutboxEntry.objects.bulk_create(self._entries)

        def carry_out() -> None:
            try:
                _carry_out(entries)
            except RedisError as error:
                logger.warning("outbox: effects are left to the sweep, the data plane does not answer: %s", error)

        if entries:
            # Robust: the change is committed, so whatever fails now is logged and left to the sweep, not the caller's.
            transaction.on_commit(carry_out, robust=True)
        audit_record_all(self._acts)

    def _add(self, kind: OutboxEntry.Kind, rp: str, content: Mapping[str, Any] | None = None) -> None:
        self._entries.append(OutboxEntry(kind=kind, rp=rp, content=dict(content or {}), created_at=self.now))


@contextmanager
def change(now: datetime) -> Iterator[Outbox]:
    """One transaction together with the outbox of its effects."""
    with transaction.atomic():
        outbox = Outbox(now)
        yield outbox
        outbox.save()


def outbox_relay(*, now: datetime | None = None) -> int:
    """Carry out what a crash or an outage left, oldest first, at most RELAY_BATCH entries. Returns how many were done.

    Raises redis.RedisError when the data plane cannot be reached; everything is kept then.
    """
    now = now or timezone.now()
    left = OutboxEntry.objects.filter(created_at__lte=now - timedelta(seconds=RELAY_AFTER_S))
    entries = list(left.order_by("id")[:RELAY_BATCH])
    refused = _carry_out(entries)
    late = [entry for entry in refused if entry.created_at < now - timedelta(seconds=GIVE_UP_AFTER_S)]
    for entry in late:
        logger.error("outbox: gave up %s for %s, refused since %s", entry.kind, entry.rp, entry.created_at)
    OutboxEntry.objects.filter(id__in=[entry.pk for entry in late]).delete()
    return len(entries) - len(refused)


def _carry_out(entries: Sequence[OutboxEntry]) -> list[OutboxEntry]:
    """Carry out and remove `entries`; those that the data plane refuses are returned and stay.

    First the events, one append per log, then the rest in order: a log's last event is in before the log is announced gone.
    """
    by_log: dict[str, list[OutboxEntry]] = {}
    for entry in entries:
        if entry.kind == Kind.EVENT:
            by_log.setdefault(entry.rp, []).append(entry)
    refused: list[OutboxEntry] = []
    groups = [*by_log.values(), *([entry] for entry in entries if entry.kind != Kind.EVENT)]
    done: list[int] = []
    try:
        for group in groups:
            try:
                _do(group)
            except ResponseError:
                logger.exception("outbox: %s for %s was refused", group[0].kind, group[0].rp)
                refused += group
            else:
                done += [entry.pk for entry in group]
    finally:
        _remove(done)
    return refused


def _do(group: Sequence[OutboxEntry]) -> None:
    """Carry out one entry, or several events for one log."""
    entry = group[0]
    match Kind(entry.kind):
        case Kind.EVENT:
            control.append(entry.rp, [events.event_of(each.content) for each in group], ADMIN_HISTORY)
        case Kind.ENSURE:
            row = RendezvousPoint.objects.filter(id=entry.rp).first()
            if row is not None:
                control.ensure_log(row.id, row.bounds)
        case Kind.ANNOUNCE:
            control.announce_change(entry.rp)
        case Kind.DELETE:
            control.delete_log(entry.rp)
        case Kind.FORGET:
            control.subscription_forget(entry.rp, entry.content["subscription"])


def _remove(ids: Iterable[int]) -> None:
    OutboxEntry.objects.filter(id__in=list(ids)).delete()
