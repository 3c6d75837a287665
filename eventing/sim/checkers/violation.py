"""A violation of what must hold, with what is needed to replay it."""

from __future__ import annotations

import msgspec


class Violation(msgspec.Struct, frozen=True):
    """One violation.

    Attributes:
        seed: of the world.
        at_s: seconds since the world's beginning.
        domain: at which it was found; None: in the world as a whole.
        what: a sentence without a full stop.
    """

    seed: int
    at_s: float
    domain: int | None
    what: str

    def text(self) -> str:
        """One line."""
        where = "the world" if self.domain is None else f"domain {self.domain}"
        return f"seed {self.seed}, {self.at_s:.1f} s, {where}: {self.what}"
