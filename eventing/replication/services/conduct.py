"""Deeds of other domains as forwarding sees them, gathered for the process of the overlay, which scores them (overlay/scores.py).

The life of a deed: a run arrives, is refused, or stays away -> `conduct_note` counts it in memory by rendezvous point, peer and kind ->
within FLUSH_S, at once for a fault, the counts go to the process of the overlay, by region. Nothing here waits, and where no process runs
the overlay, nothing is scored.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from django.utils import timezone

from eventing.core.container import per_process
from eventing.membership.rules.observations import LINK, DeedObserved
from eventing.membership.services.observations import observed
from eventing.overlay.scores import Deed
from eventing.peering.rules.misbehaviour import Kind
from eventing.replication.selectors.forwarding import participations
from eventing.replication.selectors.regions import region_of

FLUSH_S = 5.0
FAULTS_S = 0.5
"""Faults are gathered for this long: a request with many of them is one observation of each kind."""
PACE_S = 20.0
"""Of the deeds that a busy machine may cause as well, one counts per peer and this time: only a fault that lasts has an effect."""
PACED = frozenset({Deed.SILENT, Deed.BROKEN_PROMISE})
PACED_MAX = 2000  # bound: peers whose last deeds are remembered for their pace; all are forgotten
HELD_MAX = 2000  # bound: counts of deeds that wait for their flush; further ones are not scored
INVALID: frozenset[Kind] = frozenset({"forged", "tampered", "malformed", "false-record"})
"""Misbehaviour that a carrier could have found itself before it sent something on."""
UNSUPPLIED: frozenset[Kind] = frozenset({"false-vector"})

FLAPPING = 4
"""Deeds that one report of flapping counts for: more than are free, as a report is made of several."""

Key = tuple[str, str, Deed]


class _Conduct:
    """Counts of this process by rendezvous point (empty: none), peer and deed. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[Key, int] = {}
        self._flush_at = 0.0
        self._paced: dict[tuple[str, Deed], float] = {}

    def paced(self, peer: str, deed: Deed, now: float) -> bool:
        """Return True if a deed does not count, as one of the kind has just been counted."""
        with self._lock:
            if now - self._paced.get((peer, deed), float("-inf")) < PACE_S:
                return True
            if len(self._paced) >= PACED_MAX:
                self._paced.clear()
            self._paced[peer, deed] = now
            return False

    def note(self, deed: Deed, peer: str, counts: Mapping[str, int], now: float) -> dict[Key, int]:
        """Add to the counts of rendezvous points; return what is to be flushed."""
        soon_s = FLUSH_S if deed is Deed.FIRST else FAULTS_S
        with self._lock:
            held = self._counts
            self._flush_at = min(self._flush_at, now + soon_s) if held else now + soon_s
            for rp, count in counts.items():
                key = (rp, peer, deed)
                if key in held or len(held) < HELD_MAX:
                    held[key] = held.get(key, 0) + count
        return self.due(now)

    def due(self, now: float) -> dict[Key, int]:
        """Take the counts if it is time."""
        with self._lock:
            if not self._counts or now < self._flush_at:
                return {}
            found, self._counts = self._counts, {}
            return found


_conduct = per_process(_Conduct)


def conduct_note(deed: Deed, *, peer: str, rp: str = "", count: int = 1) -> None:
    """Count a deed of a peer at a rendezvous point; empty: of the link as a whole."""
    now, conduct = time.monotonic(), _conduct()
    if peer and count and not (deed in PACED and conduct.paced(peer, deed, now)):
        _flush(conduct.note(deed, peer, {rp: count}, now))


def supplies_note(peer: str, counts: Mapping[str, int]) -> None:
    """Count the events that a peer was the first to bring, by rendezvous point."""
    if counts:
        _flush(_conduct().note(Deed.FIRST, peer, counts, time.monotonic()))


def conduct_flush() -> None:
    """Hand over what waits, if it is time; called by the sweeps, for the last deeds before a quiet time."""
    _flush(_conduct().due(time.monotonic()))


def misbehaviour_conduct(kind: Kind, carrier: str, rp: str, count: int) -> None:
    """Take noted misbehaviour as a deed of its carrier; see peering/ports.py."""
    if kind in INVALID:
        conduct_note(Deed.INVALID, peer=carrier, rp=rp, count=count)
    elif kind in UNSUPPLIED:
        conduct_note(Deed.BROKEN_PROMISE, peer=carrier, rp=rp, count=count)
    elif kind == "false-loss":
        conduct_note(Deed.SLOW, peer=carrier, rp=rp, count=count)
    elif kind == "flapping":
        conduct_note(Deed.FLAPPING, peer=carrier, count=FLAPPING * count)


def _flush(counts: dict[Key, int]) -> None:
    if not counts:
        return
    now = timezone.now()
    who = participations({rp for rp, _, _ in counts if rp})
    regions = {rp: region_of(one, now) if one.home else LINK for rp, one in who.items()}
    by_region: dict[tuple[str, str, Deed], int] = {}
    for (rp, peer, deed), count in counts.items():
        key = (regions.get(rp, LINK), peer, deed)
        by_region[key] = by_region.get(key, 0) + count
    observed([DeedObserved(region, peer, deed.name, count) for (region, peer, deed), count in by_region.items()])
