"""Feeds that peers were asked for in this process: the other links wait until the asked peer had time to send them.

Of several links with the same announcement, whose timers end together, each would graft the feed, and each but one would bring a copy
(overlay/dissemination.py has the same rule). Another forwarder of this domain may ask a second peer: that costs one copy.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from eventing.core.container import per_process

ASKED_MAX = 20_000  # bound: pairs of RP and feed that are remembered; the oldest are forgotten, and a copy may arrive


class AskedFeeds:
    """The peer that was asked last for each feed, and until when the others wait. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()

    def elsewhere(self, rp: str, peer: str, feeds: Iterable[str], now: float) -> frozenset[str]:
        """Return those of the feeds that another peer was asked for and may still send."""
        with self._lock:
            if not self._asked:
                return frozenset()
            found = ((feed, self._asked.get((rp, feed))) for feed in feeds)
            return frozenset(feed for feed, asked in found if asked is not None and asked[0] != peer and now < asked[1])

    def note(self, rp: str, peer: str, feeds: Iterable[str], until: float) -> None:
        """Note that a peer is asked for feeds of an RP."""
        with self._lock:
            for feed in feeds:
                self._asked.pop((rp, feed), None)
                self._asked[rp, feed] = (peer, until)
            while len(self._asked) > ASKED_MAX:
                self._asked.popitem(last=False)

    def forget(self, peer: str) -> None:
        """Have the others asked at once: the peer does not answer."""
        with self._lock:
            for key in [key for key, (asked, _) in self._asked.items() if asked == peer]:
                del self._asked[key]


asked_feeds = per_process(AskedFeeds)
