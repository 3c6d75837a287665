"""The domain's part in the overlay of its federation, over REST: `client.overlay`. Decisions require an administrator's token, the
others a viewer's.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from herald.rest import Rest

_OVERLAY = "/api/v1/overlay"


class Overlay:
    """Founds, joins, leaves and describes. All methods raise HeraldError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def status(self) -> dict[str, Any]:
        """Return the membership: sponsor, founders, counts of domains and links, zones."""
        return await self._rest.members("GET", _OVERLAY, again=True)

    async def found(self) -> dict[str, Any]:
        """Found an overlay: this domain is the first of a federation. Returns the membership."""
        return await self._rest.members("POST", f"{_OVERLAY}/found", {}, again=True)

    async def join(self, sponsor: str) -> dict[str, Any]:
        """Have an active peer, by name or address, sponsor this domain, and join its overlay. Returns the membership."""
        return await self._rest.members("POST", f"{_OVERLAY}/join", {"sponsor": sponsor}, again=True)

    async def leave(self) -> dict[str, Any]:
        """End all overlay links. Returns the membership."""
        return await self._rest.members("POST", f"{_OVERLAY}/leave", {}, again=True)

    async def snapshot(self) -> dict[str, Any]:
        """Return the map of the overlay, `state`, and the `cursor` from which to follow `overlay.admin`."""
        return await self._rest.members("GET", f"{_OVERLAY}/snapshot", again=True)

    async def links(self) -> list[dict[str, Any]]:
        """Return the links that stand, then those that ended lately, each with its reason."""
        return list((await self._rest.page(f"{_OVERLAY}/links"))["items"])

    async def domains(self, **query: Any) -> dict[str, Any]:
        """Return a page of the directory: `items` and `next`. `query`: `search`, `zone`, `cursor`, `limit`."""
        return await self._rest.page(f"{_OVERLAY}/domains", query)

    async def explain(self, name: str) -> dict[str, Any]:
        """Return all that is known of a domain: its record, its sponsors, the link with it."""
        return await self._rest.members("GET", f"{_OVERLAY}/domains/{quote(name, safe='')}", again=True)
