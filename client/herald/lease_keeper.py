"""Lease keeper: creates rendezvous points that a program needs while it runs, if missing, and keeps their leases."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from herald.client import Client
from herald.errors import HeraldError, Problem
from herald.leases import Lease, keep

log = logging.getLogger("herald")


class LeaseKeeper:
    """Keeps leases until it ends; use it as `async with LeaseKeeper(client, lease_s=..., history=...) as keeper`.

    Arguments:
        lease_s: seconds requested at creation and at each renewal.
        history: bounds of what is created (`max_events`, `max_bytes`, `max_age_s`); None for the domain's default.
    """

    def __init__(self, client: Client, *, lease_s: int, history: Mapping[str, int] | None = None) -> None:
        self._client = client
        self._lease_s = lease_s
        self._history = history
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self.created = 0

    async def __aenter__(self) -> LeaseKeeper:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._keeping.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def ensure(self, name: str, title: str | None = None) -> None:
        """Create the RP if it is missing, and keep its lease from now on. Raises HeraldError."""
        try:
            await self._client.rps.get(name)
        except Problem as problem:
            if problem.code not in ("not-found", "gone"):
                raise
            await self._create(name, title)
        task = self._keeping.get(name)
        if task is None or task.done():
            self._keeping[name] = asyncio.create_task(self._keep(name))

    async def _create(self, name: str, title: str | None) -> None:
        try:
            await self._client.rps.create(name=name, title=title, lease_s=self._lease_s, history=self._history)
            self.created += 1
        except Problem as problem:
            if problem.code != "conflict":
                raise
            await self._client.rps.get(name)  # it was created concurrently

    async def _keep(self, name: str) -> None:
        async def renew() -> Lease:
            return await self._client.rps.renew(name, self._lease_s)

        try:
            await keep(renew)
        except HeraldError as error:
            # Renewal is not permitted, or the RP has ended: the next publish notices, and ensures it again.
            log.warning("The lease of %s is not kept: %s", name, error)
