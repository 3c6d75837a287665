"""Reads of the stored directory: records, keys, chains of sponsors, pages."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Count
from django.utils import timezone

from eventing.core.container import per_process
from eventing.core.decoding import Undecodable
from eventing.core.errors import InvalidCursor
from eventing.core.names import DOMAIN_PATTERN
from eventing.membership.models import DirectoryDomain
from eventing.membership.rules.records import CHAIN_MAX, identity_of, keys_of, record_read
from eventing.overlay.directory_records import DomainRecord
from eventing.peering.ports import DirectoryRecord
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of
from eventing.sql.remembered import remembered

KEYS_CACHED_S = 20.0
"""A domain's keys are read again after this; a request with an unknown key reads them at once."""
KEYS_CACHED_MAX = 10_000  # bound: domains of the directory whose keys a process caches; all are read again
ZONES_MAX = 100  # bound: zones in a summary of the directory; the smallest are left out


def record_of(name: str) -> DirectoryRecord | None:
    """Return address, fingerprint and sponsor of a domain that is in the directory now, and not convicted; None for others."""
    rows = DirectoryDomain.objects.filter(name=name, held=True, convicted_at=None, expires_at__gt=timezone.now())
    row = rows.only("url", "fingerprint", "sponsor").first()
    return None if row is None else DirectoryRecord(row.url, row.fingerprint, row.sponsor)


def directory_record(name: str, *, expired: bool = False) -> DomainRecord | None:
    """Return the newest record of a domain; with `expired` also one that has left the directory."""
    row = _row_of(name)
    return None if row is None or not (row.held or expired) else _record(row)


@remembered
def _row_of(name: str) -> DirectoryDomain | None:
    return DirectoryDomain.objects.filter(name=name).only("record", "held").first()


def directory_records_of(names: Collection[str]) -> dict[str, DomainRecord]:
    """Return the records of those of these domains that are in the directory, by name."""
    rows = DirectoryDomain.objects.filter(name__in=names, held=True).only("name", "record")
    found = ((row.name, _record(row)) for row in rows)
    return {name: record for name, record in found if record is not None}


def directory_fingerprint(name: str) -> str | None:
    """Return the fingerprint of every domain that was ever admitted and is remembered; None for others."""
    return DirectoryDomain.objects.filter(name=name).values_list("fingerprint", flat=True).first()


def directory_identity(name: str) -> str | None:
    """Return the identity key (member `x`) of a domain, also of one that has left the directory; None if unknown."""
    record = directory_record(name, expired=True)
    return None if record is None else identity_of(record)


def directory_records() -> list[DomainRecord]:
    """Return all records of the directory, sponsors before those whom they sponsored."""
    rows = DirectoryDomain.objects.filter(held=True).order_by("admitted_at", "name").only("record")
    waiting = {record.domain: record for row in rows.iterator() if (record := _record(row)) is not None}
    found: dict[str, DomainRecord] = {}
    for name in list(waiting):
        chain = []
        while name in waiting:
            record = waiting.pop(name)
            chain.append(record)
            name = "" if record.sponsorship is None else str(record.sponsorship.sponsor)
        found.update((record.domain, record) for record in reversed(chain))
    return list(found.values())


def chain_of(name: str) -> list[DomainRecord]:
    """Return the records of a domain, of its sponsor, and so on up to a founder, at most CHAIN_MAX; sponsors may have left."""
    chain: list[DomainRecord] = []
    while name and len(chain) < CHAIN_MAX:
        record = directory_record(name, expired=True)
        if record is None or record in chain:
            break
        chain.append(record)
        name = "" if record.sponsorship is None else str(record.sponsorship.sponsor)
    return chain


def domain_row(name: str) -> DirectoryDomain | None:
    """Return the row of a domain, also of one that has left the directory."""
    return DirectoryDomain.objects.filter(name=name).first() if DOMAIN_PATTERN.fullmatch(name) else None


def domains_page(
    *, search: str = "", zone: str | None = None, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> Page[DirectoryDomain]:
    """Return a page of the directory by name.

    Args:
        search: a part of the name; empty for all.
        zone: only domains of this zone.

    Raises InvalidCursor.
    """
    rows = DirectoryDomain.objects.filter(held=True).order_by("name")
    if search:
        rows = rows.filter(name__contains=search)
    if zone is not None:
        rows = rows.filter(zone=zone)
    if cursor is not None:
        key = key_of("overlay-domains", cursor)
        if not DOMAIN_PATTERN.fullmatch(key):
            raise InvalidCursor("Use the `next` of the previous page, with the same filters.")
        rows = rows.filter(name__gt=key)
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of("overlay-domains", found[-1].name) if more else None)


def domains_count() -> int:
    """Return how many domains are in the directory."""
    return DirectoryDomain.objects.filter(held=True).count()


def zones_counted() -> list[tuple[str, int]]:
    """Return the zones with the most domains, each with how many it has."""
    rows = DirectoryDomain.objects.filter(held=True).values_list("zone").annotate(count=Count("name"))
    return [(zone, count) for zone, count in rows.order_by("-count", "zone")[:ZONES_MAX]]


def zones_of(names: list[str]) -> dict[str, str]:
    """Return the zones of these domains, as far as the directory has them."""
    return dict(DirectoryDomain.objects.filter(name__in=names).values_list("name", "zone"))


@per_process
def _keys() -> dict[str, tuple[float, Mapping[str, Mapping[str, Any]]]]:
    """Keys of domains with the time at which they were read."""
    return {}


def directory_keys(name: str, *, anew: bool = False) -> Mapping[str, Mapping[str, Any]]:
    """Return the keys with which a domain of the directory signs requests, by kid, at most KEYS_CACHED_S old; empty if it is not there.

    Args:
        anew: read them now.
    """
    cached, now = _keys(), time.monotonic()
    entry = cached.get(name)
    if entry is not None and now - entry[0] < KEYS_CACHED_S and not anew:
        return entry[1]
    record = directory_record(name)
    found = {} if record is None else keys_of(record)
    if len(cached) >= KEYS_CACHED_MAX:
        cached.clear()
    if found:
        cached[name] = (now, found)
    else:
        cached.pop(name, None)
    return found


def _record(row: DirectoryDomain) -> DomainRecord | None:
    try:
        return record_read(bytes(row.record))
    except Undecodable:
        return None
