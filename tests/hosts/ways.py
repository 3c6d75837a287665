"""One direction between two hosts: what becomes of each packet. Pure; the switch passes the time in.

Every way draws from a generator of its own, so the fate of its n-th packet follows from the seed alone, whatever other ways carry.
"""

from __future__ import annotations

from random import Random


class Way:
    """The way from one host to another.

    Attributes:
        is_cut: nothing passes; what is under way is lost as well.
        delay_s: time that each packet takes.
        jitter_s: most that is added to it, drawn evenly. Packets stay in order.
        loss: share of packets that are lost, 0 to 1, drawn one by one.
        delivered, lost: packets so far.
    """

    __slots__ = ("_busy_until", "_random", "delay_s", "delivered", "is_cut", "jitter_s", "loss", "lost")

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._busy_until = 0.0
        self.is_cut = False
        self.delay_s = self.jitter_s = self.loss = 0.0
        self.delivered = self.lost = 0

    def due(self, now: float) -> float | None:
        """Return when a packet that enters now, in seconds of any clock, arrives; None if it is lost."""
        if self.is_cut or (self.loss and self._random.random() < self.loss):
            self.lost += 1
            return None
        at = now + self.delay_s
        if self.jitter_s:
            at += self._random.random() * self.jitter_s
        self._busy_until = max(self._busy_until, at)  # a packet never overtakes the one before it
        return self._busy_until

    def arrives(self) -> bool:
        """Count a packet that is due; return whether it arrives: not if the way was cut while it was under way."""
        if self.is_cut:
            self.lost += 1
            return False
        self.delivered += 1
        return True

    def heal(self) -> None:
        """Undo everything. Packets under way keep their times; later ones do not wait for them."""
        self.is_cut = False
        self.delay_s = self.jitter_s = self.loss = self._busy_until = 0.0
