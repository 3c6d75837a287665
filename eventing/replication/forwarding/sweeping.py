"""Sweeping: what a lost wake-up, a crash or a failure left is found by comparing what is held with what each peer holds.

It needs nothing that a crash may have lost. Where nothing is wrong it finds nothing; what it finds, it has forwarded.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.events import vectors
from eventing.core.events.feeds import Feed
from eventing.log import control, federated
from eventing.overlay import broadcast
from eventing.overlay.broadcast import Plan
from eventing.peering.models import Peer, PeerDelivery
from eventing.peering.rules.deliveries import PROBED, STOPS, Failure
from eventing.peering.selectors.deliveries import deliveries_failing
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.peers import peers_active
from eventing.peering.services.deliveries import backlog_noted, deliveries_report
from eventing.replication.forwarding import holding, probing, wakeups, watermarks
from eventing.replication.forwarding.inbound import vector_of
from eventing.replication.selectors.replicas import LINKS_MAX, links_of_peer
from eventing.replication.services.replica_statements import untold_links
from eventing.store import counted

OLDEST_MAX = 200  # RPs of a peer at which the oldest event that waits is looked for
COMPARED_S = 5  # between two comparisons of all that is shared with a peer; timers are looked at in every sweep


def may_try(delivery: PeerDelivery, peer: Peer, now: datetime, probed: bool) -> bool:
    """Whether a failing delivery may be tried now: it is time, the peer spoke to us, or something was changed since."""
    failure = Failure(delivery.failure)
    if probed and failure in PROBED:
        return True
    if failure in STOPS and delivery.stopped_at is not None:  # else an operator has it tried again
        stopped_at = delivery.stopped_at
        return peer.changed_at > stopped_at or _document_is_newer(peer.name, stopped_at)
    return delivery.next_try_at is None or delivery.next_try_at <= now


def peers_sweep() -> int:
    """Wake forwarding wherever a peer lacks something, or a link wants to be looked at. Returns how many peers were woken."""
    _recover()
    now = timezone.now()
    failing = {row.peer_id: row for row in deliveries_failing()}
    probing.watch(_cut_off(failing.values()))
    untold: dict[str, list[str]] = {}
    for name, rp in untold_links():
        untold.setdefault(name, []).append(rp)
    woken = 0
    for peer in peers_active():
        delivery = failing.get(peer.name)
        compare = bool(control.client().set(_key(peer.name), "1", nx=True, ex=COMPARED_S)) or delivery is not None
        behind = untold.get(peer.name, [])
        if compare:
            lacking, backlog, oldest_at = _behind(peer.name)
            behind += lacking
            backlog_noted(peer=peer.name, backlog=backlog, oldest_at=oldest_at, now=now)
        if delivery is not None and not may_try(delivery, peer, now, False):
            continue
        due = watermarks.next_due(peer.name)
        wanted = behind or delivery is not None or (due is not None and due <= time.time())
        if wanted and not wakeups.paused(peer.name):
            wakeups.wake(peer.name, behind, anyway=True)
            woken += 1
    deliveries_report(now=now)
    return woken


def _cut_off(failing: Iterable[PeerDelivery]) -> dict[str, str]:
    """The addresses of the peers that gave no answer at all, by name: the way to each of them is looked at (probing.py)."""
    cut = set(wakeups.cut_off([row.peer_id for row in failing if row.failure == Failure.UNREACHABLE]))
    return {peer.name: peer.url for peer in peers_active() if peer.name in cut} if cut else {}


class _Outages:
    """How many calls to Redis had failed in this process when all was compared last."""

    seen = 0


def _recover() -> None:
    """After an outage of Redis, end the turns that it cut short and compare everything at once: wake-ups may be lost, too."""
    failures = counted.failures()
    names = {peer.name for peer in peers_active()} if failures != _Outages.seen else set()
    names.update(wakeups.turns_recover())
    if names:
        control.client().delete(*map(_key, sorted(names)))
    _Outages.seen = failures


def begin_anew() -> None:
    """At the start of the process that forwards: whatever the one before it was at is over, and what peers said that they
    hold is forgotten, because this domain may have been put back from a copy.

    Each is asked anew, before anything new is sealed (holding.py), at the cost of one vector per RP: in the first sweep, not
    only when the last comparison of the process before is COMPARED_S ago.
    """
    holding.begin()
    for peer in peers_active():
        control.client().delete(_key(peer.name))
        for rps in _shared(peer.name):
            holding.hold(rps)
        watermarks.links_drop(peer.name)
        wakeups.turn_drop(peer.name)


def _behind(peer: str) -> tuple[list[str], int, datetime | None]:
    """The RPs at which something is to be said to the peer, how many events it lacks in all, and since when the oldest waits."""
    now = time.time()
    me = config().domain
    behind: list[str] = []
    backlog = 0
    waiting: list[tuple[str, Mapping[str, int], str]] = []
    for rps in _shared(peer):
        known = watermarks.links_read(peer, rps)
        for rp, head in zip(rps, federated.heads(rps), strict=True):
            if head is None:
                continue
            link = known[rp]
            if head.own > head.sealed or broadcast.plan(link, vector_of(me, head), now=now) is not Plan.NOTHING:
                behind.append(rp)
            if link.met:
                own = Feed(me, head.epoch).key
                lacking = vectors.distance(link.theirs, {**head.foreign, own: head.own})
                backlog += lacking
                if lacking and len(waiting) < OLDEST_MAX:
                    waiting.append((rp, link.theirs, own))
    oldest_at = federated.oldest_lacking(waiting) if waiting else None
    return behind, backlog, None if oldest_at is None else datetime.fromtimestamp(oldest_at, UTC)


def _shared(peer: str) -> Iterator[list[str]]:
    """The RPs shared with the peer, LINKS_MAX at a time."""
    after = ""
    while rps := links_of_peer(peer, after=after):
        yield rps
        if len(rps) < LINKS_MAX:
            return
        after = rps[-1]


def _document_is_newer(peer: str, moment: datetime) -> bool:
    document = domain_document(peer)
    return document is not None and document.issued_at > moment.timestamp()


def _key(peer: str) -> str:
    return f"herald:peer:{{{peer}}}:compared"
