"""Babblers: every message that the machines know, with values in its fields that make no sense but are of the right type.

What is not of the right type never passes the decoder of a live domain; its bounds are tested there.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

import msgspec

from eventing.core.container import memoized
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.machine import Chance, SendMessage
from eventing.overlay.member import MESSAGES
from eventing.sim.federation import sponsor_of
from eventing.sim.liars.lying_member import FORGED, Coalition, LyingMember, Outputs
from eventing.sim.liars.lying_role import LyingRole

NUMBERS = (0, -1, 1, 255, 2**31, 2**32 - 1, 2**63, 2**64 - 1, -(2**63))
FRACTIONS = (float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 1e9, 1e308, -1e308)
ITEMS = (0, 1, 3, 600)
DEPTH_MAX = 2
"""Sequences within sequences are short."""


KINDS = tuple(sorted(MESSAGES, key=lambda kind: kind.__name__))
KINDS_A_TIME = 4


class Babbler(LyingMember):
    """A domain that sends such messages to everybody."""

    def lie(self, now: float, chance: Chance, out: Outputs) -> None:
        """Send messages of some kinds to one domain."""
        victim = self.coalition.victim(chance)
        for kind in chance.sample(KINDS, KINDS_A_TIME):
            out.append(SendMessage(victim, self.value(kind, chance)))

    def value(self, hint: Any, chance: Chance, depth: int = 0) -> Any:
        """A value of a type."""
        simple = _SIMPLE.get(hint)
        if simple is not None:
            return simple(chance)
        if hint is Any:
            return chance.choice((self.me, chance.choice(NUMBERS), chance.randrange(self.coalition.count), None))
        if isinstance(hint, type) and issubclass(hint, Enum):
            return chance.choice(tuple(hint))
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            hints = _hints(hint)
            made = hint(*(self.value(hints[name], chance, depth + 1) for name in hint.__struct_fields__))
            if hint is DomainRecord and chance.random() < 0.5:  # what this domain can sign
                made = msgspec.structs.replace(made, domain=self.me, sponsorship=sponsor_of(self.me), signature=b"")
            return made
        origin, args = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            return self.value(chance.choice(args), chance, depth)
        if origin is tuple and args[-1] is not Ellipsis:
            return tuple(self.value(arg, chance, depth + 1) for arg in args)
        if origin in (tuple, list):
            items = chance.choice(ITEMS) if depth < DEPTH_MAX else 1
            return tuple(self.value(args[0], chance, depth + 1) for _ in range(items))
        if origin is dict:
            return {self.value(args[0], chance, depth + 1): self.value(args[1], chance, depth + 1) for _ in range(3)}
        return None


_SIMPLE: dict[Any, Callable[[Chance], Any]] = {
    int: lambda chance: chance.choice(NUMBERS),
    float: lambda chance: chance.choice(FRACTIONS),
    bool: lambda chance: chance.random() < 0.5,
    str: lambda chance: "x" * chance.choice(ITEMS),
    bytes: lambda chance: FORGED,
    type(None): lambda chance: None,
}


@memoized(256)
def _hints(kind: type) -> dict[str, Any]:
    """The types of a struct's fields, without their bounds, which a live domain's decoder has checked."""
    return get_type_hints(kind)


class BabblerRole(LyingRole, frozen=True, kw_only=True):
    """Babblers."""

    kind: ClassVar[str] = "babbler"

    def liar(self, member: Any, coalition: Coalition) -> LyingMember:
        """Make one."""
        return Babbler(member, coalition)
