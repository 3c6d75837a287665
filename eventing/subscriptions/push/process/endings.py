"""Messages to subscribers whose subscriptions ended before their lease, sent by the deliverer: SubscriptionEnd of WS-Eventing, the
denial of WebSub."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from typing import Any

from eventing.conf import config
from eventing.core.decoding import Undecodable
from eventing.core.errors import InvalidRequest, Unavailable
from eventing.sql.threads import in_database
from eventing.store.errors import RedisError
from eventing.store.push_endings import PushEnding, ending_done, ending_take, endings_requeue
from eventing.subscriptions.push.modes import PushRequest
from eventing.subscriptions.push.rules.addresses import endpoint_url, ports_parse
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, judged
from eventing.subscriptions.push.services.vault import EndpointSecrets, SecretsNotOpened, unseal
from eventing.subscriptions.push.services.websub import WEBSUB, websub_exists
from eventing.subscriptions.push.services.ws_eventing import manager_address
from eventing.subscriptions.push.websub.callbacks import denial_url
from eventing.subscriptions.push.websub.topics import topic_url
from eventing.subscriptions.push.wire.client import PushClient
from eventing.subscriptions.push.ws_eventing.mode import end_request
from eventing.subscriptions.push.ws_eventing.sinks import sink_parse

AT_ONCE_MAX = 16  # bound: messages in flight; the others wait in the queue
PAUSES_S = (0.0, 2.0, 15.0)
"""Pauses before the attempts; after the last one the message is given up."""
SWEEP_S = 10.0
log = logging.getLogger(__name__)


class EndingSender:
    """Sends what is queued.

    Args:
        asynchronous: the asynchronous client of Redis.
        held: whether this process still has the deliverer's lease.
    """

    def __init__(self, asynchronous: Any, client: PushClient, held: Callable[[], bool]) -> None:
        self._redis = asynchronous
        self._client = client
        self._held = held
        self._wanted = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._requeued = False

    def notified(self) -> None:
        """Read the queue soon."""
        self._wanted.set()

    async def run(self) -> None:
        """Send until cancelled."""
        try:
            while True:
                await self._take()
                try:
                    async with asyncio.timeout(SWEEP_S):
                        await self._wanted.wait()
                except TimeoutError:
                    pass
                self._wanted.clear()
        finally:
            for task in self._tasks:
                task.cancel()

    async def _take(self) -> None:
        try:
            if self._held() and not self._requeued:
                await endings_requeue(self._redis)
                self._requeued = True
            while len(self._tasks) < AT_ONCE_MAX and self._held():
                taken = await ending_take(self._redis)
                if taken is None:
                    return
                task = asyncio.get_running_loop().create_task(self._settle(*taken))
                self._tasks.add(task)
                task.add_done_callback(self._done)
        except (RedisError, OSError) as error:
            log.warning("push: subscribers cannot be notified yet of the end of their subscription: %s", error)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wanted.set()

    async def _settle(self, data: bytes, ending: PushEnding | None) -> None:
        """Send the message, and discard the ending. One whose sending is cancelled is left to the next deliverer."""
        try:
            if ending is not None:
                await self._send(ending)
        except Exception:
            log.exception("push: the end of a subscription was not sent by an error of ours")
        try:
            await ending_done(self._redis, data)
        except (RedisError, OSError) as error:
            log.warning("push: a subscriber may be notified again of the end of its subscription: %s", error)

    async def _send(self, ending: PushEnding) -> None:
        settings = config()
        try:
            secrets = unseal(ending.subscription, ending.sealed)
            made = _denial(ending, secrets) if ending.mode == WEBSUB else _subscription_end(ending, secrets)
            if made is None:
                return
            address, request = made
            url = endpoint_url(address, ports=ports_parse(settings.push_ports), private=settings.push_private)
        except (SecretsNotOpened, Undecodable, InvalidRequest):
            return
        for pause_s in PAUSES_S:
            await asyncio.sleep(pause_s)
            try:
                if ending.mode == WEBSUB and await in_database(websub_exists)(ending.rp, secrets.url):
                    return  # requested again meanwhile: a denial now would state the end of the new subscription
            except Unavailable:
                continue
            if judged(await self._client.send(url, request)) in (AttemptVerdict.DELIVERED, AttemptVerdict.GONE):
                return


def _subscription_end(ending: PushEnding, secrets: EndpointSecrets) -> tuple[str, PushRequest] | None:
    """Return the address and the message; None if the subscriber named no EndTo. Raises Undecodable."""
    sink = sink_parse(secrets.mode_data)
    if sink.end_to is None:
        return None
    request = end_request(
        sink,
        manager=manager_address(ending.subscription),
        message_id=uuid.uuid4().urn,
        status=ending.status,
        reason=ending.reason,
    )
    return sink.end_to.address, request


def _denial(ending: PushEnding, secrets: EndpointSecrets) -> tuple[str, PushRequest]:
    """Return the address and the request that state the end of a WebSub subscription (section 5.2 of the Recommendation)."""
    address = denial_url(secrets.url, topic_url(config().base_url, ending.rp), ending.reason)
    return address, PushRequest("GET", (("Accept", "*/*"),))
