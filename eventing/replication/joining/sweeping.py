"""Sweep of replicas: renews leases, offers links, and retries announcements that failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import groupby

from django.db import connection
from django.utils import timezone

from eventing.core.errors import ApplicationError, Unavailable
from eventing.replication.joining.announcements import announce_end, announce_withdrawals, links_wake
from eventing.replication.joining.client import replica_renew
from eventing.replication.joining.link_offers import links_offer_due
from eventing.replication.services.replica_ends import ends_due
from eventing.replication.services.replica_links import Offered
from eventing.replication.services.replica_statements import links_pending
from eventing.replication.services.replicas import renewal_note_failed, replicas_to_renew
from eventing.replication.services.withdrawals import withdrawals_due
from eventing.rps.models import RendezvousPoint

SWEEP_ASK_S = 5.0  # seconds for one answer in a sweep; other tasks wait for the worker meanwhile
SWEEP_S = 10.0  # bound: seconds of renewals in one sweep; the others are left to the next sweep
# bound: seconds of sending ends in one sweep, and of sending withdrawals; the others are left to the next sweep
TELL_S = 5.0  # for ends in one sweep, and again for withdrawals: neither waits for slow domains of the other
HOMES_AT_ONCE = 8  # homes whose leases are renewed concurrently
logger = logging.getLogger(__name__)


def replicas_sweep(*, now: datetime | None = None) -> int:
    """Offer links, send statements that peers lack, renew this domain's leases, announce ends. Safe to run twice and
    concurrently.

    Returns how many links began, leases were renewed, and ends and withdrawals were acknowledged.
    """
    now = now or timezone.now()
    offered = links_offer_due(now=now)
    links_wake([*offered, *(Offered(rp, peer) for peer, rp in links_pending())])
    renewed = _renewed(replicas_to_renew(now=now))
    return len(offered) + renewed + _announce_ends(now) + _announce_withdrawals(now)


def _renewed(rows: Sequence[RendezvousPoint]) -> int:
    """Renew leases, of several homes concurrently: a slow home delays only its own. Returns how many."""
    until = time.monotonic() + SWEEP_S
    by_home: dict[str, list[RendezvousPoint]] = {}
    for row in rows:
        by_home.setdefault(row.home, []).append(row)
    if len(by_home) <= 1:
        return sum(_renewed_at(some, until) for some in by_home.values())
    with ThreadPoolExecutor(HOMES_AT_ONCE, thread_name_prefix="renewal") as threads:
        return sum(threads.map(lambda some: _renewed_on_thread(some, until), by_home.values()))


def _renewed_on_thread(rows: Sequence[RendezvousPoint], until: float) -> int:
    try:
        return _renewed_at(rows, until)
    except Exception:
        logger.exception("The leases of replicas of %s could not be renewed; the renewal is retried.", rows[0].home)
        return 0
    finally:
        connection.close()


def _renewed_at(rows: Sequence[RendezvousPoint], until: float) -> int:
    """Renew leases at one home, until it does not answer or the time is over. Returns how many."""
    renewed = 0
    for row in rows:
        if time.monotonic() > until:
            break
        # First, so that another sweep does not ask as well. A replica that was ended meanwhile must not be joined
        # again.
        if not renewal_note_failed(rp=row.id):
            continue
        try:
            replica_renew(row, row.asked_s, timeout_s=SWEEP_ASK_S)
            renewed += 1
        except ApplicationError as error:
            logger.warning("The lease of the replica %s of %s was not renewed: %s", row.id, row.home, error.detail)
            if isinstance(error, Unavailable):
                break
    return renewed


def _announce_ends(now: datetime) -> int:
    """Send ends to peers; one that does not answer is asked once in a sweep. Returns how many were acknowledged."""
    until = time.monotonic() + TELL_S
    silent: set[str] = set()
    acknowledged = 0
    for end in ends_due(now=now):
        if time.monotonic() > until:
            break
        acknowledged += announce_end(end, silent)
    return acknowledged


def _announce_withdrawals(now: datetime) -> int:
    """Notify domains of withdrawn admissions. Returns how many were acknowledged."""
    until = time.monotonic() + TELL_S
    acknowledged = 0
    for domain, rows in groupby(withdrawals_due(now=now), key=lambda row: row.domain):
        if time.monotonic() > until:
            break
        acknowledged += announce_withdrawals(domain, list(rows))
    return acknowledged
