"""Replicas over REST: `client.replicas`. A replica is a domain's participation in a rendezvous point of another domain."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from herald.rendezvous_points import PAGES_MAX, RendezvousPoint
from herald.rest import Rest, json_object, rp_path

_REPLICAS = "/api/v1/replicas"
JOIN_S = 40.0  # a join waits for other domains


class Replicas:
    """Joins, lists and leaves rendezvous points of other domains; lists participants, and invites. All methods raise
    HeraldError.
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def join(
        self,
        rp: str,
        *,
        via: str | None = None,
        lease_s: int | None = None,
        history: Mapping[str, int | None] | None = None,
    ) -> RendezvousPoint:
        """Have the domain hold a replica of the rendezvous point with the id `rp`; it exists when this returns.

        Arguments:
            via: the peer to ask, the home or any with a replica; None for all peers, one after the other.
            lease_s: length of each lease; the domain renews it until it leaves. None for its default.
            history: most history to keep (`max_events`, `max_bytes`, `max_age_s`), if less than the home's.
        """
        wish = {"rp": rp, "via": via, "lease_s": lease_s, "history": dict(history) if history else None}
        members = {name: value for name, value in wish.items() if value is not None}
        # Joining again only renews, so it may be repeated.
        return _described(await self._rest.request("POST", _REPLICAS, members, again=True, timeout_s=JOIN_S))

    async def list(self) -> AsyncIterator[RendezvousPoint]:
        """Yield the domain's replicas that you may describe, by id."""
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = await self._rest.page(_REPLICAS, {"cursor": cursor})
            for document in page["items"]:
                yield RendezvousPoint.of(document)
            cursor = page.get("next")
            if cursor is None:
                return

    async def leave(self, rp: str) -> None:
        """End the domain's replica of the rendezvous point with the id `rp`, with the history held here."""
        await self._rest.request("DELETE", f"{_REPLICAS}/{quote(rp, safe='')}", again=False, timeout_s=JOIN_S)

    async def participants(self, reference: str) -> Sequence[dict[str, Any]]:
        """Return the participants: `domain`, `url`, `role`, `vector`, `link`, `backlog`; the home first."""
        return list((await self._rest.page(f"{rp_path(reference)}/replicas"))["items"])

    async def invite(self, reference: str, peer: str) -> RendezvousPoint:
        """Invite a peer to hold a replica of a rendezvous point of the domain; it exists when this returns."""
        path = f"{rp_path(reference)}/replicas"
        return _described(await self._rest.request("POST", path, {"peer": peer}, again=True, timeout_s=JOIN_S))

    async def move(self, reference: str, domain: str) -> RendezvousPoint:
        """Make another participant the home of a rendezvous point whose home the domain is; it keeps a replica."""
        path = f"{rp_path(reference)}/move"
        return _described(await self._rest.request("POST", path, {"domain": domain}, again=False, timeout_s=JOIN_S))

    async def set_succession(
        self, reference: str, electors: Sequence[str], *, silence_s: int | None = None
    ) -> RendezvousPoint:
        """State which participants elect a successor of a silent home, in the order in which they succeed; none: nobody."""
        members: dict[str, Any] = {"electors": list(electors)}
        if silence_s is not None:
            members["silence_s"] = silence_s
        path = f"{rp_path(reference)}/succession"
        return _described(await self._rest.request("POST", path, members, again=True, timeout_s=JOIN_S))


def _described(response: Any) -> RendezvousPoint:
    return RendezvousPoint.of(json_object(response), response.headers.get("ETag", ""))
