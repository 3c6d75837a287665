"""Rates: how much may come per second, and how much at once. Pure: the time is passed in, in seconds of any steady clock.

A bucket is a token bucket, kept as the generic cell rate algorithm keeps it (ITU-T I.371): one number, the time at which
it will be full again. It costs one comparison to ask, never needs a timer, and a bucket that is full is indistinguishable
from a new one: forgetting it gives nobody anything. Two laws, both tested with Hypothesis:

1. In any t seconds it admits at most `per_s * t` plus the larger of the burst (`per_s * window_s`) and one amount. Time
   that goes backwards admits nothing more, a pause however long no more than one burst.
2. Whoever waits `wait_s` is admitted, if nobody else took of the bucket meanwhile.

An amount larger than the burst (a batch, at a low limit) is admitted when the bucket is full, and puts it into debt: it is
never impossible, and the rate holds over time.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

SLACK_S = 1e-6
"""Added to what is to be waited, so that rounding of large times never makes a promise a little too early."""

ROUNDING = 1e-6
"""Of an amount: 49 per second for a second are 49, though 1 / (1 / 49) is a little less."""

LOOKED_AT = 8
"""Entries of a full table that are looked at for one that is idle, when a newcomer wants its place: bounds its cost."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit.

    Attributes:
        per_s: amount per second; 0 for no limit.
        window_s: seconds whose worth may come at once.
    """

    per_s: float
    window_s: float

    @property
    def burst(self) -> float:
        """What may come at once, at least 1; infinity for no limit."""
        return max(1.0, self.per_s * self.window_s) if self.per_s else math.inf

    def shared(self, processes: int) -> Rate:
        """One process's share."""
        return Rate(self.per_s / processes, self.window_s)


class Bucket:
    """What is left of a rate."""

    __slots__ = ("_full_at", "_spacing_s", "_window_s")

    def __init__(self, rate: Rate) -> None:
        self._spacing_s = 1.0 / rate.per_s if rate.per_s else 0.0
        self._window_s = rate.window_s if rate.per_s else math.inf
        self._full_at = -math.inf

    def take(self, amount: float, now: float) -> bool:
        """Take `amount` (more than 0), or nothing: whether it was there."""
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
        """Take `amount` whether it is there or not; never more than `debt_s_max` seconds' worth is owed."""
        charged = max(self._full_at, now) + amount * self._spacing_s
        self._full_at = max(self._full_at, min(charged, now + self._window_s + debt_s_max))

    def refund(self, amount: float) -> None:
        """Give back what `take` took and was not used."""
        self._full_at -= amount * self._spacing_s

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until `amount` would be admitted; 0 if it would be now."""
        at = self._full_at
        beyond_s = at + amount * self._spacing_s - now - self._window_s  # as `take` reckons, to the last bit
        if at <= now or beyond_s <= 0:
            return 0.0
        return min(at - now, beyond_s) + SLACK_S

    def left(self, now: float) -> tuple[int, int]:
        """The largest amount that would be admitted now without debt, and the seconds until it is full; of a limit only.

        Whole numbers that promise no more than is there: the amount is rounded down, the seconds up. Full it admits 1 at
        least, whatever the rate.
        """
        owed_s = self._full_at - now
        if owed_s <= 0:
            return max(1, int(self._window_s / self._spacing_s + ROUNDING)), 0
        return max(0, int((self._window_s - owed_s) / self._spacing_s)), math.ceil(owed_s)

    def idle(self, now: float) -> bool:
        """Whether it is full: as good as new."""
        return self._full_at <= now


class Forgettable(Protocol):
    """What a table keeps."""

    def idle(self, now: float) -> bool:
        """Whether a new one would be the same."""


Entry = TypeVar("Entry", bound=Forgettable)


class Table(Generic[Entry]):
    """Entries by name, at most `size_max`.

    Only an idle entry is ever dropped, and a new one in its place would be equal: so nobody gets a bucket filled by having
    it pushed out, however many names they invent. When none of the LOOKED_AT oldest is idle, the newcomer shares one
    entry with all newcomers in the same situation: those that were there before notice nothing.
    """

    def __init__(self, make: Callable[[str], Entry], size_max: int) -> None:
        self._make = make
        self._size_max = size_max
        self._kept: OrderedDict[str, Entry] = OrderedDict()
        self._crowd = make("")

    def __len__(self) -> int:
        return len(self._kept)

    def peek(self, name: str) -> Entry | None:
        """The entry, if there is one."""
        return self._kept.get(name)

    def get(self, name: str, now: float) -> Entry:
        """The entry, made if there is none."""
        entry = self._kept.get(name)
        return self._admit(name, now) if entry is None else entry

    def _admit(self, name: str, now: float) -> Entry:
        if len(self._kept) >= self._size_max and not self._make_room(now):
            return self._crowd
        entry = self._kept[name] = self._make(name)
        return entry

    def _make_room(self, now: float) -> bool:
        for _ in range(min(LOOKED_AT, len(self._kept))):
            name, entry = self._kept.popitem(last=False)
            if entry.idle(now):
                return True
            self._kept[name] = entry  # to the end: the next newcomer looks at others
        return False
