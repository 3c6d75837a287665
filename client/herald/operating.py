"""What operators of a domain look at and do: `client.operating`.

Looking needs the token of who oversees the domain (an administrator's, operator's or viewer's), acting an administrator's
or operator's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from herald.answers import parse_object
from herald.errors import ConnectionLost
from herald.rest import Rest, rp_path

SESSIONS = "/api/v1/sessions"
EVIDENCE = "/api/v1/evidence"


class Operating:
    """Pause and trim RPs, see and disconnect sessions; list leases, subscriptions and evidence; snapshots and names.

    All methods raise HeraldError.
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def pause(self, reference: str, *, reason: str | None = None) -> dict[str, Any]:
        """Have the domain take no events at an RP from its publishers; `reason` is what they are told. Returns the RP."""
        return await self._rest.members("POST", rp_path(reference, "/pause"), _stated(reason=reason), again=True)

    async def resume(self, reference: str) -> dict[str, Any]:
        """Have it take events again. Returns the RP."""
        return await self._rest.members("POST", rp_path(reference, "/resume"), {}, again=True)

    async def trim(self, reference: str, before: str, *, reason: str | None = None) -> dict[str, Any]:
        """Remove for good what the history holds up to the cursor `before`, or `all`.

        Returns `removed`, `epoch`, `first` (the oldest offset still held), `offset` (of the last event).
        """
        members = _stated(before=before, reason=reason)
        return await self._rest.members("POST", rp_path(reference, "/trim"), members, again=False)

    async def sessions(self, **query: Any) -> dict[str, Any]:
        """A page of live sessions: `items`, `next`, `matching`, `gateways`. `query` as of GET /api/v1/sessions."""
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
        """Disconnect one session, all of a principal, or all that read an RP: one of the three is stated.

        With `retry` the clients are told to connect again; none is kept from it. Returns `disconnected`, `retry`, `gateways`.
        """
        if session is not None:
            params = {"retry": "true" if retry else "false"}
            return await self._rest.members(
                "DELETE", f"{SESSIONS}/{quote(session, safe='')}", params=params, again=False
            )
        members = _stated(principal=principal, rp=rp, retry=retry, reason=reason)
        return await self._rest.members("POST", f"{SESSIONS}/disconnect", members, again=True)

    async def leases(self, **query: Any) -> dict[str, Any]:
        """A page of leases, the soonest to end first: `items`, `next`. `query` as of GET /api/v1/leases."""
        return await self._rest.page("/api/v1/leases", query)

    async def subscriptions(self, **query: Any) -> dict[str, Any]:
        """A page of durable subscriptions, each with its `lag` in events: `items`, `next`, `complete`.

        `query` as of GET /api/v1/subscriptions. Whose token does not oversee the domain is shown their own.
        """
        return await self._rest.page("/api/v1/subscriptions", query)

    async def evidence(self, **query: Any) -> dict[str, Any]:
        """A page of proofs that a domain told two stories, newest first: `items`, `next`. `query`: `origin`, `cursor`, `limit`."""
        return await self._rest.page(EVIDENCE, query)

    async def evidence_export(self, digest: str) -> dict[str, Any]:
        """One such proof, whole: both seals and the origin's document, for others to check."""
        return await self._rest.members("GET", f"{EVIDENCE}/{quote(digest, safe='')}", again=True)

    async def snapshot(self, reference: str | None = None) -> dict[str, Any]:
        """The domain, or an RP, as it is now: `state`, and `cursor`, from which `domain.admin` or `ID.admin` is followed."""
        path = "/api/v1/admin/snapshot" if reference is None else rp_path(reference, "/snapshot")
        return await self._rest.members("GET", path, again=True)

    async def names(self) -> AsyncIterator[dict[str, Any]]:
        """All RPs with their names, one after the other; the last item is `{"cursor"}`, from which to follow `domain.admin`.

        Raises ConnectionLost if the answer ends without it.
        """
        row: dict[str, Any] = {}
        async for line in self._rest.lines("/api/v1/admin/names"):
            row = parse_object(line.encode(), "/api/v1/admin/names")
            yield row
        if "cursor" not in row:
            raise ConnectionLost("The export of names was cut off.")


def _stated(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
