"""Reads of shared durable subscriptions: the records held here, and the delivering domain."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from eventing.conf import config
from eventing.core.container import memoized
from eventing.core.signing import Signed
from eventing.log.shared_subscriptions import SubscriptionKey, read_all
from eventing.overlay import takeover
from eventing.peering.selectors.domain_documents import domain_document
from eventing.rps.rules.statements import unpacked
from eventing.subscriptions.models import SharedSubscription, Subscription
from eventing.subscriptions.ports import admitted_url
from eventing.subscriptions.rules.shared_subscriptions import Record, record_read
from eventing.subscriptions.shapes import SharedState

RECORDS_CACHED = 10_000


def record_of(shared: SharedSubscription) -> Record:
    """Return the record of a row."""
    return _read(bytes(shared.statement))


def statement_of(shared: SharedSubscription) -> Signed:
    """Return the record as its keeper signed it."""
    return unpacked(bytes(shared.statement))


def shared_ids() -> Iterator[str]:
    """Return the ids of all shared subscriptions held here."""
    return SharedSubscription.objects.values_list("id", flat=True).iterator()


def shared_kept(ids: Sequence[str]) -> dict[str, SharedSubscription]:
    """Return those of the ids that are held here, ended ones among them."""
    return SharedSubscription.objects.in_bulk(ids)


def shared_running(ids: Iterable[str]) -> dict[str, tuple[SharedSubscription, Subscription]]:
    """Return those of the ids that are valid here, with their rows."""
    wanted = list(ids)
    shared = SharedSubscription.objects.filter(ended=False).in_bulk(wanted)
    rows = Subscription.objects.in_bulk(list(shared))
    return {one: (shared[one], rows[one]) for one in wanted if one in shared and one in rows}


def url_of(rp: str, domain: str) -> str:
    """Return the address of a domain that participates in the RP; empty if not known."""
    if domain == config().domain:
        return config().base_url
    document = domain_document(domain)
    if document is not None and document.url:
        return document.url
    return admitted_url(rp, domain)


def shared_shown(row: Subscription) -> SharedState | None:
    """Return the state of a shared subscription; None for one that only this domain holds."""
    shared = SharedSubscription.objects.filter(id=row.id).first() if row.keeper else None
    if shared is None:
        return None
    kept = read_all([SubscriptionKey(row.at, row.id)])[0]
    standing, me, now_ms = kept.standing, config().domain, int(time.time() * 1000)
    delivers: str | None = None
    if standing is not None:
        delivers = me if takeover.delivers(standing, me, now_ms) else takeover.elsewhere(standing, me, now_ms) or None
    record = record_of(shared)
    return SharedState(
        keeper=record.keeper,
        holders=list(record.holders),
        delivers=delivers,
        term=standing.term if standing is not None else 0,
        acked=kept.acked,
    )


@memoized(maxsize=RECORDS_CACHED)
def _read(packed: bytes) -> Record:
    return record_read(unpacked(packed))
