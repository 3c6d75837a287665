"""Watch rules and alarms of a domain: `client.alarms`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

from herald.rest import Rest, rp_path

ALARMS = "/api/v1/alarms"
WATCHES = "/api/v1/watches"


class Alarms:
    """Lists and acknowledges alarms; reads and sets the rules that raise them. All methods raise HeraldError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def list(
        self, *, state: str = "open", rp: str | None = None, limit: int = 100
    ) -> AsyncIterator[dict[str, Any]]:
        """Return the alarms, newest first: those in force, `cleared` ones or `all`; with `rp` only those of that RP."""
        cursor: str | None = None
        while True:
            query = {"state": state, "rp": rp, "cursor": cursor, "limit": limit}
            page = await self._rest.page(ALARMS, query)
            for item in page["items"]:
                yield item
            cursor = page["next"]
            if cursor is None:
                return

    async def acknowledge(self, alarm: str, *, note: str = "") -> dict[str, Any]:
        """Acknowledge an alarm. Requires an operator's token. Returns the alarm."""
        path = f"{ALARMS}/{quote(alarm, safe='')}/acknowledge"
        return await self._rest.members("POST", path, {"note": note}, again=True)

    async def mute(self, alarm: str, *, for_s: int, reason: str = "") -> dict[str, Any]:
        """Mute an alarm for `for_s` seconds from now. Requires an operator's token. Returns the alarm."""
        path = f"{ALARMS}/{quote(alarm, safe='')}/mute"
        return await self._rest.members("POST", path, {"for_s": for_s, "reason": reason}, again=True)

    async def unmute(self, alarm: str) -> dict[str, Any]:
        """End the mute of an alarm. Requires an operator's token. Returns the alarm."""
        return await self._rest.members("POST", f"{ALARMS}/{quote(alarm, safe='')}/unmute", {}, again=True)

    async def watch(
        self,
        reference: str,
        *,
        watch: Sequence[Any] | None = None,
        audience: Sequence[Any] | None = None,
        if_match: str | None = None,
    ) -> dict[str, Any]:
        """Set the rules of an RP, or its audiences; None leaves them as they are. Returns the RP.

        Args:
            if_match: an etag of the RP; if its rules were changed since, Problem 412 is raised. None: any are replaced.
        """
        changes = {name: value for name, value in (("watch", watch), ("audience", audience)) if value is not None}
        headers = {"If-Match": if_match} if if_match else {}
        # A repetition of what was done would no longer match.
        return await self._rest.members("PATCH", rp_path(reference), changes, headers=headers, again=not if_match)

    async def rules(self) -> dict[str, Any]:
        """Return the domain's rules: `watch`, `version`, `changed_at`."""
        return await self._rest.members("GET", WATCHES, again=True)

    async def rules_replace(self, watch: Sequence[Any]) -> dict[str, Any]:
        """Replace the domain's rules. Requires an operator's token."""
        return await self._rest.members("PUT", WATCHES, {"watch": list(watch)}, again=True)
