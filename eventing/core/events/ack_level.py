"""Acknowledgement levels: durability of an event at the time of the answer to its publisher."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eventing.core.errors import InvalidRequest

REPLICAS_MAX = 16  # bound: replicas of an acknowledgement level; the level is refused
ALL = "replicated:all"
_ACK = re.compile(rf"accepted|stored|{ALL}|replicated:([1-9][0-9]?)")


@dataclass(frozen=True, slots=True)
class Ack:
    """Acknowledgement level.

    `accepted`: in the log's memory. `stored`: on disk (fsynced). `replicated:n`: stored, and held by n Redis replicas.
    `replicated:all`: stored, and held by every replica that may take the server's place.

    Attributes:
        all: every replica is meant; `replicas` is 0.
    """

    stored: bool
    replicas: int
    all: bool = False

    @classmethod
    def parse(cls, text: str) -> Ack:
        """Parse a level. Raises InvalidRequest."""
        match = _ACK.fullmatch(text)
        if match is None or int(match[1] or 0) > REPLICAS_MAX:
            raise InvalidRequest(f"ack is accepted, stored, {ALL} or replicated:n with n from 1 to {REPLICAS_MAX}.")
        return cls(text != "accepted", int(match[1] or 0), text == ALL)

    @property
    def waits_for_replicas(self) -> bool:
        """True at the levels with replicas."""
        return self.all or self.replicas > 0

    def __str__(self) -> str:
        if self.all:
            return ALL
        if self.replicas:
            return f"replicated:{self.replicas}"
        return "stored" if self.stored else "accepted"
