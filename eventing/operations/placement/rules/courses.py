"""Course of a pressure over time: whether it has been high or low for long enough, and where it leads. Pure."""

from __future__ import annotations

from itertools import pairwise

import msgspec

HOT = 0.8
HOT_S = 5.0
COOL = 0.4
COOL_S = 300.0
AHEAD_S = 30.0
"""Seconds for which the pressure is predicted."""
TREND_S = 10.0
"""Seconds of samples from which the trend is taken."""
TREND_FROM = 0.25
"""Pressure below which no trend counts: a small load that doubles is no crowd yet."""
TREND_SAMPLES = 3
GROWTH_MIN = 1.2
"""Predicted growth below which it counts as noise (guess)."""
GROWTH_MAX = 4.0  # bound: factor by which a prediction exceeds the present pressure; a steeper trend counts as this
SAMPLES_MAX = 64  # bound: samples that are remembered; the oldest are forgotten


class PressureCourse(msgspec.Struct):
    """Recent course of a pressure: of this domain, or of what one RP needs of its capacity; plain data.

    Attributes:
        hot_since, cool_since: since when it is above HOT, below COOL; None: it is not.
        samples: (time, pressure) of the last TREND_S.
    """

    hot_since: float | None = None
    cool_since: float | None = None
    samples: list[tuple[float, float]] = []

    def note(self, pressure: float, now: float) -> None:
        """Take in a sample. A clock that was set back begins anew."""
        if self.samples and now < self.samples[-1][0]:
            self.hot_since = self.cool_since = None
            self.samples = []
        self.hot_since = None if pressure <= HOT else now if self.hot_since is None else self.hot_since
        self.cool_since = None if pressure >= COOL else now if self.cool_since is None else self.cool_since
        recent = [*self.samples, (now, pressure)][-SAMPLES_MAX:]
        newer = [one for one in recent if one[0] > now - TREND_S]
        self.samples = newer if len(newer) >= TREND_SAMPLES else recent[-TREND_SAMPLES:]

    def predicted(self) -> float:
        """Return the pressure in AHEAD_S, by the trend of the samples; never below the present one."""
        if not self.samples:
            return 0.0
        pressure = self.samples[-1][1]
        last = [one for _, one in self.samples[-TREND_SAMPLES:]]
        rising = all(one < other for one, other in pairwise(last))
        if len(last) < TREND_SAMPLES or pressure < TREND_FROM or not rising:
            return pressure  # a jump is no trend yet
        mean_at = sum(at for at, _ in self.samples) / len(self.samples)
        mean = sum(one for _, one in self.samples) / len(self.samples)
        spread = sum((at - mean_at) ** 2 for at, _ in self.samples)
        if spread <= 0:
            return pressure
        slope = sum((at - mean_at) * (one - mean) for at, one in self.samples) / spread
        return min(max(pressure, pressure + slope * AHEAD_S), pressure * GROWTH_MAX)

    def growth(self) -> float:
        """Return the factor by which the pressure grows in AHEAD_S; 1: not enough to distinguish it from noise."""
        factor = self.predicted() / self.samples[-1][1] if self.samples and self.samples[-1][1] > 0 else 1.0
        return factor if factor >= GROWTH_MIN else 1.0

    def is_hot(self, now: float) -> bool:
        """Return whether the pressure has been high for HOT_S."""
        return self.hot_since is not None and now - self.hot_since >= HOT_S

    def is_cool(self, now: float) -> bool:
        """Return whether the pressure has been low for COOL_S."""
        return self.cool_since is not None and now - self.cool_since >= COOL_S
