"""Requests to the WebSub hub, settled by the deliverer: the intent of a callback is verified, or the denial is sent.

    unsettled in Redis -> one GET to the callback -> subscription created, replaced or ended -> removed from Redis

A request costs at most one GET (a second one only if the subscription is refused after its verification), and none where there is
nothing to do. A failed verification changes nothing and is not repeated: the subscriber asks again. A crash repeats the GET.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from eventing.core.errors import ApplicationError, Unavailable
from eventing.sql.threads import in_database
from eventing.store.errors import RedisError
from eventing.store.hub_requests import hub_request_settle, hub_requests_page
from eventing.subscriptions.push.modes import PushRequest
from eventing.subscriptions.push.rules.addresses import EndpointUrl
from eventing.subscriptions.push.rules.verdicts import PushAnswer
from eventing.subscriptions.push.services.unsettled import VALID_S, UnsettledRequest, request_open
from eventing.subscriptions.push.services.websub import (
    callback_parse,
    websub_exists,
    websub_subscribe,
    websub_unsubscribe,
)
from eventing.subscriptions.push.websub.callbacks import Mode, denial_url, is_verified, verification_url
from eventing.subscriptions.push.wire.client import PushClient
from eventing.telemetry import metrics

IN_FLIGHT_MAX = 32  # bound: callbacks called at once for requests to the hub; further requests wait
HOST_IN_FLIGHT_MAX = 4  # bound: of these at one host; further requests wait
LOOK_S = 10.0
"""Seconds between two looks at what is unsettled; a notice may have been lost."""
GATHER_S = 0.02
CHALLENGE_BYTES = 32
log = logging.getLogger(__name__)


class HubRequests:
    """The unsettled requests of one deliverer.

    Args:
        redis: an asynchronous client.
        held: whether this process still has the lease; nothing is sent without it.
    """

    def __init__(self, redis: Any, client: PushClient, held: Callable[[], bool]) -> None:
        self._redis = redis
        self._client = client
        self._held = held
        self._wanted = asyncio.Event()
        self._busy: dict[bytes, asyncio.Task[None]] = {}
        self._hosts: dict[str, int] = {}
        self._over: dict[bytes, bytes] = {}  # settled during the present look, whose page may still have them
        self._skipped = False

    def notified(self) -> None:
        """Look at what is unsettled."""
        self._wanted.set()

    async def run(self) -> None:
        """Settle requests until cancelled."""
        try:
            while True:
                self._wanted.clear()
                try:
                    await self._look()
                except (RedisError, OSError) as error:
                    log.warning("websub: requests to the hub cannot be read yet: %s", error)
                try:
                    async with asyncio.timeout(LOOK_S):
                        await self._wanted.wait()
                except TimeoutError:
                    continue
                await asyncio.sleep(GATHER_S)
        finally:
            tasks = list(self._busy.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        cursor, self._skipped = 0, False
        self._over = {field: data for field, data in self._over.items() if field in self._busy}
        while self._held():
            cursor, found = await hub_requests_page(self._redis, cursor)
            for field, data in found.items():
                await self._begin(field, data)
            if cursor == 0:
                return

    async def _begin(self, field: bytes, data: bytes) -> None:
        """Begin to settle a request, unless one with the same topic and callback is, or its host has no place."""
        if self._over.get(field) == data:
            return
        if field in self._busy:
            self._skipped = True
            return
        request = request_open(data)
        try:
            parts = callback_parse(request.callback) if request is not None else None
        except ApplicationError:  # settings do not allow the address any more
            parts = None
        if request is None or parts is None or time.time() - request.at > VALID_S:
            await hub_request_settle(self._redis, field, data)
            return
        if self._hosts.get(parts.host, 0) >= HOST_IN_FLIGHT_MAX:
            self._skipped = True
            return
        while len(self._busy) >= IN_FLIGHT_MAX:
            await asyncio.wait(self._busy.values(), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # for the callbacks of those that are done
        if self._over.get(field) == data:
            return
        self._hosts[parts.host] = self._hosts.get(parts.host, 0) + 1
        task = self._busy[field] = asyncio.get_running_loop().create_task(self._settle(field, data, request, parts))
        task.add_done_callback(lambda _: self._done(field, parts.host))

    def _done(self, field: bytes, host: str) -> None:
        self._busy.pop(field, None)
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]
        if self._skipped:
            self._wanted.set()

    async def _settle(self, field: bytes, data: bytes, request: UnsettledRequest, parts: EndpointUrl) -> None:
        try:
            outcome = await self._settled(request, parts)
            metrics.HUB_REQUESTS.labels(request.mode, outcome).inc()
            self._over[field] = data
            await hub_request_settle(self._redis, field, data)
        except (RedisError, OSError, Unavailable) as error:
            log.warning("websub: a request to the hub is settled later: %s", error)
        except Exception:
            log.exception("A request to the WebSub hub failed by an error of ours, and is discarded")
            await hub_request_settle(self._redis, field, data)

    async def _settled(self, request: UnsettledRequest, parts: EndpointUrl) -> str:
        """Settle a request. Returns its outcome: `verified`, `not-verified`, `denied`, `nothing`."""
        exists = await in_database(websub_exists)(request.rp, request.callback)
        if request.mode == "denied":
            # Whoever may not subscribe must not end the subscription of another sender by a denial in its place.
            return "nothing" if exists else await self._denied(request, parts, request.reason)
        if request.mode == "unsubscribe":
            if not exists:
                return "nothing"
            if not await self._verified(request, parts, "unsubscribe"):
                return "not-verified"
            await in_database(websub_unsubscribe)(request)
            return "verified"
        asked_at = datetime.now(tz=UTC)
        if not await self._verified(request, parts, "subscribe"):
            return "not-verified"
        try:
            await in_database(websub_subscribe)(request, now=asked_at)
        except Unavailable:
            raise
        except ApplicationError as error:
            return await self._denied(request, parts, str(error))
        return "verified"

    async def _verified(self, request: UnsettledRequest, parts: EndpointUrl, mode: Mode) -> bool:
        challenge = secrets.token_urlsafe(CHALLENGE_BYTES)
        target = verification_url(parts.target, mode, request.topic, challenge, request.lease_s)
        answer = await self._get(parts, target)
        return is_verified(answer.status, answer.excerpt, challenge)

    async def _denied(self, request: UnsettledRequest, parts: EndpointUrl, reason: str) -> str:
        await self._get(parts, denial_url(parts.target, request.topic, reason))
        return "denied"

    async def _get(self, parts: EndpointUrl, target: str) -> PushAnswer:
        return await self._client.send(replace(parts, target=target), PushRequest("GET", (("Accept", "*/*"),)))
