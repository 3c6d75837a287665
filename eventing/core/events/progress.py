"""How far a reader has come in each feed, as the events of a log pass it in order. Pure.

A reader that comes from another replica has some of the events that are still ahead of it here: those its vector
covers, which are not given again. A feed that goes on behind a hole (history that its origin trimmed before we got it)
shows that events are lost. For both the reader's vector is enough; it grows with every event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eventing.core.events.cursors import vector_text
from eventing.core.events.positions import Gap

Place = tuple[str, int]  # of an event: the feed's key, the sequence in it


class Passed(NamedTuple):
    """What became of one event.

    Attributes:
        vector: the text of the reader's vector behind it.
        covered: the reader had it already.
        gap: what is lost of its feed before it, by the vector; no offset of the log is missing.
    """

    vector: bytes
    covered: bool = False
    gap: Gap | None = None


class Progress:
    """A reader's vector, `held`, that grows with what passes it. The own feed is in it by its key."""

    __slots__ = ("_after", "_before", "_feed", "held")

    def __init__(self, held: Mapping[str, int]) -> None:
        self.held = dict(held)
        self._feed = ""
        self._before = self._after = b""

    @property
    def vector(self) -> bytes:
        """The vector as cursors have it behind their place: `~FEED=SEQUENCE.FEED=SEQUENCE`."""
        if not self._feed:
            return vector_text(self.held).encode()
        return b"%s%d%s" % (self._before, self.held[self._feed], self._after)

    def covers(self, vector: Mapping[str, int]) -> bool:
        """Whether all of `vector` has passed."""
        held = self.held
        return all(held.get(feed, 0) >= sequence for feed, sequence in vector.items())

    def passes(self, epoch: str, first: int, places: Sequence[Place]) -> list[Passed]:
        """The events at `places`, which have the offsets from `first` on in `epoch`, pass in order."""
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
            gap = Gap(epoch, offset, offset - 1, {feed: (had + 1, sequence - 1)}, cursor)
        self.held[feed] = sequence
        return Passed(self.vector, gap=gap)

    def _turn_to(self, feed: str) -> None:
        """Make the text around this feed's number, which stays while events of the same feed pass."""
        self.held.setdefault(feed, 0)
        feeds = sorted(self.held)
        at = feeds.index(feed)
        self._feed = feed
        self._before = "".join(["~", *(f"{key}={self.held[key]}." for key in feeds[:at]), f"{feed}="]).encode()
        self._after = "".join([f".{key}={self.held[key]}" for key in feeds[at + 1 :]]).encode()


def feed_places(feed: str, first: int, count: int) -> list[Place]:
    """The places of consecutive events of one feed."""
    return [(feed, sequence) for sequence in range(first, first + count)]
