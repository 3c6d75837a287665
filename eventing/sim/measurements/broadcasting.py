"""Broadcasting in simulations: the fate of each event."""

from __future__ import annotations

from array import array

from eventing.overlay.dissemination_messages import RunReceived
from eventing.overlay.machine import Id
from eventing.sim.measurements.base import Values, percentile

TREE_WARM = 20
"""Events of one origin after which its tree counts as warm."""


def feed_of(domain: int) -> str:
    """The key of a domain's feed."""
    return f"{domain:0>16}"


class EventFate:
    """The fate of one event.

    Attributes:
        at: when it was published, in the world's time.
        meant: domains that ran then, the origin left out.
        delays_s: of the domains that it reached, in the order of arrival.
        copies: redundant ones.
        hops: of the longest path of a first arrival.
        last_hop: of the path of the last arrival.
    """

    __slots__ = ("at", "copies", "delays_s", "feed", "hops", "last_hop", "meant", "sequence")

    def __init__(self, feed: str, sequence: int, at: float, meant: int) -> None:
        self.feed, self.sequence, self.at, self.meant = feed, sequence, at, meant
        self.delays_s = array("f")
        self.copies = self.hops = self.last_hop = 0


class Fates:
    """The events of a run, by feed and sequence."""

    def __init__(self) -> None:
        self.all: list[EventFate] = []
        self._by_feed: dict[str, list[EventFate]] = {}

    def published(self, feed: str, at: float, meant: int) -> EventFate:
        """Note a new event."""
        of = self._by_feed.setdefault(feed, [])
        fate = EventFate(feed, len(of) + 1, at, meant)
        of.append(fate)
        self.all.append(fate)
        return fate

    def received(self, domain: Id, event: RunReceived, now: float) -> None:
        """Note the arrival of a run."""
        run = event.run
        of = self._by_feed.get(run.feed, ())
        for fate in of[run.first + run.withheld - 1 : run.last]:
            if not event.new:
                fate.copies += 1
                continue
            fate.delays_s.append(now - fate.at)
            fate.last_hop = len(run.path)
            fate.hops = max(fate.hops, fate.last_hop)

    def arrived_within(self, within_s: float) -> float:
        """Return the share of all arrivals that there could be, of those within a time."""
        arrived = sum(1 for fate in self.all for delay in fate.delays_s if delay <= within_s)
        return arrived / max(1, sum(fate.meant for fate in self.all))

    def values(self, of: list[EventFate]) -> Values:
        """Values over some events."""
        if not of:
            return {}
        ends = [sorted(fate.delays_s) for fate in of]
        pooled = sorted(delay for delays in ends for delay in delays)
        arrived = sum(len(fate.delays_s) for fate in of)
        return {
            "events": len(of),
            "reached": arrived / max(1, sum(fate.meant for fate in of)),
            "rmr": sum(fate.copies for fate in of) / max(1, arrived),
            "hops": max(fate.hops for fate in of),
            "hops_mean": sum(fate.hops for fate in of) / len(of),
            "last_hop": max(fate.last_hop for fate in of),
            "last_hop_mean": sum(fate.last_hop for fate in of) / len(of),
            "t50_s": max(percentile(delays, 0.5) for delays in ends),
            "t99_s": max(percentile(delays, 0.99) for delays in ends),
            "p99_s": percentile(pooled, 0.99),
            "last_s": max(delays[-1] if delays else float("nan") for delays in ends),
        }
