"""Load samples that the gateways of a domain publish at its administrative rendezvous points, while somebody reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from herald.client import Client
from herald.events import Received

SAMPLED, LOST = "io.herald.load.sampled", "io.herald.gateway.lost"
GATEWAYS_MAX = 1000  # bound: gateways of which samples are kept; those of further ones are left out


class Loads:
    """Context manager that reads an administrative RP and keeps the last sample of each gateway.

    Args:
        samples: those of a snapshot.
    """

    def __init__(self, client: Client, admin_rp: str, samples: Mapping[str, Mapping[str, Any]]) -> None:
        self._client = client
        self._rp = admin_rp
        self.samples: dict[str, Mapping[str, Any]] = dict(samples)
        self._task: asyncio.Task[None] | None = None
        self._fresh: set[str] = set()
        self._sampled = asyncio.Event()

    async def __aenter__(self) -> Self:
        subscription = await self._client.subscribe(self._rp)
        self._task = asyncio.create_task(self._follow(subscription))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self, subscription: Any) -> None:
        async for item in subscription:
            if not isinstance(item, Received) or not isinstance(item.data, Mapping):
                continue
            gateway = item.data.get("gateway")
            if not isinstance(gateway, str):
                continue
            if item.event.get("type") == LOST:
                self.samples.pop(gateway, None)
            elif item.event.get("type") == SAMPLED and (gateway in self.samples or len(self.samples) < GATEWAYS_MAX):
                self.samples[gateway] = {**self.samples.get(gateway, {}), **item.data}
                self._fresh.add(gateway)
                self._sampled.set()

    async def wait(self, seconds: float) -> None:
        """Wait until every gateway has sent a sample that covers time after the beginning, for so long at most.

        Raises HeraldError if the reading has ended.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._fresh or self._fresh < set(self.samples):
                    self._sampled.clear()
                    await self._unless_ended(self._sampled.wait())

    async def pause(self, seconds: float) -> None:
        """Wait so long. Raises HeraldError if the reading has ended."""
        await self._unless_ended(asyncio.sleep(seconds))

    async def _unless_ended(self, waiting: Any) -> None:
        assert self._task is not None  # noqa: S101 - entered
        waiter = asyncio.ensure_future(waiting)
        try:
            await asyncio.wait([waiter, self._task], return_when=asyncio.FIRST_COMPLETED)
            if self._task.done():
                self._task.result()
        finally:
            waiter.cancel()

    def keep(self, samples: Mapping[str, Mapping[str, Any]]) -> None:
        """Take over which gateways there are from a snapshot."""
        self.samples = {name: self.samples.get(name, sample) for name, sample in samples.items()}

    def per_s(self, name: str) -> float:
        """Return the sum of a counter of all gateways, per second."""
        return sum(per_s(sample, name) for sample in self.samples.values())

    def total(self, name: str) -> float:
        """Return the sum of a value of all gateways."""
        return sum(number(sample, name) for sample in self.samples.values())


def per_s(sample: Mapping[str, Any], name: str) -> float:
    """Return a counter of a sample, per second."""
    return number(sample, name) / max(number(sample, "interval_s"), 0.001)


def number(sample: Mapping[str, Any], name: str) -> float:
    """Return a number of a sample; 0 if there is none."""
    value = sample.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def hot(samples: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the RPs with most activity over all gateways, the busiest first: `rp`, `in_per_s`, `out_per_s`, `readings`."""
    found: dict[str, dict[str, Any]] = {}
    for sample in samples:
        for one in sample.get("hot") or ():
            row = found.setdefault(
                str(one["rp"]), {"rp": str(one["rp"]), "in_per_s": 0.0, "out_per_s": 0.0, "readings": 0}
            )
            seconds = max(number(sample, "interval_s"), 0.001)
            row["in_per_s"] += number(one, "events_in") / seconds
            row["out_per_s"] += number(one, "deliveries") / seconds
            row["readings"] += int(number(one, "readings"))
    return sorted(found.values(), key=lambda row: (-row["in_per_s"] - row["out_per_s"], -row["readings"], row["rp"]))
