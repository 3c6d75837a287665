"""Contact points, which are notified of alarms: `client.contact_points`."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from herald.rest import Rest

_CONTACT_POINTS = "/api/v1/contact-points"


class ContactPoints:
    """Contact points, which are notified of alarms by webhook or mail; each by its id or name. All methods raise HeraldError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def list(self) -> list[dict[str, Any]]:
        """Return all contact points, without their secrets."""
        items: list[dict[str, Any]] = (await self._rest.page(_CONTACT_POINTS, {}))["items"]
        return items

    async def create(self, name: str, *, kind: str, **members: Any) -> dict[str, Any]:
        """Create a contact point. Requires an operator's token. Returns it with its `secret`, which is shown only here.

        Args:
            kind: webhook or mail.
            members: `url` and `secret` of a webhook, `to` of mail; `severity`, `resolved`, `group_s`.
        """
        body = {"name": name, "kind": kind, **members}
        return await self._rest.members("POST", _CONTACT_POINTS, body, again=False)

    async def change(self, contact_point: str, **changes: Any) -> dict[str, Any]:
        """Change members of a contact point, all but its kind. Returns it."""
        return await self._rest.members("PATCH", _path(contact_point), changes, again=True)

    async def delete(self, contact_point: str) -> None:
        """Delete a contact point."""
        await self._rest.request("DELETE", _path(contact_point), again=True)

    async def test(self, contact_point: str) -> dict[str, Any]:
        """Send a test message now. Returns `delivered`, `reason`, `took_ms`."""
        return await self._rest.members("POST", _path(contact_point, "/test"), {}, again=False)


def _path(contact_point: str, action: str = "") -> str:
    return f"{_CONTACT_POINTS}/{quote(contact_point, safe='')}{action}"
