"""Webhooks: subscriptions whose events a domain sends to an endpoint: `client.hooks`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from herald.rest import Rest, rp_path, subscription_path
from herald.starts import start_text, starting


class Hooks:
    """Create and look after webhooks. All methods raise HeraldError, and return the domain's documents."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def create(
        self,
        rp: str,
        url: str,
        *,
        lease_s: int | None = None,
        from_: str | datetime = "now",
        replicas: int | None = None,
        **deliver: Any,
    ) -> dict[str, Any]:
        """Have the events of an RP (id or name) sent to an endpoint, which must consent first.

        Arguments:
            lease_s: seconds to live unless renewed; None for the domain's default.
            from_: where delivery begins: `now`, `earliest`, `last`, a cursor, a datetime, or `time:` and a time.
            replicas: domains that hold it; the others need its endpoint, too (`state`, at each). None: this domain only.
            deliver: the options of docs/how-to/webhooks.md: secret, format, ordered, headers ...
        """
        begin = start_text(from_)
        members: dict[str, Any] = {"from": begin, "deliver": {"mode": "webhook", "url": url, **deliver}}
        if lease_s is not None:
            members["lease_s"] = lease_s
        if replicas is not None:
            members["replicas"] = replicas
        key = {"Idempotency-Key": str(uuid.uuid4())}
        with starting(begin):
            return await self._rest.members("POST", rp_path(rp, "/subscriptions"), members, headers=key, again=True)

    async def state(self, subscription_id: str, url: str, *, mode: str = "webhook", **deliver: Any) -> dict[str, Any]:
        """State the endpoint at this domain: another address, or the one of a subscription that another domain created."""
        return await self._members("PATCH", subscription_id, "", {"deliver": {"mode": mode, "url": url, **deliver}})

    async def endpoint(self, subscription_id: str) -> dict[str, Any]:
        """Describe the endpoint."""
        return await self._members("GET", subscription_id, "/endpoint")

    async def attempts(self, subscription_id: str) -> list[dict[str, Any]]:
        """Return the last attempts, the newest first."""
        found = await self._members("GET", subscription_id, "/attempts")
        return list(found["items"])

    async def dead_letters(self, subscription_id: str, *, cursor: str | None = None) -> dict[str, Any]:
        """Return a page of events that were given up."""
        return await self._rest.page(subscription_path(subscription_id, "/dead-letters"), {"cursor": cursor})

    async def test(self, subscription_id: str) -> str:
        """Have a test event sent. Returns its id, which is the member `message` of its attempt."""
        return str((await self._members("POST", subscription_id, "/endpoint/test", {}))["id"])

    async def pause(self, subscription_id: str) -> dict[str, Any]:
        """Stop deliveries."""
        return await self._members("POST", subscription_id, "/endpoint/pause", {})

    async def resume(self, subscription_id: str) -> dict[str, Any]:
        """Try at once."""
        return await self._members("POST", subscription_id, "/endpoint/resume", {})

    async def page(self, subscription_id: str) -> dict[str, Any]:
        """Make a link to the endpoint's page, for a person without an account: members `url` and `expires_at`. It works once."""
        return await self._members("POST", subscription_id, "/endpoint/page", {})

    async def secret_replace(self, subscription_id: str, secret: str, *, keep_s: int | None = None) -> dict[str, Any]:
        """Sign with another secret; the present one signs too for `keep_s` seconds, None for a day."""
        members: dict[str, Any] = {"secret": secret} if keep_s is None else {"secret": secret, "keep_s": keep_s}
        return await self._members("POST", subscription_id, "/endpoint/secret", members)

    async def replay(
        self,
        subscription_id: str,
        *,
        dead_letters: Sequence[int] | None = None,
        span: tuple[str, str] | None = None,
    ) -> int:
        """Have events sent again. Returns the number of dead letters, or of ranges, that were queued.

        Arguments:
            dead_letters: their ids; None for all.
            span: instead, two cursors: all events after the first one up to the second one.
        """
        members: dict[str, Any] = {}
        if span is not None:
            members = {"after": span[0], "until": span[1]}
        elif dead_letters is not None:
            members = {"dead_letters": list(dead_letters)}
        return int((await self._members("POST", subscription_id, "/replay", members))["dead_letters"])

    async def _members(
        self, method: str, subscription_id: str, action: str, members: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        path = subscription_path(subscription_id, action)
        return await self._rest.members(method, path, members, again=method == "GET")
