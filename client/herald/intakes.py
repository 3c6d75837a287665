"""Intakes over REST: `client.intakes`. All of it requires the operation `administer` at the rendezvous point."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from herald.rest import Rest, rp_path

_INTAKES = "/api/v1/intakes"


class Intakes:
    """Addresses at which other systems' webhooks become events. All methods raise HeraldError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def create(self, reference: str, *, format: str = "plain", **members: Any) -> dict[str, Any]:
        """Create an intake at an RP. Returns it with its address, `url`, which is shown only here.

        Args:
            format: plain, cloudevents, standard-webhooks, github, stripe, grafana, alertmanager or websub.
            members: `secret`, `title`, `source`, `timestamp_header`, `lease_s`.
        """
        body = {"format": format, **members}
        return await self._rest.members("POST", rp_path(reference, "/intakes"), body, again=False)

    async def list(self, reference: str, **query: Any) -> dict[str, Any]:
        """Return a page of the RP's intakes: `items` and `next`. `query`: `cursor`, `limit`."""
        return await self._rest.page(rp_path(reference, "/intakes"), query)

    async def get(self, intake: str) -> dict[str, Any]:
        """Return an intake, without its address and secret."""
        return await self._rest.members("GET", _path(intake), again=True)

    async def change(self, intake: str, **changes: Any) -> dict[str, Any]:
        """Change `title`, `secret` or `timestamp_header`. Returns the intake."""
        return await self._rest.members("PATCH", _path(intake), changes, again=False)

    async def renew(self, intake: str, lease_s: int | None = None) -> dict[str, Any]:
        """Renew the lease from now; `lease_s` None for the longest. Returns `lease`."""
        body = {} if lease_s is None else {"lease_s": lease_s}
        return await self._rest.members("POST", _path(intake, "/renew"), body, again=True)

    async def delete(self, intake: str) -> None:
        """End an intake: its address receives nothing any more."""
        await self._rest.request("DELETE", _path(intake), again=True)


def _path(intake: str, action: str = "") -> str:
    return f"{_INTAKES}/{quote(intake, safe='')}{action}"
