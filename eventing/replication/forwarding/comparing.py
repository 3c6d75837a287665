"""Comparing what is held with what peers hold, by the links' vectors: it finds what a lost wake-up left undone, and the backlogs that
are shown.

A comparison visits the RPs shared with a peer a page at a time, so that each costs little; with peers to which delivery fails, and the first time,
it visits all of them at once.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.events import vectors
from eventing.core.events.feeds import Feed
from eventing.log import federated, watermarks
from eventing.log.federated import LogHead
from eventing.overlay import link_planning
from eventing.overlay.link_planning import LinkPlan
from eventing.replication.forwarding.new_events import held
from eventing.replication.selectors.replicas import LINKS_MAX, links_of_peer
from eventing.store.waiting_vectors import vectors_note

OLDEST_MAX = 200  # RPs of a page at which the oldest waiting event is searched
COMPARISONS_MAX = 2000  # bound: peers and acquaintances whose comparisons a process remembers; all are begun anew
UNDER_WAY_S = 2.0  # events that were stored since then are being sent, and no backlog
PEERS_AT_ONCE = 16  # whose pages are in memory together


class ComparedPeer(NamedTuple):
    """Findings of a comparison with a peer.

    Attributes:
        lacking: the RPs with something to send, of those that were compared now.
        backlog: events that the peer is to be sent, of all RPs as compared last.
        oldest_at: when the oldest of them was stored here; None where that is not known.
    """

    lacking: list[str]
    backlog: int
    oldest_at: datetime | None


class PageBacklog(NamedTuple):
    """Lack of a page of RPs: the number of events, and when the oldest of them was stored (Unix seconds)."""

    events: int
    oldest_at: float | None


NOTHING = PageBacklog(0, None)


@dataclass(slots=True)
class PeerComparison:
    """The comparison with one peer, a page of LINKS_MAX RPs at a time.

    Attributes:
        after: where the next page begins; empty at the beginning of a round.
        pages: what was found last, by where the page begins.
        visited: pages of this round.
    """

    after: str = ""
    pages: dict[str, PageBacklog] = field(default_factory=dict)
    visited: set[str] = field(default_factory=set)

    def page_compared(self, rps: Sequence[str], found: PageBacklog) -> bool:
        """Note what was found about the RPs of the page that began at `after`; return whether it was the last one of the round."""
        self.pages[self.after] = found
        self.visited.add(self.after)
        is_last = len(rps) < LINKS_MAX
        if is_last:
            self.pages = {after: page for after, page in self.pages.items() if after in self.visited}
            self.visited = set()
        self.after = "" if is_last else rps[-1]
        return is_last


@per_process
def _compared() -> dict[str, PeerComparison]:
    """Comparisons by peer; the first one of a process is whole."""
    return {}


def compare_anew(peer: str) -> None:
    """Have the next comparison with the peer visit everything."""
    _compared().pop(peer, None)


def peers_compare(peers: Sequence[str], failing: Collection[str]) -> dict[str, ComparedPeer]:
    """Compare the next page of what is shared with each of these peers, everything with the `failing` ones. Raises redis.RedisError."""
    compared = _compared()
    if len(compared.keys() | set(peers)) > COMPARISONS_MAX:
        compared.clear()
    whole = {peer for peer in peers if peer in failing or peer not in compared}
    for peer in whole:
        compared[peer] = PeerComparison()
    lacking: dict[str, list[str]] = {peer: [] for peer in peers}
    left = list(peers)
    while left:
        some, left = left[:PEERS_AT_ONCE], left[PEERS_AT_ONCE:]
        pages = {peer: links_of_peer(peer, after=compared[peer].after) for peer in some}
        for peer, (behind, found) in _pages_compared(pages, failing).items():
            lacking[peer] += behind
            if not compared[peer].page_compared(pages[peer], found) and peer in whole:
                left.append(peer)
    return {peer: _compared_peer(lacking[peer], compared[peer].pages.values()) for peer in peers}


def _compared_peer(lacking: list[str], pages: Collection[PageBacklog]) -> ComparedPeer:
    oldest_at = min((page.oldest_at for page in pages if page.oldest_at is not None), default=None)
    at = None if oldest_at is None else datetime.fromtimestamp(oldest_at, UTC)
    return ComparedPeer(lacking, sum(page.events for page in pages), at)


def _pages_compared(
    pages: Mapping[str, Sequence[str]], failing: Collection[str]
) -> dict[str, tuple[list[str], PageBacklog]]:
    """Return for each peer those RPs of its page with something to send to it, and the backlog of all of them: two round trips."""
    now = time.time()
    known = watermarks.links_of_peers({peer: rps for peer, rps in pages.items() if rps})
    every = list(dict.fromkeys(rp for rps in pages.values() for rp in rps))
    heads = dict(zip(every, federated.heads(every), strict=True))
    announced: dict[str, list[str]] = {}
    found: dict[str, tuple[list[str], PageBacklog]] = {}
    for peer, rps in pages.items():
        behind: list[str] = []
        backlog = _Backlog(now)
        for rp in rps:
            head = heads[rp]
            if head is None:
                continue
            link = known[peer][rp]
            plan = link_planning.plan(link, held(head), now=now)
            waits = plan is LinkPlan.VECTOR and not link_planning.asks(link, now=now)
            if waits:
                announced.setdefault(peer, []).append(rp)
            elif plan is not LinkPlan.NOTHING:
                behind.append(rp)
            if not link.met:
                continue
            if peer in failing:
                backlog.add(rp, link.theirs, head)
            elif not waits:  # what is only announced, or is presumed to be there, the peer mostly has from elsewhere
                backlog.add(rp, vectors.merged(link.theirs, link.presumed.upto), head)
        found[peer] = behind, backlog.found()
    if announced:
        vectors_note(announced, now)
    return found


class _Backlog:
    """The backlog of a page, in the making."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._events = 0
        self._waiting: list[tuple[str, Mapping[str, int], str]] = []

    def add(self, rp: str, theirs: Mapping[str, int], head: LogHead) -> None:
        """Add what the peer lacks at an RP."""
        own = Feed(config().domain, head.epoch).key
        lacking = vectors.distance(theirs, {**head.foreign, own: head.own})
        self._events += lacking
        if lacking and len(self._waiting) < OLDEST_MAX:
            self._waiting.append((rp, theirs, own))

    def found(self) -> PageBacklog:
        """Return the backlog; reads when the oldest event was stored. Events that are all under way are none."""
        oldest_at = federated.oldest_lacking(self._waiting) if self._waiting else None
        all_dated = len(self._waiting) < OLDEST_MAX
        if all_dated and oldest_at is not None and oldest_at > self._now - UNDER_WAY_S:
            return NOTHING
        return PageBacklog(self._events, oldest_at)
