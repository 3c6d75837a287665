"""Storing the directory: batches of new records, and of domains that left. Soft: comparisons restore what a crash loses."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from eventing.membership.models import DirectoryDomain
from eventing.membership.rules.records import fingerprint_of, record_bytes
from eventing.membership.selectors.map_rows import map_domains
from eventing.membership.services.map_changes import map_report
from eventing.outbox.services import Outbox, change
from eventing.overlay.directory_records import DomainRecord

REMEMBERED_MAX = 40_000  # bound: domains whose identity keys are remembered; those that left first are forgotten
_CHANGED = ["record", "version", "url", "zone", "capacity", "sponsor", "issued_at", "expires_at", "held"]


def directory_store(
    records: Iterable[DomainRecord], left: Collection[str] = (), *, now: datetime, held: bool = True
) -> None:
    """Store records that are newer, and mark domains that left the directory; report what changed on the map.

    Args:
        held: whether the records are in the directory; False for those of which only the keys count.
    """
    rows = [_row(record, now, held) for record in records]
    names = list(dict.fromkeys([*(row.name for row in rows), *left]))
    with change(now, patient=False) as outbox:
        before = map_domains(names)
        DirectoryDomain.objects.bulk_create(
            rows, batch_size=100, update_conflicts=True, unique_fields=["name"], update_fields=_CHANGED
        )
        if left:
            DirectoryDomain.objects.filter(name__in=list(left)).update(held=False)
        map_report(outbox, before, map_domains(names))


def directory_convict(name: str, *, outbox: Outbox) -> None:
    """Mark a domain that was proved to have signed contradictory statements."""
    before = map_domains([name])
    DirectoryDomain.objects.filter(name=name, convicted_at=None).update(convicted_at=outbox.now)
    map_report(outbox, before, map_domains([name]))


def directory_forget() -> int:
    """Forget the keys of domains that left first, beyond REMEMBERED_MAX. Returns how many."""
    beyond = DirectoryDomain.objects.count() - REMEMBERED_MAX
    if beyond <= 0:
        return 0
    first = DirectoryDomain.objects.filter(held=False).order_by("expires_at").values_list("name", flat=True)
    return DirectoryDomain.objects.filter(name__in=list(first[: min(beyond, 500)])).delete()[0]


def directory_leave() -> None:
    """Empty the directory. Identity keys of other domains stay remembered, and the version of the own record, which the next one exceeds."""
    DirectoryDomain.objects.update(held=False)


def _row(record: DomainRecord, now: datetime, held: bool) -> DirectoryDomain:
    return DirectoryDomain(
        name=record.domain,
        fingerprint=fingerprint_of(record),
        record=record_bytes(record),
        version=record.version,
        url=record.url,
        zone=record.zone,
        capacity=record.capacity,
        sponsor="" if record.sponsorship is None else record.sponsorship.sponsor,
        issued_at=datetime.fromtimestamp(record.issued_s, UTC),
        expires_at=datetime.fromtimestamp(record.expires_s, UTC),
        held=held,
        admitted_at=now,
    )
