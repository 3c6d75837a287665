"""Network: how long a message between two domains takes, and whether it arrives.

Round-trip times have a median of 135 ms and a 90th percentile of 291 ms, as those between PlanetLab hosts:
domains lie in zones with fixed times between them, and each domain and each pair adds its own. A pair's time is computed from a
hash, so ten thousand domains need no matrix.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from math import exp
from statistics import NormalDist

from eventing.overlay.machine import Chance

QUANTILES = 4096
PAIRS_MAX = 500_000  # bound: pairs of domains whose time is remembered; all are computed anew
ZONES_MS: tuple[tuple[float, ...], ...] = (
    (18, 62, 88, 190, 150, 165),
    (62, 16, 140, 130, 175, 150),
    (88, 140, 20, 210, 200, 250),
    (190, 130, 210, 55, 290, 140),
    (150, 175, 200, 290, 40, 280),
    (165, 150, 250, 140, 280, 30),
)
"""Round-trip times between zones (guess, after public tables between cloud regions): North America east and west, Europe, Asia,
South America, Oceania."""
ZONE_WEIGHTS = (24, 16, 34, 18, 4, 4)
"""Domains of each zone, in percent (guess)."""
ACCESS_MS = 9.0
"""Median of what a domain's own access adds, on a long tail."""
ACCESS_SIGMA = 1.0
PAIR_SIGMA = 0.35
JITTER_SIGMA = 0.10
TAIL_BITS = 6
"""One message in 2**6 is late by a factor of up to TAIL_FACTOR: retransmission, a busy host (guess)."""
TAIL_FACTOR = 8.0


def _lognormal(sigma: float) -> array[float]:
    """Quantiles of a log-normal distribution with median 1."""
    normal = NormalDist()
    return array("d", (exp(sigma * normal.inv_cdf((at + 0.5) / QUANTILES)) for at in range(QUANTILES)))


@dataclass(slots=True)
class Conditions:
    """Present faults of the network.

    Attributes:
        loss: share of messages that are lost without a sign.
        sides: partition: for each domain, its side; nothing is delivered between sides. None: whole.
        one_way: (source, target) pairs between which nothing is delivered in this direction.
        mute, deaf: domains of which nothing, and to which nothing is delivered, without a sign.
        slow: factor on the times of a throttled domain.
    """

    loss: float = 0.0
    sides: bytearray | None = None
    one_way: frozenset[tuple[int, int]] = frozenset()
    mute: dict[int, None] = field(default_factory=dict)
    deaf: dict[int, None] = field(default_factory=dict)
    slow: dict[int, float] = field(default_factory=dict)

    def heal(self) -> None:
        """Reset all."""
        self.loss, self.sides, self.one_way = 0.0, None, frozenset()
        self.mute.clear()
        self.deaf.clear()
        self.slow.clear()


class SimulatedNetwork:
    """Times between `count` domains.

    Args:
        scale: factor on all times; 0 for none.
    """

    def __init__(self, count: int, chance: Chance, *, scale: float = 1.0) -> None:
        self.conditions = Conditions()
        self._chance = chance
        self._scale = 0.98 * scale / 2000.0  # one way, in seconds
        self._salt = chance.getrandbits(32)
        self._count = count
        self._between: dict[int, float] = {}
        zones = [zone for zone, weight in enumerate(ZONE_WEIGHTS) for _ in range(weight)]
        self.zone = bytes(zones[chance.randrange(len(zones))] for _ in range(count))
        access = _lognormal(ACCESS_SIGMA)
        self._access = array("d", (ACCESS_MS * access[chance.randrange(QUANTILES)] for _ in range(count)))
        self._pair = _lognormal(PAIR_SIGMA)
        self._jitter = _lognormal(JITTER_SIGMA)

    def base_s(self, source: int, target: int) -> float:
        """The undisturbed time one way."""
        low, high = (source, target) if source < target else (target, source)
        pair = low * self._count + high
        found = self._between.get(pair)
        if found is None:
            hashed = (low * 2654435761 ^ high * 2246822519 ^ self._salt) * 3266489917 >> 7 & QUANTILES - 1
            between = ZONES_MS[self.zone[low]][self.zone[high]] + self._access[low] + self._access[high]
            if len(self._between) >= PAIRS_MAX:
                self._between.clear()
            found = self._between[pair] = between * self._pair[hashed] * self._scale
        return found

    def reaches(self, source: int, target: int) -> bool:
        """Return whether anything is delivered from one domain to the other."""
        sides = self.conditions.sides
        return (sides is None or sides[source] == sides[target]) and (source, target) not in self.conditions.one_way

    def loses(self, source: int = -1, target: int = -1) -> bool:
        """Return whether this message is lost."""
        conditions = self.conditions
        if (conditions.mute and source in conditions.mute) or (conditions.deaf and target in conditions.deaf):
            return True
        return conditions.loss > 0.0 and self._chance.random() < conditions.loss

    def delay_s(self, source: int, target: int) -> float:
        """Return the time that one message takes, in seconds."""
        bits = self._chance.getrandbits(12 + TAIL_BITS)
        delay = self.base_s(source, target) * self._jitter[bits & QUANTILES - 1]
        if bits >> 12 == 0:
            delay *= 1.0 + (TAIL_FACTOR - 1.0) * self._chance.random()
        slow = self.conditions.slow
        if slow:
            delay *= max(slow.get(source, 1.0), slow.get(target, 1.0))
        return delay
