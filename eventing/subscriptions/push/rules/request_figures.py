"""Figures of an endpoint's last requests: how many succeeded, and how long they took. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from eventing.subscriptions.push.rules.verdicts import AttemptVerdict

COUNTED = ("event", "replay")
"""Kinds of requests that count: those with events of the log."""


@dataclass(frozen=True, slots=True)
class RequestFigures:
    """Figures of requests.

    Attributes:
        p95_ms: milliseconds within which 95 of 100 had a verdict, by nearest rank; None without requests.
    """

    requests: int
    delivered: int
    p95_ms: int | None


def request_figures(attempts: Iterable[tuple[str, str, int]]) -> RequestFigures:
    """Compute the figures of attempts, each given as kind, verdict and milliseconds."""
    counted = [(verdict, took_ms) for what, verdict, took_ms in attempts if what in COUNTED]
    delivered = sum(verdict == AttemptVerdict.DELIVERED for verdict, _ in counted)
    taken = sorted(took_ms for _, took_ms in counted)
    return RequestFigures(len(taken), delivered, taken[ceil(0.95 * len(taken)) - 1] if taken else None)
