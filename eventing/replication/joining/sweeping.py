"""Sweeping replicas: leases are renewed, links offered, and what somebody could not be told is tried again."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import groupby

from django.db import connection
from django.utils import timezone

from eventing.core.errors import HeraldError, Unavailable
from eventing.replication.joining.announcements import links_wake, tell_end, tell_withdrawals
from eventing.replication.joining.client import replica_renew
from eventing.replication.services.replica_ends import ends_due
from eventing.replication.services.replica_links import Offered, links_offer
from eventing.replication.services.replica_statements import untold_links
from eventing.replication.services.replicas import renewal_note_failed, replicas_to_renew
from eventing.replication.services.withdrawals import withdrawals_due
from eventing.rps.models import RendezvousPoint

SWEEP_ASK_S = 5.0  # for one answer in a sweep; other tasks wait for the worker meanwhile
SWEEP_S = 10.0  # of renewals in one sweep; what is left is for the next
TELL_S = (
    5.0  # of telling ends in one sweep, and again of telling withdrawals: neither waits for who is slow at the others
)
HOMES_AT_ONCE = 8  # whose leases are renewed at the same time
logger = logging.getLogger(__name__)


def replicas_sweep(*, now: datetime | None = None) -> int:
    """Offer links, send what peers have not been told, renew our leases, tell ends. Safe to run twice and side by side.

    Returns how many links began, leases were renewed, and ends and withdrawals were told.
    """
    now = now or timezone.now()
    offered = links_offer(now=now)
    links_wake([*offered, *(Offered(rp, peer) for peer, rp in untold_links())])
    renewed = _renewed(replicas_to_renew(now=now))
    return len(offered) + renewed + _ends_told(now) + _withdrawals_told(now)


def _renewed(rows: Sequence[RendezvousPoint]) -> int:
    """Renew leases, of several homes at the same time: a home that answers slowly delays its own only. Returns how many."""
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
        logger.exception("The leases of replicas of %s are not renewed now; they are tried again.", rows[0].home)
        return 0
    finally:
        connection.close()


def _renewed_at(rows: Sequence[RendezvousPoint], until: float) -> int:
    """Renew leases at one home, until it does not answer or the time is over. Returns how many."""
    renewed = 0
    for row in rows:
        if time.monotonic() > until:
            break
        # First, so that another sweep does not ask as well. What was left meanwhile must not be joined again.
        if not renewal_note_failed(rp=row.id):
            continue
        try:
            replica_renew(row, row.asked_s, timeout_s=SWEEP_ASK_S)
            renewed += 1
        except HeraldError as error:
            logger.warning("The lease of the replica %s of %s is not renewed: %s", row.id, row.home, error.detail)
            if isinstance(error, Unavailable):
                break
    return renewed


def _ends_told(now: datetime) -> int:
    """Tell peers of ends; one that does not answer is asked once in a sweep. Returns how many were told."""
    until = time.monotonic() + TELL_S
    silent: set[str] = set()
    told = 0
    for end in ends_due(now=now):
        if time.monotonic() > until:
            break
        told += tell_end(end, silent)
    return told


def _withdrawals_told(now: datetime) -> int:
    """Tell domains which admissions were taken back. Returns how many were told."""
    until = time.monotonic() + TELL_S
    told = 0
    for domain, rows in groupby(withdrawals_due(now=now), key=lambda row: row.domain):
        if time.monotonic() > until:
            break
        told += tell_withdrawals(domain, list(rows))
    return told
