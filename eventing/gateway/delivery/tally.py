"""Readings of one RP at this gateway, counted by required audience."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from eventing.core.principals import Principal
from eventing.rps.rules.audience import Need


class CountedReader(Protocol):
    """A session (gateway/delivery/session.py), as counted here."""

    @property
    def principal(self) -> Principal | None:
        """The reader."""


class AudienceTally:
    """Readings of one RP at this gateway, by audience. Sessions report them (gateway/delivery/session.py)."""

    __slots__ = ("_changed", "_labels", "counts", "needs")

    def __init__(self, needs: tuple[Need, ...], changed: Callable[[], None]) -> None:
        self.needs = needs
        self.counts = dict.fromkeys((need.label for need in needs), 0)
        self._labels: dict[CountedReader, tuple[str, ...]] = {}
        self._changed = changed

    def joined(self, session: CountedReader) -> None:
        """Count a reading that began. Harmless when repeated."""
        who = session.principal
        if who is None or session in self._labels:
            return
        labels = tuple(need.label for need in self.needs if need.counts(who))
        self._labels[session] = labels
        for label in labels:
            self.counts[label] += 1
        if labels:
            self._changed()

    def left(self, session: CountedReader) -> None:
        """Count a reading that ended. Harmless when repeated."""
        labels = self._labels.pop(session, ())
        for label in labels:
            self.counts[label] -= 1
        if labels:
            self._changed()
