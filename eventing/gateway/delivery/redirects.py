"""Redirects of clients to other replicas, when a replica here has ended and when this gateway stops.

An ended replica is remembered for a day (replication/selectors/redirects.py): HTTP requests for it are answered 307
with the same path at another replica, WebSockets are sent a `redirect` frame before the error. A stopping gateway sends
its readers `redirect` before it closes; it looks up the addresses in advance, when an RP with replicas is first read
and every CHECK_S after. Version-vector cursors make the move lossless.
"""

from __future__ import annotations

import asyncio
import logging
import time
from urllib.parse import parse_qsl, quote, urlencode

from eventing.core.errors import ApplicationError, Gone, Moved
from eventing.gateway import http
from eventing.gateway.delivery.frames import message
from eventing.replication.selectors.redirects import replica_urls
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database

CHECK_S = 60.0
RPS_MAX = 10_000  # bound: RPs whose other addresses are in memory; the oldest are discarded
log = logging.getLogger(__name__)


def redirect_frame(rp: str, urls: list[str]) -> bytes:
    """Make {"op": "redirect", "rp", "to": [base URL of a domain, ...]}."""
    return message({"op": "redirect", "rp": rp, "to": urls})


def location(moved: Moved, scope: http.Scope, action: str) -> str:
    """Make the address for repeating the request: at the first replica, by the RP's id, and without this domain's
    token.

    A request about a shared subscription keeps its path there.
    """
    members = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    kept = urlencode([(name, value) for name, value in members if name != "access_token"])
    shared = moved.extra.get("subscription")
    of = f"subscriptions/{quote(shared, safe='')}" if shared else f"rps/{quote(moved.extra['rp'], safe='')}"
    path = f"/api/v1/{of}/{action}"
    return f"{moved.extra['to'][0].rstrip('/')}{path}{'?' if kept else ''}{kept}"


def of_subscription(error: ApplicationError) -> ApplicationError:
    """Convert the error for a durable subscription whose RP has moved: the subscription was local and has ended with
    the replica.

    A shared subscription has moved itself, and continues.
    """
    if not isinstance(error, Moved) or "subscription" in error.extra:
        return error
    return Gone(
        "The subscription ended with this domain's replica; subscribe at one of the domains in `to`.", **error.extra
    )


class Redirects:
    """Cache of the other replicas' addresses: a stopping gateway has no time to look them up. One per gateway."""

    def __init__(self) -> None:
        self._urls: dict[str, list[str]] = {}
        self._checked_at: dict[str, float] = {}
        self._checks: set[asyncio.Task[None]] = set()

    def known(self, rp: str) -> list[str]:
        """Return the base URLs of the other domains that serve `rp`."""
        return self._urls.get(rp, [])

    def check(self, descriptor: Descriptor) -> None:
        """Look up the addresses of an RP's replicas soon, if it has any."""
        if not descriptor.home and not descriptor.links:
            return
        rp, now = descriptor.id, time.monotonic()
        if now - self._checked_at.get(rp, -CHECK_S) < CHECK_S:
            return
        self._checked_at.pop(rp, None)
        self._checked_at[rp] = now
        if len(self._checked_at) > RPS_MAX:
            oldest = next(iter(self._checked_at))
            del self._checked_at[oldest]
            self._urls.pop(oldest, None)
        task = asyncio.get_running_loop().create_task(self._check(rp))
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)

    async def _check(self, rp: str) -> None:
        try:
            self._urls[rp] = await in_database(replica_urls)(rp)
        except ApplicationError as error:
            self._checked_at.pop(rp, None)
            log.warning("The addresses of the replicas of %s cannot be read: %s", rp, error.detail)

    def close(self) -> None:
        """Stop looking up."""
        for task in self._checks:
            task.cancel()
