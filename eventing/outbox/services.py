"""The outbox: effects of a change on the data plane, written with the change and carried out after its commit.

The life of an effect: a service adds it to the `Outbox` of its transaction -> it is a row, committed or rolled back
with the change -> right after the commit the same process carries it out and removes the row -> if the process or the
data plane dies in between, the sweep (`outbox_relay`) does it later. Effects may therefore happen twice; each is
harmless then: events are recognised by (source, id) within the deduplication window, the others are idempotent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from msgspec.structs import asdict

from eventing.audit.services import AuditAct, audit_record_all
from eventing.core.ids import DOMAIN_ADMIN, admin_id, is_admin
from eventing.core.principals import Principal
from eventing.log import control
from eventing.log.scripts import NoLog
from eventing.outbox import administrative_events as events
from eventing.outbox.models import OutboxEntry
from eventing.outbox.ports import log_bounds, rp_changed, rps_in_domain, subscriptions_in_domain
from eventing.rest.shapes import LeaseAnswer
from eventing.sql.columns import LeaseColumns
from eventing.sql.leases import is_due
from eventing.sql.remembered import remembered
from eventing.store.errors import RedisError, ResponseError
from eventing.store.inspection import require_answer

logger = logging.getLogger(__name__)

RELAY_BATCH = 500  # bound: outbox entries of one sweep; the others are left to the next sweep
RELAY_AFTER_S = 3  # younger entries are left to the process that wrote them
# Only a refusal counts, not an outage of Redis.
GIVE_UP_AFTER_S = 86_400  # bound: seconds that Redis refuses an effect; the effect is discarded, with a log line

_COUNTS: Mapping[str, Callable[[], int]] = {"rps": rps_in_domain, "subscriptions_in_domain": subscriptions_in_domain}
COUNTED_IN: Mapping[str, tuple[str, ...]] = {
    events.RP_CREATED: ("rps",),
    events.RP_DELETED: ("rps", "subscriptions_in_domain"),
    events.SUBSCRIPTION_CREATED: ("subscriptions_in_domain",),
    events.SUBSCRIPTION_DELETED: ("subscriptions_in_domain",),
}
"""Counts in an event's data, by type of the event."""

Kind = OutboxEntry.Kind


class Outbox:
    """The effects of one transaction, in order.

    Args:
        patient: whether the caller can wait while the data plane does not answer; else the effects are then left to the
            sweep.
    """

    def __init__(self, now: datetime, *, patient: bool = True) -> None:
        self.now = now
        self._patient = patient
        self._entries: list[OutboxEntry] = []
        self._acts: list[AuditAct] = []
        self._counted: list[tuple[tuple[str, ...], dict[str, Any]]] = []

    def act(
        self, action: str, principal: Principal | None, kind: str, object_id: str, *, who: str = "", **details: Any
    ) -> None:
        """Record in the audit that the principal did `action` on the object of this kind and id. Written last, as the
        audit requires.

        `who` names an actor that is not a principal, such as another domain.
        """
        self._acts.append(
            AuditAct(action, principal=principal, who=who, on=(kind, object_id), details=details, at=self.now)
        )

    def event(
        self, kind: str, about: str, data: Mapping[str, Any], *, domain_too: bool = False, counted: bool = False
    ) -> None:
        """Report an event about the RP with id `about` on its administrative RP, and with `domain_too` on the domain's.

        With `counted` the data includes the number of such objects after the transaction (COUNTED_IN), counted once per
        transaction.
        """
        content = events.content(kind, events.source_of(about), data, self.now)
        if counted:
            self._counted.append((COUNTED_IN[kind], content["data"]))
        self._add(Kind.EVENT, about if is_admin(about) else admin_id(about), content)
        if domain_too and about != DOMAIN_ADMIN:
            self._add(Kind.EVENT, DOMAIN_ADMIN, content)

    def lease_event(self, kind: str, row: LeaseColumns) -> None:
        """Report a change of the lease of `row`; also on the domain's administrative RP, if an open list of leases
        cannot see it otherwise."""
        alone = kind in (events.LEASE_RENEWED, events.LEASE_WARNED)
        data = {"what": row.lease_of, "id": row.pk, **asdict(LeaseAnswer.of(row))}
        self.event(kind, row.lease_at, data, domain_too=alone)

    def ensure(self, rp: str) -> None:
        """Make the log, or set its new bounds."""
        self._add(Kind.ENSURE, rp)

    def announce(self, rp: str, *, to_peers: bool = False) -> None:
        """Make gateways drop their caches of the RP; with `to_peers` the change is also sent to the domains that share the RP."""
        self._add(Kind.ANNOUNCE, rp, {"to_peers": True} if to_peers else None)

    def delete(self, rp: str) -> None:
        """Remove the log."""
        self._add(Kind.DELETE, rp)

    def forget(self, rp: str, subscription: str) -> None:
        """Remove the subscription's cursor."""
        self._add(Kind.FORGET, rp, {"subscription": subscription})

    def save(self) -> None:
        """Write the entries, and carry them out after the transaction's commit."""
        counts = {name: _COUNTS[name]() for name in sorted({name for names, _ in self._counted for name in names})}
        for names, data in self._counted:
            data |= {name: counts[name] for name in names}
        entries = OutboxEntry.objects.bulk_create(self._entries)

        def carry_out() -> None:
            try:
                if not self._patient:
                    require_answer()
                _carry_out(entries)
            except RedisError as error:
                logger.warning("outbox: effects are left to the sweep, the data plane does not answer: %s", error)

        if entries:
            # Robust: the change is committed, so any failure now is logged and left to the sweep, and does not reach
            # the caller.
            transaction.on_commit(carry_out, robust=True)
        audit_record_all(self._acts)

    def _add(self, kind: OutboxEntry.Kind, rp: str, content: Mapping[str, Any] | None = None) -> None:
        self._entries.append(OutboxEntry(kind=kind, rp=rp, content=dict(content or {}), created_at=self.now))


@contextmanager
def change(now: datetime, *, patient: bool = True) -> Iterator[Outbox]:
    """Run one transaction together with the outbox of its effects; `patient` as for Outbox."""
    with transaction.atomic():
        outbox = Outbox(now, patient=patient)
        yield outbox
        outbox.save()


def outbox_relay(*, now: datetime | None = None) -> int:
    """Carry out effects that a crash or an outage left, oldest first, at most RELAY_BATCH entries. Returns their
    number.

    Raises redis.RedisError when the data plane cannot be reached; all entries stay then.
    """
    now = now or timezone.now()
    if not is_due(_first_entry(), now - timedelta(seconds=RELAY_AFTER_S)):
        return 0
    left = OutboxEntry.objects.filter(created_at__lte=now - timedelta(seconds=RELAY_AFTER_S))
    entries = list(left.order_by("id")[:RELAY_BATCH])
    refused = _carry_out(entries)
    late = [entry for entry in refused if entry.created_at < now - timedelta(seconds=GIVE_UP_AFTER_S)]
    for entry in late:
        logger.error("outbox: gave up %s for %s, refused since %s", entry.kind, entry.rp, entry.created_at)
    _remove([entry.pk for entry in late])
    return len(entries) - len(refused)


@remembered
def _first_entry() -> datetime | None:
    return OutboxEntry.objects.order_by("created_at").values_list("created_at", flat=True).first()


def _carry_out(entries: Sequence[OutboxEntry]) -> list[OutboxEntry]:
    """Carry out and remove `entries`; entries that the data plane refuses, or that are unreadable, are returned and
    stay.

    First the events, one append per log, then the rest in order: a log's last event is appended before its deletion is
    announced.
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
            except (ResponseError, NoLog, KeyError, ValueError) as error:
                if len(group) > 1 and not isinstance(error, ResponseError):  # one of them causes the error, not all
                    refused += [left for entry in group for left in _carry_out([entry])]
                    continue
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
            control.append(entry.rp, [events.event_of(each.content) for each in group], events.admin_history(entry.rp))
        case Kind.ENSURE:
            bounds = log_bounds(entry.rp)
            if bounds is not None:
                control.ensure_log(entry.rp, bounds)
        case Kind.ANNOUNCE:
            control.announce_change(entry.rp)
            if entry.content.get("to_peers"):
                rp_changed(entry.rp)
        case Kind.DELETE:
            control.delete_log(entry.rp)
        case Kind.FORGET:
            control.subscription_forget(entry.rp, entry.content["subscription"])


def _remove(ids: Sequence[int]) -> None:
    if ids:  # Django begins a transaction to delete nothing
        OutboxEntry.objects.filter(id__in=ids).delete()
