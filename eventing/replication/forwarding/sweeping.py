"""Sweeping: what a lost wake-up, a crash or a failure left undone is found by comparing what is held with what each
peer holds.

It needs nothing that a crash may have lost. Without faults it finds nothing; what it finds, it forwards.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.events import vectors
from eventing.core.events.feeds import Feed
from eventing.log import federated, watermarks
from eventing.overlay import link_planning
from eventing.overlay.link_planning import LinkPlan
from eventing.peering.models import DeliveryColumns
from eventing.peering.rules.deliveries import Failure
from eventing.peering.selectors.deliveries import deliveries_held, delivery_due
from eventing.peering.selectors.partners import partners
from eventing.peering.services.deliveries import backlog_noted, deliveries_report
from eventing.replication.forwarding import holding, probing, wakeups
from eventing.replication.forwarding.new_events import held, timers_expired, vectors_still_wait
from eventing.replication.forwarding.vector_times import vector_times
from eventing.replication.selectors.replicas import LINKS_MAX, links_of_peer
from eventing.replication.services.replica_statements import links_pending
from eventing.store import connection, peer_state
from eventing.store.waiting_vectors import vectors_note, vectors_take, vectors_waiting

OLDEST_MAX = 200  # RPs of a page at which the oldest waiting event is searched
# Everything at once while delivery fails, after an outage and at the start; timers are checked in every sweep.
COMPARED_S = 5  # seconds between two comparisons of what is shared with a peer, LINKS_MAX RPs at a time
COMPARISONS_MAX = 2000  # bound: peers and acquaintances whose comparisons a process remembers; all are begun anew


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
    pending: dict[str, list[str]] = {}
    for name, rp in links_pending():
        pending.setdefault(name, []).append(rp)
    woken, noted = 0, False
    peers = partners()
    names = [peer.name for peer in peers]
    begun = peer_state.compare_begin(names, COMPARED_S)
    due = _vectors_due(names) | _timers_due(names)
    for peer in peers:
        delivery = failing.get(peer.name)
        behind = pending.get(peer.name, [])
        if peer.name in begun or delivery is not None:
            lacking, backlog, oldest_at = _behind(peer.name, whole=delivery is not None)
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


def _vectors_due(peers: Sequence[str]) -> set[str]:
    """Return those of these peers for which vectors have waited for long enough (overlay/announcements.py), and still help."""
    now = time.time()
    due = [peer for peer, since in vectors_waiting(peers).items() if vector_times().due_after(peer, since, now) <= now]
    return {peer for peer in due if vectors_still_wait(peer, vectors_take(peer, wakeups.RPS_MAX))}


def _timers_due(peers: Sequence[str]) -> set[str]:
    """Return those of these peers with a link whose timer has expired, and for which something is to be done then. Most timers wait for what
    another link has brought meanwhile.
    """
    now = time.time()
    return {
        peer
        for peer, at in watermarks.next_due(peers).items()
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
            _compared().pop(name, None)
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


class PageBacklog(NamedTuple):
    """Lack of a page of RPs: the number of events, and when the oldest of them was stored (Unix seconds)."""

    events: int
    oldest_at: float | None


@dataclass(slots=True)
class SweepComparison:
    """The comparison with one peer, a page of LINKS_MAX RPs at a time.

    Attributes:
        after: where the next page begins; empty at the beginning of a round.
        pages: what was found last, by where the page begins.
        visited: pages of this round.
    """

    after: str = ""
    pages: dict[str, PageBacklog] = field(default_factory=dict)
    visited: set[str] = field(default_factory=set)


@per_process
def _compared() -> dict[str, SweepComparison]:
    """Comparisons by peer; the first one of a process is whole."""
    return {}


def _behind(peer: str, *, whole: bool = True) -> tuple[list[str], int, datetime | None]:
    """Compare the next page of what is shared with the peer, or everything.

    Returns the RPs with something to send, and of all pages as compared last the number of events that the peer lacks,
    and the time of the oldest.
    """
    compared = _compared()
    if whole or peer not in compared:
        if len(compared) >= COMPARISONS_MAX:
            compared.clear()
        compared[peer], whole = SweepComparison(), True
    one, behind = compared[peer], []
    while True:
        rps = links_of_peer(peer, after=one.after)
        lacking, one.pages[one.after] = _page_behind(peer, rps)
        one.visited.add(one.after)
        behind += lacking
        done = len(rps) < LINKS_MAX
        if done:
            one.pages = {after: page for after, page in one.pages.items() if after in one.visited}
            one.visited = set()
        one.after = "" if done else rps[-1]
        if done or not whole:
            break
    oldest_at = min((page.oldest_at for page in one.pages.values() if page.oldest_at is not None), default=None)
    at = None if oldest_at is None else datetime.fromtimestamp(oldest_at, UTC)
    return behind, sum(page.events for page in one.pages.values()), at


def _page_behind(peer: str, rps: list[str]) -> tuple[list[str], PageBacklog]:
    """Return those of these RPs with something to send to the peer, and the backlog of all of them."""
    now = time.time()
    me = config().domain
    behind: list[str] = []
    announced: list[str] = []
    backlog = 0
    waiting: list[tuple[str, Mapping[str, int], str]] = []
    known = watermarks.links_read(peer, rps)
    for rp, head in zip(rps, federated.heads(rps), strict=True):
        if head is None:
            continue
        link = known[rp]
        plan = link_planning.plan(link, held(head), now=now)
        if plan is LinkPlan.VECTOR and not link_planning.asks(link, now=now):
            announced.append(rp)
        elif plan is not LinkPlan.NOTHING:
            behind.append(rp)
        if link.met:
            own = Feed(me, head.epoch).key
            lacking = vectors.distance(link.theirs, {**head.foreign, own: head.own})
            backlog += lacking
            if lacking and len(waiting) < OLDEST_MAX:
                waiting.append((rp, link.theirs, own))
    if announced:
        vectors_note({peer: announced}, now)
    return behind, PageBacklog(backlog, federated.oldest_lacking(waiting) if waiting else None)


def _shared(peer: str) -> Iterator[list[str]]:
    """Yield the RPs shared with the peer, LINKS_MAX at a time."""
    after = ""
    while rps := links_of_peer(peer, after=after):
        yield rps
        if len(rps) < LINKS_MAX:
            return
        after = rps[-1]
