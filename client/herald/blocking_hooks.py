"""Webhooks for programs without asyncio: `client.hooks` of herald.sync."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from herald.hooks import Hooks

T = TypeVar("T")


class RunCoroutine(Protocol):
    """Runs a coroutine on the client's thread and waits for it."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T:
        """Return the coroutine's result, or raise its error."""


class BlockingHooks:
    """See herald.hooks."""

    def __init__(self, run: RunCoroutine, hooks: Hooks) -> None:
        self._run = run
        self._hooks = hooks

    def create(
        self,
        rp: str,
        url: str,
        *,
        lease_s: int | None = None,
        from_: str | datetime = "now",
        replicas: int | None = None,
        **deliver: Any,
    ) -> dict[str, Any]:
        """Have the events of an RP sent to an endpoint."""
        return self._run(self._hooks.create(rp, url, lease_s=lease_s, from_=from_, replicas=replicas, **deliver))

    def state(self, subscription_id: str, url: str, *, mode: str = "webhook", **deliver: Any) -> dict[str, Any]:
        """State the endpoint at this domain."""
        return self._run(self._hooks.state(subscription_id, url, mode=mode, **deliver))

    def endpoint(self, subscription_id: str) -> dict[str, Any]:
        """Describe the endpoint."""
        return self._run(self._hooks.endpoint(subscription_id))

    def attempts(self, subscription_id: str) -> list[dict[str, Any]]:
        """Return the last attempts, the newest first."""
        return self._run(self._hooks.attempts(subscription_id))

    def dead_letters(self, subscription_id: str, *, cursor: str | None = None) -> dict[str, Any]:
        """Return a page of events that were given up."""
        return self._run(self._hooks.dead_letters(subscription_id, cursor=cursor))

    def test(self, subscription_id: str) -> str:
        """Have a test event sent."""
        return self._run(self._hooks.test(subscription_id))

    def pause(self, subscription_id: str) -> dict[str, Any]:
        """Stop deliveries."""
        return self._run(self._hooks.pause(subscription_id))

    def resume(self, subscription_id: str) -> dict[str, Any]:
        """Try at once."""
        return self._run(self._hooks.resume(subscription_id))

    def page(self, subscription_id: str) -> dict[str, Any]:
        """Make a link to the endpoint's page, for a person without an account: members `url` and `expires_at`. It works once."""
        return self._run(self._hooks.page(subscription_id))

    def secret_replace(self, subscription_id: str, secret: str, *, keep_s: int | None = None) -> dict[str, Any]:
        """Sign with another secret."""
        return self._run(self._hooks.secret_replace(subscription_id, secret, keep_s=keep_s))

    def replay(
        self,
        subscription_id: str,
        *,
        dead_letters: Sequence[int] | None = None,
        span: tuple[str, str] | None = None,
    ) -> int:
        """Have events sent again."""
        return self._run(self._hooks.replay(subscription_id, dead_letters=dead_letters, span=span))
