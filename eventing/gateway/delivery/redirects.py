"""Clients are pointed to other replicas: when a replica here has ended, and when this gateway stops.

A replica that ended is remembered for a day (replication/selectors/redirects.py): HTTP requests for it are answered 307 with the same
path at another replica, WebSockets are sent a `redirect` frame before the error. A gateway that stops sends its readers
`redirect` before it closes; for that it looks for the addresses while all is well, when an RP with replicas is first
read and every LOOK_S after. Version-vector cursors make the move lossless.
"""

from __future__ import annotations

import asyncio
import logging
import time
from urllib.parse import parse_qsl, quote, urlencode

from eventing.core.errors import Gone, HeraldError, Moved
from eventing.gateway import http
from eventing.gateway.delivery.frames import message
from eventing.replication.selectors.redirects import replica_urls
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database

LOOK_S = 60.0
RPS_MAX = 10_000  # whose addresses are kept; with more, the oldest are forgotten
log = logging.getLogger(__name__)


def redirect_frame(rp: str, urls: list[str]) -> bytes:
    """{"op": "redirect", "rp", "to": [base URL of a domain, ...]}"""
    return message({"op": "redirect", "rp": rp, "to": urls})


def location(moved: Moved, scope: http.Scope, action: str) -> str:
    """Where the request is to be sent again: at the first replica, by the RP's id, and without the token, which is ours.

    What is asked of a shared subscription is asked of it there.
    """
    members = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    kept = urlencode([(name, value) for name, value in members if name != "access_token"])
    shared = moved.extra.get("subscription")
    of = f"subscriptions/{quote(shared, safe='')}" if shared else f"rps/{quote(moved.extra['rp'], safe='')}"
    path = f"/api/v1/{of}/{action}"
    return f"{moved.extra['to'][0].rstrip('/')}{path}{'?' if kept else ''}{kept}"


def of_subscription(error: HeraldError) -> HeraldError:
    """What is told of a durable subscription whose RP has moved: it was this domain's, and has ended with the replica.

    A shared one has moved itself, and goes on.
    """
    if not isinstance(error, Moved) or "subscription" in error.extra:
        return error
    return Gone(
        "The subscription ended with this domain's replica; subscribe at one of the domains in `to`.", **error.extra
    )


class Redirects:
    """The other replicas' addresses, known beforehand: a gateway that stops has no time to look. One per gateway."""

    def __init__(self) -> None:
        self._urls: dict[str, list[str]] = {}
        self._looked_at: dict[str, float] = {}
        self._looks: set[asyncio.Task[None]] = set()

    def known(self, rp: str) -> list[str]:
        """The base URLs of the other domains that serve `rp`."""
        return self._urls.get(rp, [])

    def look(self, descriptor: Descriptor) -> None:
        """Look for the addresses of an RP's replicas soon, if it has any."""
        if not descriptor.home and not descriptor.links:
            return
        rp, now = descriptor.id, time.monotonic()
        if now - self._looked_at.get(rp, -LOOK_S) < LOOK_S:
            return
        self._looked_at.pop(rp, None)
        self._looked_at[rp] = now
        if len(self._looked_at) > RPS_MAX:
            oldest = next(iter(self._looked_at))
            del self._looked_at[oldest]
            self._urls.pop(oldest, None)
        task = asyncio.get_running_loop().create_task(self._look(rp))
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)

    async def _look(self, rp: str) -> None:
        try:
            self._urls[rp] = await in_database(replica_urls)(rp)
        except HeraldError as error:
            self._looked_at.pop(rp, None)
            log.warning("The addresses of the replicas of %s cannot be read: %s", rp, error.detail)

    def close(self) -> None:
        """Look no more."""
        for task in self._looks:
            task.cancel()
