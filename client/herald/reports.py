"""Reports of a domain's access records: `client.reports`. Reading requires a viewer's token, requesting one an
operator's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from herald.rest import Rest

REPORTS = "/api/v1/reports"
DOWNLOAD_SILENCE_S = 60.0
"""Longest silence of the domain, seconds: joining the files of a large table takes a while."""


class Reports:
    """Requests reports, returns their progress, downloads their tables. All methods raise HeraldError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def run(self, job: str, *, begin: str | None = None, end: str | None = None) -> dict[str, Any]:
        """Queue a report; returns its run. Times are RFC 3339 with their offset; None: a day long, up to now."""
        stated = {"from": begin, "to": end}
        members = {"job": job, **{name: value for name, value in stated.items() if value is not None}}
        return await self._rest.members("POST", REPORTS, members, again=False)

    async def page(self, **query: Any) -> dict[str, Any]:
        """Return a page of runs, newest first: `items`, `next`, `engine`. `query` as of GET /api/v1/reports."""
        return await self._rest.page(REPORTS, query)

    async def get(self, run: str) -> dict[str, Any]:
        """Return a run with its `report` (None until it is done)."""
        return await self._rest.members("GET", _path(run), again=True)

    async def cancel(self, run: str) -> dict[str, Any]:
        """End a run that is queued or running; returns it."""
        return await self._rest.members("DELETE", _path(run), again=True)

    async def rows(self, run: str, table: str, **query: Any) -> dict[str, Any]:
        """Return a page of a table: `columns`, `items` (rows), `rows` (of the whole table), `next`."""
        return await self._rest.members("GET", _table(run, table), params=query, again=True)

    def download(self, run: str, table: str, form: str = "csv") -> AsyncIterator[bytes]:
        """Yield all of a table, as `csv` or `parquet`, in chunks."""
        return self._rest.chunks(_table(run, table), {"format": form}, timeout_s=DOWNLOAD_SILENCE_S)


def _path(run: str) -> str:
    return f"{REPORTS}/{quote(run, safe='')}"


def _table(run: str, table: str) -> str:
    return f"{_path(run)}/table/{quote(table, safe='')}"
