"""Names of rendezvous points in lists of what refers to them by id."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from herald.client import Client
from herald.errors import HeraldError

LOOKUPS_MAX = 200  # bound: names looked up for one list; other rendezvous points are shown by their ids
AT_ONCE = 8  # bound: lookups at once; further ones wait


class RpNames:
    """Names by id, each looked up once. An RP without a name, and one that cannot be described, has its id for a name."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: dict[str, str] = {}
        self._room = asyncio.Semaphore(AT_ONCE)

    def __getitem__(self, rp: str) -> str:
        """Return the name of an RP that was looked up, else its id."""
        return self._names.get(rp, rp)

    async def look_up(self, rps: Iterable[str]) -> None:
        """Look up those that are not known yet."""
        new = [rp for rp in dict.fromkeys(rps) if rp not in self._names and "." not in rp]
        new = new[: max(0, LOOKUPS_MAX - len(self._names))]
        await asyncio.gather(*(self._look_up(rp) for rp in new))

    async def _look_up(self, rp: str) -> None:
        async with self._room:
            try:
                self._names[rp] = (await self._client.rps.get(rp)).name or rp
            except HeraldError:
                self._names[rp] = rp
