"""The shape of the overlay's machines: `handle(input, now, chance) -> outputs`, without clock, network or randomness of its own.

Inputs are `MessageReceived`, `Fired`, `Down` and each layer's own commands; outputs are `SendMessage`, `SetTimer` and each layer's own events.
A timer is data that the machine gets back: late, repeated and unknown timers are harmless. Domains are named by `Id`s: names in a
live domain, dense numbers in a simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec

Id = Any
"""A domain: `str` in a live domain, `int` in a simulation; hashable and ordered."""
Item = TypeVar("Item")


class Chance(Protocol):
    """The part of `random.Random` that machines use."""

    def random(self) -> float: ...

    def randrange(self, stop: int, /) -> int: ...

    def choice(self, of: Sequence[Item], /) -> Item: ...

    def sample(self, of: Sequence[Item], k: int, /) -> list[Item]: ...

    def getrandbits(self, k: int, /) -> int: ...


class MessageReceived(msgspec.Struct, frozen=True, gc=False):
    """Input: a message of a peer."""

    peer: Id
    message: Any


class Fired(msgspec.Struct, frozen=True, gc=False):
    """Input: a timer has ended."""

    timer: Any


class Down(msgspec.Struct, frozen=True, gc=False):
    """Input: the transport could not deliver a message to a peer."""

    peer: Id


class SendMessage(msgspec.Struct, frozen=True, gc=False):
    """Output: send a message to a peer."""

    peer: Id
    message: Any


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Output: give the timer back after a time."""

    timer: Any
    after_s: float
