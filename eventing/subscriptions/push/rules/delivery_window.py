"""The window of one subscription between its acknowledged position and the next event to be sent. Pure.

Ordered delivery is a window with one part in flight. Without order up to N parts are in flight, the acknowledged position
follows the oldest of them, and a crash repeats at most the parts after it. A part is a range of consecutive offsets: one
event, or a batch.
"""

from __future__ import annotations

from heapq import heappop, heappush

Part = tuple[int, int]
"""First and last offset, both included."""


class DeliveryWindow:
    """Offsets that are in flight, returned for another attempt, or settled out of order.

    Args:
        acknowledged: offset up to which everything is settled.
        in_flight_max: parts in flight at once; 1 keeps the log's order.
    """

    __slots__ = ("_attempts", "_in_flight", "_returned", "_settled", "acknowledged", "in_flight_max", "next")

    def __init__(self, acknowledged: int, in_flight_max: int) -> None:
        self.acknowledged = acknowledged
        self.next = acknowledged + 1
        self.in_flight_max = in_flight_max
        self._in_flight = 0
        self._returned: list[Part] = []
        self._settled: dict[int, int] = {}
        self._attempts: dict[int, int] = {}

    @property
    def in_flight(self) -> int:
        """Parts in flight."""
        return self._in_flight

    def has_work(self, end: int) -> bool:
        """Return True if a part could be taken now from a log whose next offset is `end`."""
        return self._in_flight < self.in_flight_max and bool(self._returned or self._may_begin(end))

    def wanted(self, end: int, batch_max: int) -> Part | None:
        """Return the part to be sent next, at most `batch_max` offsets; None if there is none. `take` takes it."""
        if self._in_flight >= self.in_flight_max:
            return None
        if self._returned:
            return self._returned[0]
        return (self.next, min(self.next + batch_max, end) - 1) if self._may_begin(end) else None

    def take(self, part: Part) -> int:
        """Take the wanted part into flight. Returns the number of this attempt."""
        if self._returned:
            heappop(self._returned)
        else:
            self.next = part[1] + 1
        self._in_flight += 1
        attempt = self._attempts[part[0]] = self._attempts.get(part[0], 0) + 1
        return attempt

    def shorten(self, part: Part, last: int) -> Part:
        """Return the begin of a part in flight, up to `last`; the rest is to be sent next."""
        if part[1] + 1 == self.next:
            self.next = last + 1
        else:
            heappush(self._returned, (last + 1, part[1]))
        return (part[0], last)

    def lengthen(self, part: Part, last: int) -> Part:
        """Return a part in flight with the offsets up to `last` added, if those are the next ones; else the part itself."""
        if part[1] + 1 != self.next or last <= part[1]:
            return part
        self.next = last + 1
        return (part[0], last)

    def give_back(self, part: Part, *, uncounted: bool = False) -> None:
        """Return a part that is in flight for another attempt; `uncounted`: this attempt was none."""
        self._in_flight -= 1
        if uncounted:
            self._attempts[part[0]] -= 1
        heappush(self._returned, part)

    def settle(self, part: Part) -> bool:
        """Settle a part that is in flight: delivered, or given up. Returns True if the acknowledged position moved."""
        self._in_flight -= 1
        self._attempts.pop(part[0], None)
        if part[0] != self.acknowledged + 1:
            self._settled[part[0]] = part[1]
            return False
        self.acknowledged = part[1]
        while (last := self._settled.pop(self.acknowledged + 1, None)) is not None:
            self.acknowledged = last
        return True

    def _may_begin(self, end: int) -> bool:
        outstanding = self._in_flight + len(self._returned) + len(self._settled)
        return self.next < end and outstanding < max(self.in_flight_max * 2, 1)
