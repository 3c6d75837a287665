"""Sweeping replicas: leases are renewed, links offered, and what somebody could not be told is tried again."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from itertools import groupby

from django.utils import timezone

from eventing.core.errors import HeraldError
from eventing.federation.replicas.replica_asking import replica_renew
from eventing.federation.replicas.replica_telling import links_wake, tell_end, tell_withdrawals
from eventing.services.rps.replica_ends import ends_due
from eventing.services.rps.replica_links import Offered, links_offer
from eventing.services.rps.replica_statements import untold_links
from eventing.services.rps.replicas import renewal_note_failed, replicas_to_renew
from eventing.services.rps.withdrawals import withdrawals_due

SWEEP_ASK_S = 5.0  # for one answer in a sweep; other tasks wait for the worker meanwhile
SWEEP_S = 10.0  # of network calls in one sweep; what is left is for the next
logger = logging.getLogger(__name__)


def replicas_sweep(*, now: datetime | None = None) -> int:
    """Offer links, send what peers have not been told, renew our leases, tell ends. Safe to run twice and side by side.

    Returns how many links began, leases were renewed, and ends and withdrawals were told.
    """
    now = now or timezone.now()
    until = time.monotonic() + SWEEP_S
    offered = links_offer(now=now)
    links_wake([*offered, *(Offered(rp, peer) for peer, rp in untold_links())])
    renewed = 0
    for row in replicas_to_renew(now=now):
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
    told = 0
    for end in ends_due(now=now):
        if time.monotonic() > until:
            break
        told += tell_end(end)
    for domain, rows in groupby(withdrawals_due(now=now), key=lambda row: row.domain):
        if time.monotonic() > until:
            break
        told += tell_withdrawals(domain, list(rows))
    return len(offered) + renewed + told
