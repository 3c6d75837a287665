"""A host monitor at each domain: this machine's load as events, published there by the client library."""

from __future__ import annotations

import asyncio
import contextlib

from herald import Client, HeraldError, event
from herald.samples import MachineSampler


class Monitor:
    """Publishes a sample at one domain every `every_s` seconds, also after an outage of the domain."""

    def __init__(self, url: str, token: str, rp: str, name: str, every_s: float) -> None:
        self._client = Client(url, token=token)
        self._rp = rp
        self._name = name
        self._every_s = every_s

    async def run(self) -> None:
        """Publish until cancelled."""
        sampler = MachineSampler()
        async with self._client as client:
            while True:
                await asyncio.sleep(self._every_s)
                samples = sampler.take()
                load = {"cpu": samples["cpu"]["used_percent"], "memory": samples["memory"]["used_percent"]}
                sample = event(load, type="herald.host.load", source=f"/hosts/{self._name}")
                with contextlib.suppress(HeraldError):  # the domain is down, as the view shows
                    await client.publish(self._rp, sample, timeout_s=30)
