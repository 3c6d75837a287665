"""Rates: amounts per second, and bursts. Pure: the time is an argument, in seconds of any steady clock.

A bucket is a token bucket in the representation of the generic cell rate algorithm (ITU-T I.371): one number, the time
at which it will be full again. A check costs one comparison, no timer is needed, and a full bucket is equal to a new
one, so that evicting it gives no advantage. Two laws, both tested with Hypothesis:

1. In any t seconds it admits at most `per_s * t` plus the larger of the burst (`per_s * window_s`) and one amount. Time
   that runs backwards admits nothing more, a pause of any length at most one burst.
2. A client that waits `wait_s` is admitted, unless another took of the bucket in the meantime.

An amount larger than the burst (a batch, at a low limit) is admitted when the bucket is full, and puts it into debt: it
is never impossible, and the rate holds over time.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

SLACK_S = 1e-6
"""Margin on waiting times in seconds, so that rounding of large times never makes a promised time too early."""

ROUNDING = 1e-6
"""Rounding tolerance of an amount: 49 per second for a second are 49, though 1 / (1 / 49) is a little less."""

EXAMINED_MAX = 8
"""Entries of a full table that are examined for an idle one, when a newcomer needs its place: bounds the cost."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit.

    Attributes:
        per_s: amount per second; 0 for no limit.
        window_s: seconds of the rate that may be used at once.
    """

    per_s: float
    window_s: float

    @property
    def burst(self) -> float:
        """Amount that may be used at once, at least 1; infinity for no limit."""
        return max(1.0, self.per_s * self.window_s) if self.per_s else math.inf

    def shared(self, processes: int) -> Rate:
        """Return one process's share."""
        return Rate(self.per_s / processes, self.window_s)


class Bucket:
    """Remainder of a rate."""

    __slots__ = ("_full_at", "_spacing_s", "_window_s")

    def __init__(self, rate: Rate) -> None:
        self._spacing_s = 1.0 / rate.per_s if rate.per_s else 0.0
        self._window_s = rate.window_s if rate.per_s else math.inf
        self._full_at = -math.inf

    def change(self, rate: Rate) -> None:
        """Continue with another rate, if there is a limit; what is owed stays owed for as long."""
        if rate.per_s:
            self._spacing_s = 1.0 / rate.per_s

    def take(self, amount: float, now: float) -> bool:
        """Take `amount` (more than 0) if available; return whether it was."""
        at = self._full_at
        if at <= now:
            self._full_at = now + amount * self._spacing_s
            return True
        then = at + amount * self._spacing_s
        if then - now - self._window_s > 0:
            return False
        self._full_at = then
        return True

    def charge(self, amount: float, now: float, debt_s_max: float) -> None:
        """Take `amount` even if unavailable; the debt never exceeds `debt_s_max` seconds of the rate."""
        charged = max(self._full_at, now) + amount * self._spacing_s
        self._full_at = max(self._full_at, min(charged, now + self._window_s + debt_s_max))

    def refund(self, amount: float) -> None:
        """Return an amount that `take` took and that was not used."""
        self._full_at -= amount * self._spacing_s

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until `amount` would be admitted; 0 if it would be now."""
        at = self._full_at
        beyond_s = at + amount * self._spacing_s - now - self._window_s  # as computed by `take`, to the last bit
        if at <= now or beyond_s <= 0:
            return 0.0
        return min(at - now, beyond_s) + SLACK_S

    def left(self, now: float) -> tuple[int, int]:
        """Return the largest amount that would be admitted now without debt, and the seconds until the bucket is full;
        of a limit only.

        The amount is rounded down, the seconds up, so that the numbers never promise too much. A full bucket admits at
        least 1, whatever the rate.
        """
        owed_s = self._full_at - now
        if owed_s <= 0:
            return max(1, int(self._window_s / self._spacing_s + ROUNDING)), 0
        return max(0, int((self._window_s - owed_s) / self._spacing_s)), math.ceil(owed_s)

    def idle(self, now: float) -> bool:
        """Return True if the bucket is full: equal to a new one."""
        return self._full_at <= now


class Forgettable(Protocol):
    """Entry of a table."""

    def idle(self, now: float) -> bool:
        """Return True if a new entry would be equal."""


Entry = TypeVar("Entry", bound=Forgettable)


class Table(Generic[Entry]):
    """Entries by name, at most `size_max`.

    Only an idle entry is ever evicted, and a new one in its place would be equal: so no client refills a bucket by
    having it evicted, however many names it invents. If none of the EXAMINED_MAX oldest is idle, the newcomer shares one
    entry with all newcomers in the same situation, without effect on existing entries.
    """

    def __init__(self, make: Callable[[str], Entry], size_max: int) -> None:
        self._make = make
        self._size_max = size_max
        self._kept: OrderedDict[str, Entry] = OrderedDict()
        self._crowd = make("")

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the entries, and that of the newcomers that share one."""
        yield from self._kept.values()
        yield self._crowd

    def peek(self, name: str) -> Entry | None:
        """Return the entry, if there is one."""
        return self._kept.get(name)

    def get(self, name: str, now: float) -> Entry:
        """Return the entry; make it if there is none."""
        entry = self._kept.get(name)
        return self._admit(name, now) if entry is None else entry

    def _admit(self, name: str, now: float) -> Entry:
        if len(self._kept) >= self._size_max and not self._make_room(now):
            return self._crowd
        entry = self._kept[name] = self._make(name)
        return entry

    def _make_room(self, now: float) -> bool:
        for _ in range(min(EXAMINED_MAX, len(self._kept))):
            name, entry = self._kept.popitem(last=False)
            if entry.idle(now):
                return True
            self._kept[name] = entry  # to the end: the next newcomer examines others
        return False
