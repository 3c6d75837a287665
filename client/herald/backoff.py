"""Pauses between attempts: exponential backoff with full jitter, so that clients of a restarted domain do not return at
once.
"""

from __future__ import annotations

import random

INITIAL_S = 0.1
CAP_S = 15.0
STABLE_S = 5.0  # after a connection of this length, the next delay is short again
_DOUBLINGS_MAX = 30  # keeps the power small; the cap is reached long before


class Backoff:
    """Delays uniform in [0, min(cap, initial * 2**n)) for the n-th consecutive failure.

    Arguments:
        random: source of randomness; a parameter for tests.
        initial_s: bound of the first delay, in seconds.
        cap_s: bound of every delay, in seconds.
    """

    def __init__(self, random: random.Random, initial_s: float = INITIAL_S, cap_s: float = CAP_S) -> None:
        self._random = random
        self._initial_s = initial_s
        self._cap_s = cap_s
        self.failures = 0

    def next(self, retry_after_s: float | None = None) -> float:
        """Return the seconds to wait after one more failure, at least `retry_after_s`, which the server asked for."""
        bound = min(self._cap_s, self._initial_s * 2.0 ** min(self.failures, _DOUBLINGS_MAX))
        self.failures += 1
        return (retry_after_s or 0.0) + self._random.uniform(0.0, bound)

    def reset(self) -> None:
        """Reset after a success: the next delay is a first one."""
        self.failures = 0

    def lived(self, seconds: float) -> None:
        """Record a connection of `seconds`: reset if that was long enough to call it stable."""
        if seconds >= STABLE_S:
            self.reset()
