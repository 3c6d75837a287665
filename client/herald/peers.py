"""Management of the domain's peers over REST: `client.peers`. Requires an administrator's token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from herald.rest import Rest

_PEERS = "/api/v1/peers"


class Peers:
    """Looks up, adds, describes, approves, changes, suspends, resumes and removes peers. All methods raise HeraldError.

    A peer is the domain's document of it: `name`, `url`, `state` (proposed, asked, active, suspended), `theirs` (its
    stated stance towards this domain), `fingerprint`, `safety_number`, `push`, `host`, `gossip`, rates, and more.
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def look(self, url: str | None = None, *, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return a domain's own statement and its fingerprint; changes nothing. By its address, or by its document at
        `/.well-known/herald` if it cannot be reached.
        """
        return await self._rest.members("POST", f"{_PEERS}/look", _stated(url=url, document=document), again=True)

    async def add(
        self,
        url: str | None = None,
        *,
        fingerprint: str,
        document: Mapping[str, Any] | None = None,
        **trust: Any,
    ) -> dict[str, Any]:
        """Add a domain whose `fingerprint` was compared with its administrator; a domain that asks is approved.

        `trust`: `push`, `host`, `gossip`, `events_per_s`, `bytes_per_s`, `requests_per_s`, `note`.
        """
        members = _stated(url=url, document=document, fingerprint=fingerprint, **trust)
        return await self._rest.members("POST", _PEERS, members, again=True)

    async def all(self) -> list[dict[str, Any]]:
        """Return all peers by name, including domains that ask to be peers."""
        return list((await self._rest.page(_PEERS))["items"])

    async def get(self, name: str) -> dict[str, Any]:
        """Return one peer."""
        return await self._rest.members("GET", _path(name), again=True)

    async def approve(self, name: str, *, fingerprint: str, **trust: Any) -> dict[str, Any]:
        """Approve a domain that asks; `trust` as of `add`, and its `url` if it differs from the one in its document."""
        members = _stated(fingerprint=fingerprint, **trust)
        return await self._rest.members("POST", _path(name, "/approve"), members, again=True)

    async def change(self, name: str, **trust: Any) -> dict[str, Any]:
        """Change what a peer may do or send, its `url` or `note`; None for not given."""
        return await self._rest.members("PATCH", _path(name), _stated(**trust), again=True)

    async def suspend(self, name: str, *, note: str | None = None) -> dict[str, Any]:
        """Stop all exchange with a peer until it is resumed; its tokens are refused meanwhile."""
        return await self._rest.members("POST", _path(name, "/suspend"), _stated(note=note), again=True)

    async def resume(self, name: str, *, note: str | None = None) -> dict[str, Any]:
        """Resume a suspended peer."""
        return await self._rest.members("POST", _path(name, "/resume"), _stated(note=note), again=True)

    async def retry(self, name: str) -> dict[str, Any]:
        """Retry a peer now, whatever the pause. Returns it, after a hello."""
        return await self._rest.members("POST", _path(name, "/retry"), {}, again=True)

    async def replay(self, name: str, rp: str, *, after: str | None = None) -> dict[str, Any]:
        """Offer a peer the held events of an RP after the cursor `after` again; None for all."""
        return await self._rest.members("POST", _path(name, "/replay"), _stated(rp=rp, after=after), again=True)

    async def renew(self, name: str) -> dict[str, Any]:
        """Renew a peer's lease from now, as contact does. Returns it."""
        return await self._rest.members("POST", _path(name, "/renew"), {}, again=True)

    async def links(self, name: str, **query: Any) -> dict[str, Any]:
        """Return a page of the RPs that are shared with a peer, with the events that either side lacks: `items`,
        `next`.
        """
        return await self._rest.page(_path(name, "/links"), query)

    async def remove(self, name: str) -> None:
        """Remove a peer, or decline a domain that asks."""
        await self._rest.request("DELETE", _path(name), again=False)


def _path(name: str, action: str = "") -> str:
    return f"{_PEERS}/{quote(name, safe='')}{action}"


def _stated(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
