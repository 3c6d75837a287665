"""Progress of a reader in each feed while events of a log pass in order. Pure.

A reader from another replica already has some of the events that follow here: those that its vector covers, which are
not delivered again. A feed that continues after a hole (history that its origin trimmed before this domain received it)
shows that events are lost. The reader's vector, which grows with every event, decides both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eventing.core.events.cursors import vector_text
from eventing.core.events.positions import OffsetGap

FeedPosition = tuple[str, int]  # of an event: key of the feed, sequence in it


class Passed(NamedTuple):
    """Result of one event's passing.

    Attributes:
        vector: text of the reader's vector after the event.
        covered: whether the reader already had the event.
        gap: lost events of the feed before this one, by the vector; no offset of the log is missing.
    """

    vector: bytes
    covered: bool = False
    gap: OffsetGap | None = None


class ReaderProgress:
    """Vector of a reader, `held`, that grows with the events that pass. It includes the own feed by its key."""

    __slots__ = ("_after", "_before", "_feed", "held")

    def __init__(self, held: Mapping[str, int]) -> None:
        self.held = dict(held)
        self._feed = ""
        self._before = self._after = b""

    @property
    def vector(self) -> bytes:
        """Format the vector as in cursors, after the position: `~FEED=SEQUENCE.FEED=SEQUENCE`."""
        if not self._feed:
            return vector_text(self.held).encode()
        return b"%s%d%s" % (self._before, self.held[self._feed], self._after)

    def covers(self, vector: Mapping[str, int]) -> bool:
        """Return True if all of `vector` has passed."""
        held = self.held
        return all(held.get(feed, 0) >= sequence for feed, sequence in vector.items())

    def passes(self, epoch: str, first: int, places: Sequence[FeedPosition]) -> list[Passed]:
        """Pass the events at `places`, which have the offsets from `first` on in `epoch`, in order."""
        return [self._pass(epoch, offset, *place) for offset, place in enumerate(places, first)]

    def _pass(self, epoch: str, offset: int, feed: str, sequence: int) -> Passed:
        had = self.held.get(feed, 0)
        if sequence <= had:
            return Passed(self.vector, covered=True)
        if feed != self._feed:
            self._turn_to(feed)
        gap = None
        if sequence > had + 1:
            self.held[feed] = sequence - 1
            cursor = f"{epoch}:{offset - 1}{self.vector.decode()}"
            gap = OffsetGap(epoch, offset, offset - 1, {feed: (had + 1, sequence - 1)}, cursor)
        self.held[feed] = sequence
        return Passed(self.vector, gap=gap)

    def _turn_to(self, feed: str) -> None:
        """Prepare the text around this feed's number; it stays valid while events of the same feed pass."""
        self.held.setdefault(feed, 0)
        feeds = sorted(self.held)
        at = feeds.index(feed)
        self._feed = feed
        self._before = "".join(["~", *(f"{key}={self.held[key]}." for key in feeds[:at]), f"{feed}="]).encode()
        self._after = "".join([f".{key}={self.held[key]}" for key in feeds[at + 1 :]]).encode()


def feed_positions(feed: str, first: int, count: int) -> list[FeedPosition]:
    """Return the places of consecutive events of one feed."""
    return [(feed, sequence) for sequence in range(first, first + count)]
