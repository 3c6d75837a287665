"""A subscriber that verifies its guarantees: in order per publisher, no duplicates, nothing missing but what a gap
names.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from herald import Client, Gap, HeraldError, Received

from demo.harness.background import Background

RECEIVED_WITHIN_S = 60.0


class Reader:
    """Reads one RP at one domain from its creation on.

    Attributes:
        received: the events so far, in the order of arrival.
        gaps: the received gaps.
        error: the error that ended it, if any.
    """

    def __init__(self, background: Background, urls: Sequence[str], token: str, rp: str, from_: str) -> None:
        self.received: list[Received] = []
        self.gaps: list[Gap] = []
        self.error: HeraldError | None = None
        self._background = background
        self._subscribed = asyncio.Event()
        self._task = background.spawn(self._read(urls, token, rp, from_))
        background.run(self._accepted())

    @property
    def ids(self) -> list[str]:
        """Return the ids of the received events, in order."""
        return [received.id for received in list(self.received)]

    def has(self, ids: Collection[str], within_s: float = RECEIVED_WITHIN_S, *, ordered: bool = True) -> None:
        """Wait until all of these have arrived, then check all received events."""
        wanted, deadline = set(ids), time.monotonic() + within_s
        while not wanted.issubset(self.ids):
            missing = sorted(wanted.difference(self.ids))
            assert self.error is None, f"the subscription ended: {self.error}"
            assert time.monotonic() < deadline, f"{len(missing)} of {len(wanted)} did not come: {missing[:10]} ..."
            time.sleep(0.02)
        self.check(ordered=ordered)

    def check(self, *, ordered: bool = True) -> None:
        """Fail if an event arrived twice, or (unless its domain used several feeds) a publisher's out of order."""
        doubled = [event_id for event_id, count in Counter(self.ids).items() if count > 1]
        assert not doubled, f"arrived twice: {doubled[:10]}"
        last: dict[str, int] = {}
        if not ordered:
            return
        for publisher, number in map(_place, self.ids):
            before = last.get(publisher, 0)
            assert number > before, f"{publisher}-{number} came after {publisher}-{before}"
            assert number == before + 1 or not before or self._told(publisher, before, number), (
                f"{publisher}: {before} and then {number}; gaps told: {[gap.feeds for gap in self.gaps]}"
            )
            last[publisher] = number

    def _told(self, publisher: str, before: int, number: int) -> bool:
        """Return whether gaps name exactly what is missing between two numbers of a publisher, which are sequences of
        its feed.

        A gap at a change of epoch does not state how much is missing.
        """
        if any(gap.previous_epoch is not None for gap in self.gaps):
            return True
        here = {its for of, its in map(_place, self.ids) if of == publisher}
        lost: dict[str, set[int]] = defaultdict(set)
        for gap in self.gaps:
            for feed, (first, last) in gap.feeds.items():
                lost[feed].update(range(first, last + 1))
        return any(one.issuperset(range(before + 1, number)) and not one & here for one in lost.values())

    def stop(self) -> None:
        """End the subscription."""

        async def stopped() -> None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

        self._background.run(stopped())

    async def _read(self, urls: Sequence[str], token: str, rp: str, from_: str) -> None:
        async with Client(urls, token=token) as client:
            try:
                subscription = await client.subscribe(rp, from_=from_)
                self._subscribed.set()
                async for item in subscription:
                    if isinstance(item, Gap):
                        self.gaps.append(item)
                    else:
                        self.received.append(item)
            except HeraldError as error:
                self.error = error
                self._subscribed.set()

    async def _accepted(self) -> None:
        await self._subscribed.wait()


def _place(event_id: str) -> tuple[str, int]:
    publisher, _, number = event_id.rpartition("-")
    return publisher, int(number)
