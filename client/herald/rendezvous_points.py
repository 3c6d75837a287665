"""Management of rendezvous points over REST: `client.rps`."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from herald.leases import Lease
from herald.rest import Rest, RestAnswer, json_object, rp_path

PAGES_MAX = 1_000_000  # a longer list is faulty


@dataclass(frozen=True, slots=True)
class RendezvousPoint:
    """The domain's statement of an RP.

    Attributes:
        id: its self-certifying id.
        name: `/authority/a/b/`; empty if it has none.
        epoch: life of its log's numbering.
        lease: the granted lease.
        etag: version of this statement, for `update(..., if_match=...)`; empty if it is from a list.
        document: all of the statement.
    """

    id: str
    name: str
    title: str
    epoch: str
    lease: Lease
    etag: str
    document: Mapping[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any], etag: str = "") -> RendezvousPoint:
        """Read the domain's document."""
        return cls(
            str(document.get("id", "")),
            str(document.get("name") or ""),
            str(document.get("title") or ""),
            str(document.get("epoch") or ""),
            Lease.of(document),
            etag,
            document,
        )


class RendezvousPoints:
    """Create, describe, list, change, renew and delete. References are ids or names; all methods raise HeraldError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def create(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        lease_s: int | None = None,
        history: Mapping[str, int] | None = None,
        policy: list[Mapping[str, Any]] | None = None,
        ack: str | None = None,
        **properties: Any,
    ) -> RendezvousPoint:
        """Create an RP, once, however often the request has to be repeated.

        Arguments:
            name: `/authority/a/b/`, or `a/b` for one under the domain; None for none.
            lease_s: seconds to live unless renewed; the domain may grant less. None for the domain's default.
            history: `max_events`, `max_bytes`, `max_age_s`: events to keep for late readers; all or nothing.
            policy: rules that state who may do what; None for any token of the domain.
            ack: `accepted`, `stored`, `replicated:n` or `replicated:all`: how durable an event is when its publisher is answered.
        """
        members = {
            "name": name, "title": title, "lease_s": lease_s, "history": history, "policy": policy, "ack": ack,
            **properties,
        }  # fmt: skip
        stated = {key: value for key, value in members.items() if value is not None}
        response = await self._rest.request(
            "POST", "/api/v1/rps", stated, headers={"Idempotency-Key": str(uuid.uuid4())}, again=True
        )
        return _described(response)

    async def get(self, reference: str) -> RendezvousPoint:
        """Describe an RP."""
        return _described(await self._rest.request("GET", rp_path(reference), again=True))

    async def list(self, **filters: str) -> AsyncIterator[RendezvousPoint]:
        """Yield all RPs, page by page. RPs created or removed meanwhile may be included or not; no other is left out or
        repeated.
        """
        params: dict[str, str] = dict(filters)
        for _ in range(PAGES_MAX):
            page = await self._rest.page("/api/v1/rps", params)
            for document in page["items"]:
                yield RendezvousPoint.of(document)
            cursor = page.get("next")
            if not cursor:
                return
            params["cursor"] = cursor

    async def update(
        self, reference: str, changes: Mapping[str, Any], *, if_match: str | None = None
    ) -> RendezvousPoint:
        """Change some members; with `if_match` (an etag) only if it was not changed since (Problem 412 otherwise)."""
        headers = {"If-Match": if_match} if if_match else {}
        return _described(
            await self._rest.request("PATCH", rp_path(reference), dict(changes), headers=headers, again=False)
        )

    async def reliability(self, reference: str) -> dict[str, Any]:
        """Return the target reliability of an RP with what the domain plans and measures (GET .../reliability)."""
        return await self._rest.members("GET", rp_path(reference, "/reliability"), again=True)

    async def renew(self, reference: str, lease_s: int | None = None) -> Lease:
        """Renew the lease from now; it never ends earlier than before."""
        members = {} if lease_s is None else {"lease_s": lease_s}
        return Lease.of(await self._rest.members("POST", rp_path(reference, "/renew"), members, again=True))

    async def delete(self, reference: str, *, reason: str = "") -> None:
        """Delete an RP with its log and its subscriptions; `reason` is recorded in the audit."""
        await self._rest.request("DELETE", rp_path(reference), params={"reason": reason or None}, again=False)

    async def explain(
        self,
        reference: str,
        operation: str,
        *,
        token: str | None = None,
        claims: Mapping[str, Any] | None = None,
        policy: Sequence[Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Explain whether a bearer may do `operation` at an RP: `allowed`, `decided_by`, `reason`, `rules`.

        Arguments:
            token: the bearer's; explaining others' requires `administer` at the RP.
            claims: instead of a token, claims as if their issuer (`iss`) had signed them. With neither, a bearer
                without a token.
            policy: an unsaved policy that decides instead of the RP's own; requires `administer`.
        """
        stated = {"operation": operation, "token": token, "claims": claims, "policy": policy}
        members = {name: value for name, value in stated.items() if value is not None}
        return await self._rest.members("POST", rp_path(reference, "/policy/explain"), members, again=True)


def _described(response: RestAnswer) -> RendezvousPoint:
    return RendezvousPoint.of(json_object(response), response.headers.get("ETag", ""))
