"""Sweeping: what a lost wake-up, a crash or a failure left undone is found by comparing what is held with what each
peer holds.

It needs nothing that a crash may have lost. Without faults it finds nothing; what it finds, it forwards.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from django.utils import timezone

from eventing.core.container import per_process
from eventing.log import watermarks
from eventing.peering.models import DeliveryColumns
from eventing.peering.rules.deliveries import Failure
from eventing.peering.selectors.deliveries import deliveries_held, delivery_due
from eventing.peering.selectors.partners import partners
from eventing.peering.services.deliveries import backlog_noted, deliveries_report
from eventing.replication.forwarding import holding, probing, wakeups
from eventing.replication.forwarding.comparing import compare_anew, peers_compare
from eventing.replication.forwarding.new_events import timers_expired, vectors_still_wait
from eventing.replication.forwarding.vector_times import vector_times
from eventing.replication.selectors.replicas import LINKS_MAX, links_of_peer
from eventing.replication.services.replica_statements import links_pending
from eventing.store import connection, peer_state
from eventing.store.sweep_notes import sweep_notes
from eventing.store.waiting_vectors import vectors_take

# Everything at once while delivery fails, after an outage and at the start; timers are checked in every sweep.
COMPARED_S = 5  # seconds between two comparisons of what is shared with a peer, LINKS_MAX RPs at a time


def peers_sweep() -> int:
    """Wake forwarding wherever a peer lacks something, or a link's timer has expired. Returns how many peers were
    woken.
    """
    _recover()
    now = timezone.now()
    held = deliveries_held()
    failing = {name: row for name, row in held.items() if row.failures}
    for name in failing:
        if not peer_state.failing(name):  # Redis has lost the note of it
            peer_state.failing_set(name, True)
    probing.watch(_cut_off(failing.values()))
    woken, noted = 0, False
    peers = partners()
    names = [peer.name for peer in peers]
    notes = sweep_notes(names, COMPARED_S)
    pending: dict[str, list[str]] = {}
    if notes.compared:  # changes wake peers themselves, and all links are looked at: 8 ms for 8,000
        for name, rp in links_pending():
            pending.setdefault(name, []).append(rp)
    due = _vectors_due(notes.vectors_since) | _timers_due(notes.timers_at)
    compared = peers_compare([name for name in names if name in notes.compared or name in failing], failing)
    for peer in peers:
        delivery = failing.get(peer.name)
        behind = pending.get(peer.name, [])
        if peer.name in compared:
            lacking, backlog, oldest_at = compared[peer.name]
            behind += lacking
            noted |= backlog_noted(peer=peer.name, backlog=backlog, oldest_at=oldest_at, now=now, held=held)
        if delivery is not None and not delivery_due(delivery, peer, now, False):
            continue
        wanted = behind or delivery is not None or peer.name in due
        if wanted and not peer_state.paused(peer.name):
            wakeups.wake(peer.name, behind, anyway=True)
            woken += 1
    deliveries_report(now=now, held=None if noted else held)
    return woken


def _vectors_due(waiting: Mapping[str, float]) -> set[str]:
    """Return those peers for which vectors have waited for long enough (overlay/announcements.py), and still help; `waiting`: since when."""
    now = time.time()
    due = [peer for peer, since in waiting.items() if vector_times().due_after(peer, since, now) <= now]
    return {peer for peer in due if vectors_still_wait(peer, vectors_take(peer, wakeups.RPS_MAX))}


def _timers_due(expiring: Mapping[str, float]) -> set[str]:
    """Return those peers with a link whose timer has expired, and for which something is to be done then. Most timers wait for what
    another link has brought meanwhile.
    """
    now = time.time()
    return {
        peer
        for peer, at in expiring.items()
        if at <= now and timers_expired(peer, watermarks.links_due(peer, now, wakeups.RPS_MAX))
    }


def _cut_off(failing: Iterable[DeliveryColumns]) -> dict[str, str]:
    """Return the addresses of the unreachable peers by name: the route to each of them is probed (probing.py)."""
    cut = set(peer_state.cut_off([row.partner for row in failing if row.failure == Failure.UNREACHABLE]))
    return {peer.name: peer.url for peer in partners() if peer.name in cut} if cut else {}


class _Outages:
    """Number of failed calls to Redis in this process at the last complete comparison."""

    seen = 0


_outages = per_process(_Outages)


def _recover() -> None:
    """Release the locks of turns that an outage of Redis cut short, and compare everything at once: wake-ups may be
    lost, too.
    """
    failures = connection.failures().count
    names = {peer.name for peer in partners()} if failures != _outages().seen else set()
    names.update(wakeups.forwarding_locks_recover())
    if names:
        peer_state.compare_again(sorted(names))
        for name in names:
            compare_anew(name)
    _outages().seen = failures


def begin_anew() -> None:
    """Reset at the start of the forwarding process: the former process's turns are over, and peers' vectors are
    deleted, because this domain may have been restored from a copy.

    Each peer is asked anew, before anything new is sealed (holding.py), at the cost of one vector per RP: in the first
    sweep, not only COMPARED_S after the last comparison of the former process.
    """
    holding.begin()
    for peer in partners():
        peer_state.compare_again([peer.name])
        for rps in _shared(peer.name):
            holding.hold(rps)
        watermarks.links_drop(peer.name)
        peer_state.peer_lock_drop(peer.name)


def _shared(peer: str) -> Iterator[list[str]]:
    """Yield the RPs shared with the peer, LINKS_MAX at a time."""
    after = ""
    while rps := links_of_peer(peer, after=after):
        yield rps
        if len(rps) < LINKS_MAX:
            return
        after = rps[-1]
