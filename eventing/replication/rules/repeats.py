"""Repeats: what is sent to a domain although it was sent to it before, and the budgets for that. Pure.

A domain that lost its data, or was restored from a copy, states less than before and is sent again what it lacks. A domain can also
state less again and again, or graft what it does not acknowledge, or hang up: each of its small requests would cost a mebibyte. So what
is sent is remembered by feed, and what is sent again is counted in two budgets of the domain (token buckets):

- *lost*: what the domain had acknowledged. Each history once in COPY_S is free, whatever its size. Who exceeds the budget contradicts
  its own statements: `false-loss`.
- *untaken*: what it has not acknowledged. That may be for reasons on either side (a network that fails, an admission on its way), so
  the budget is larger, and nobody is blamed.

While a budget is overdrawn, nothing of its kind is sent to the domain; what is new to it is.

Life of an entry: runs of an RP are sent -> the span of each feed grows -> an answer acknowledges it -> a run within the span is a
repeat -> the entry is forgotten when PAIRS_MAX others were sent since: its events count as new then.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from eventing.access.rules.rates import Bucket, Rate
from eventing.core.events.vectors import SEQUENCE_MAX

COPY_S = 86_400.0
"""Each history may be sent to a domain once more in this time without charge: a domain is restored from a copy rarely."""
LOST_BYTES_PER_S = 64 * 1024  # bound: bytes per second of acknowledged events sent to a peer again; `false-loss`
# bound: bytes per second of acknowledged events sent to an acquaintance again; `false-loss`
ACQUAINTANCE_LOST_BYTES_PER_S = 16 * 1024
# bound: seconds of these rates that may be used at once, 16 MiB, of an acquaintance 4 MiB; `false-loss`
LOST_WINDOW_S = 256.0
# Refused feeds are tried again after pauses of up to 60 s (overlay/link_refusals.py), peers that fail likewise.
# bound: bytes per second of events that it has not acknowledged sent to a peer again; they wait
UNTAKEN_BYTES_PER_S = 1024 * 1024
# bound: bytes per second of events that it has not acknowledged sent to an acquaintance again; they wait
ACQUAINTANCE_UNTAKEN_BYTES_PER_S = 256 * 1024
# bound: seconds of these rates that may be used at once, 64 MiB, of an acquaintance 16 MiB; they wait
UNTAKEN_WINDOW_S = 64.0
# bound: seconds until a domain is sent something again, however large the last runs were; it is sent it then
DEBT_S_MAX = 600.0
# About 500 bytes each; of all acquaintances together (peering/rules/acquaintances.py: LINKS_MAX) as many may exist.
PAIRS_MAX = 50_000  # bound: pairs of domain and RP of which a process knows what was sent; the oldest counts as new


class Repeat(Enum):
    """Kinds of what is sent again."""

    LOST = "lost"
    UNTAKEN = "untaken"


RATES: Mapping[tuple[Repeat, bool], Rate] = {
    (Repeat.LOST, False): Rate(LOST_BYTES_PER_S, LOST_WINDOW_S),
    (Repeat.LOST, True): Rate(ACQUAINTANCE_LOST_BYTES_PER_S, LOST_WINDOW_S),
    (Repeat.UNTAKEN, False): Rate(UNTAKEN_BYTES_PER_S, UNTAKEN_WINDOW_S),
    (Repeat.UNTAKEN, True): Rate(ACQUAINTANCE_UNTAKEN_BYTES_PER_S, UNTAKEN_WINDOW_S),
}
"""Rates of the budgets, by kind and whether the domain is an acquaintance."""


class SentRun(NamedTuple):
    """A run as it was sent: its feed, first and last sequence, and the bytes of its events and leaves."""

    feed_key: str
    first: int
    last: int
    size: int


class SentSpan(NamedTuple):
    """The sequences of a feed that were sent, from the first to the last, and up to which they were acknowledged."""

    first: int
    last: int
    acknowledged: int = 0

    def kind(self, sequence: int) -> Repeat:
        """Return what an event of the span is when it is sent again."""
        return Repeat.LOST if sequence <= self.acknowledged else Repeat.UNTAKEN


class SentHistory:
    """Record of what was sent of one RP to one domain.

    Attributes:
        spans: by feed.
        copied: bytes of the free copy that are used.
        copied_at: when the copy began.
    """

    __slots__ = ("copied", "copied_at", "spans")

    def __init__(self) -> None:
        self.spans: dict[str, SentSpan] = {}
        self.copied = 0
        self.copied_at = 0.0


class RepeatBudgets:
    """Record of what was sent to domains, and their budgets. `now` is in seconds of any steady clock."""

    def __init__(self) -> None:
        self._histories: OrderedDict[tuple[str, str], SentHistory] = OrderedDict()
        self._budgets: dict[tuple[str, Repeat], tuple[bool, Bucket]] = {}

    def sent(self, domain: str, rp: str, runs: Iterable[SentRun]) -> dict[Repeat, int]:
        """Note runs that are sent; return the bytes of those that were sent before, by kind."""
        history = self._histories.get((domain, rp))
        if history is None:
            history = self._histories[domain, rp] = SentHistory()
            if len(self._histories) > PAIRS_MAX:
                self._histories.popitem(last=False)
        else:
            self._histories.move_to_end((domain, rp))
        again: dict[Repeat, int] = {}
        for run in runs:
            span = history.spans.get(run.feed_key)
            if span is None:
                history.spans[run.feed_key] = SentSpan(run.first, run.last)
            elif run.first < span.first or run.last > span.last:
                history.spans[run.feed_key] = span._replace(
                    first=min(run.first, span.first), last=max(run.last, span.last)
                )
            else:
                kind = span.kind(run.last)
                again[kind] = again.get(kind, 0) + run.size
        return again

    def acknowledged(self, domain: str, rp: str, have: Mapping[str, int]) -> None:
        """Note up to which sequence a domain acknowledges feeds that it was sent."""
        history = self._histories.get((domain, rp))
        if history is None:
            return
        for feed, last in have.items():
            span = history.spans.get(feed)
            if span is not None and last > span.acknowledged:
                history.spans[feed] = span._replace(acknowledged=min(last, span.last))

    def forget(self, domain: str, rp: str) -> None:
        """Forget what was sent of an RP: an operator has it sent again, and it counts as new."""
        self._histories.pop((domain, rp), None)

    def is_copy(self, domain: str, rp: str, again: int, history_bytes: int, now: float) -> bool:
        """Count bytes that are sent again to the free copy of an RP's history; return False if they are more than is left of it.

        Args:
            history_bytes: the most that the history holds.
        """
        history = self._histories.get((domain, rp))
        if history is None:
            return True
        if not history.copied or now - history.copied_at >= COPY_S:
            history.copied, history.copied_at = 0, now
        if history.copied + again > history_bytes:
            return False
        history.copied += again
        return True

    def charge(self, domain: str, kind: Repeat, again: int, now: float, *, acquaintance: bool) -> bool:
        """Charge bytes to a budget of a domain; return whether that overdraws it."""
        known, budget = self._budgets.get((domain, kind), (acquaintance, None))
        if budget is None or known is not acquaintance:  # it may have become a peer
            self._budgets = {key: one for key, one in self._budgets.items() if not one[1].idle(now)}
            budget = Bucket(RATES[kind, acquaintance])
            self._budgets[domain, kind] = (acquaintance, budget)
        before_s = budget.wait_s(1, now)
        budget.charge(again, now, DEBT_S_MAX)
        return not before_s and budget.wait_s(1, now) > 0

    def overdrawn(self, domain: str, now: float) -> frozenset[Repeat]:
        """Return the kinds of which a domain is sent nothing again at the moment."""
        found = ((kind, self._budgets.get((domain, kind))) for kind in Repeat)
        return frozenset(kind for kind, one in found if one is not None and one[1].wait_s(1, now) > 0)

    def without(self, kinds: frozenset[Repeat], domain: str, rp: str, wanted: Mapping[str, int]) -> Mapping[str, int]:
        """Return a vector after which runs are sent, with the feeds at their maximum of which a repeat of these kinds would be next."""
        history = self._histories.get((domain, rp))
        held = []
        for feed, span in history.spans.items() if history is not None else ():
            following = max(wanted.get(feed, 0) + 1, span.first)
            if following <= span.last and span.kind(following) in kinds:
                held.append(feed)
        return {**wanted, **dict.fromkeys(held, SEQUENCE_MAX)} if held else wanted
