"""Operation of a domain: `client.operating`.

Reading requires an administrator's, operator's or viewer's token, acting an administrator's or operator's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from herald.answers import parse_object
from herald.errors import ConnectionLost
from herald.rest import Rest, rp_path

SESSIONS = "/api/v1/sessions"
DRAIN = "/api/v1/drain"
EVIDENCE = "/api/v1/evidence"


class Operating:
    """Pauses and trims RPs, lists and disconnects sessions; lists leases, subscriptions and evidence; snapshots and
    names.

    All methods raise HeraldError.
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def pause(self, reference: str, *, reason: str | None = None) -> dict[str, Any]:
        """Have the domain refuse publishers' events at an RP; `reason` is for the publishers. Returns the RP."""
        return await self._rest.members("POST", rp_path(reference, "/pause"), _stated(reason=reason), again=True)

    async def resume(self, reference: str) -> dict[str, Any]:
        """Have the domain accept events at the RP again. Returns the RP."""
        return await self._rest.members("POST", rp_path(reference, "/resume"), {}, again=True)

    async def trim(self, reference: str, before: str, *, reason: str | None = None) -> dict[str, Any]:
        """Delete permanently the history up to the cursor `before`, or `all`.

        Returns `removed`, `epoch`, `first` (the oldest offset still held), `offset` (of the last event).
        """
        members = _stated(before=before, reason=reason)
        return await self._rest.members("POST", rp_path(reference, "/trim"), members, again=False)

    async def drain(self, for_s: int | None = None, *, closes: bool = False) -> dict[str, Any]:
        """Have the domain hand over what it has, for so many seconds; None: only show the state of the latest drain.

        Args:
            closes: the domain stops for good: subscribers of what nobody takes over are notified.
        """
        if for_s is None:
            return await self._rest.members("GET", DRAIN, again=True)
        return await self._rest.members(
            "POST", DRAIN, {"for_s": for_s, **({"closes": True} if closes else {})}, again=True
        )

    async def drain_preview(self, *, closes: bool = False) -> dict[str, Any]:
        """Return what a drain would do: `items`, each with `what`, `mode`, `count`, `fate` and `why`. Nothing changes."""
        return await self._rest.members("GET", f"{DRAIN}/preview?closes={str(closes).lower()}", again=True)

    async def end_drain(self) -> dict[str, Any]:
        """End the drain of the domain; what was handed over stays where it is."""
        return await self._rest.members("DELETE", DRAIN, again=False)

    async def sessions(self, **query: Any) -> dict[str, Any]:
        """Return a page of live sessions: `items`, `next`, `matching`, `gateways`. `query` as of GET /api/v1/sessions."""
        return await self._rest.page(SESSIONS, query)

    async def disconnect(
        self,
        session: str | None = None,
        *,
        principal: str | None = None,
        rp: str | None = None,
        retry: bool = False,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Disconnect one session, all of a principal, or all that read an RP: exactly one of the three is given.

        With `retry` the clients are asked to connect again; none is prevented from it. Returns `disconnected`, `retry`,
        `gateways`.
        """
        if session is not None:
            params = {"retry": "true" if retry else "false", **_stated(reason=reason)}
            return await self._rest.members(
                "DELETE", f"{SESSIONS}/{quote(session, safe='')}", params=params, again=False
            )
        members = _stated(principal=principal, rp=rp, retry=retry, reason=reason)
        return await self._rest.members("POST", f"{SESSIONS}/disconnect", members, again=True)

    async def leases(self, **query: Any) -> dict[str, Any]:
        """Return a page of leases, the soonest to expire first: `items`, `next`. `query` as of GET /api/v1/leases."""
        return await self._rest.page("/api/v1/leases", query)

    async def subscriptions(self, **query: Any) -> dict[str, Any]:
        """Return a page of durable subscriptions, each with its `lag` in events: `items`, `next`, `complete`.

        `query` as of GET /api/v1/subscriptions. Without a role that oversees the domain: the caller's own.
        """
        return await self._rest.page("/api/v1/subscriptions", query)

    async def evidence(self, **query: Any) -> dict[str, Any]:
        """Return a page of proofs of equivocation, newest first: `items`, `next`. `query`: `origin`, `cursor`, `limit`."""
        return await self._rest.page(EVIDENCE, query)

    async def evidence_export(self, digest: str) -> dict[str, Any]:
        """Return one such proof: both seals and the origin's document, for anybody to verify."""
        return await self._rest.members("GET", f"{EVIDENCE}/{quote(digest, safe='')}", again=True)

    async def snapshot(self, reference: str | None = None) -> dict[str, Any]:
        """Return the snapshot of the domain, or of an RP: `state`, and `cursor`, from which to follow `domain.admin` or
        `ID.admin`.
        """
        path = "/api/v1/admin/snapshot" if reference is None else rp_path(reference, "/snapshot")
        return await self._rest.members("GET", path, again=True)

    async def names(self) -> AsyncIterator[dict[str, Any]]:
        """Yield all RPs with their names; the last item is `{"cursor"}`, from which to follow `domain.admin`.

        Raises ConnectionLost if the answer ends without it.
        """
        row: dict[str, Any] = {}
        async for line in self._rest.lines("/api/v1/admin/names"):
            row = parse_object(line.encode(), "/api/v1/admin/names")
            yield row
        if "cursor" not in row:
            raise ConnectionLost("The export of names is incomplete.")


def _stated(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
