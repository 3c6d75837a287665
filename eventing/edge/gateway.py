"""The gateway: everything one process of the hot path holds, made once per event loop at the first request.

Made lazily because not every ASGI server tells of its start (daphne does not), and ended by the lifespan where there is
one. Requests and sessions get it passed in; nothing else is global.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

from eventing.conf import config as settings_in_use
from eventing.core.config import Config
from eventing.core.descriptor import Descriptor
from eventing.core.errors import Forbidden, HeraldError
from eventing.core.ids import is_admin
from eventing.core.limits import Limits
from eventing.edge.access import Descriptors, Tokens
from eventing.edge.auditing import Auditing
from eventing.edge.hub import Hub
from eventing.edge.recording import AccessRecords
from eventing.edge.revoking import Revoking, end_unless_allowed
from eventing.log.appender import Appender
from eventing.log.bell import Bell
from eventing.log.connection import Durability, async_client
from eventing.log.reader import LogReader

RECHECK_S = 1.0  # before a changed policy is asked for again when SQL did not answer
DURABILITY_S = 10.0  # how long what Redis promises is believed before it is asked again
log = logging.getLogger(__name__)


class Gateway:
    """The hot path's state in one process.

    Attributes:
        clock: the wall clock, Unix seconds.
        stopping: set when the process is asked to end.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.clock: Callable[[], float] = time.time
        self.stopping = False
        self.redis = async_client(config.effective_redis_url)
        self.reader = LogReader(self.redis)
        self.tokens = Tokens()
        self.descriptors = Descriptors()
        self.limits = Limits(config, time.monotonic)
        self.appender = Appender(
            self.redis,
            self.durability,
            self._remake_log,
            window_s=config.dedup_window_s,
            ids_max=config.dedup_ids_max,
        )
        self.records = AccessRecords(config, self.clock)
        self.hub = Hub(
            config,
            self.reader,
            lambda on_ring, on_restored: Bell(self.redis, on_ring, on_restored),
            self._remake_log,
            self._descriptor_changed,
            self.records,
        )
        self.revoking = Revoking(self.hub)
        self.hub.revocations_announced = self.revoking.announced
        self.hub.keys_announced = self.tokens.keys_announced
        self.auditing = Auditing()
        self._durability: Durability | None = None
        self._durability_at = 0.0
        self._rechecks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Connect and begin the periodic work."""
        self.auditing.start()
        await self.hub.start()
        self.records.start(self.hub)
        self.revoking.start()

    def drain(self) -> None:
        """Take no more sessions, and tell those there are to connect again."""
        self.stopping = True
        self.hub.stop()

    async def close(self) -> None:
        """Write what was accepted, and end."""
        self.drain()
        await self.revoking.close()
        for task in self._rechecks:
            task.cancel()
        await self.appender.close()
        await self.auditing.close()
        await self.hub.close()
        await self.records.close()
        await self.redis.aclose()

    async def durability(self) -> Durability:
        """What the Redis in use promises, asked anew now and then. Raises redis' errors when it is away."""
        now = time.monotonic()
        if self._durability is None or now - self._durability_at > DURABILITY_S:
            self._durability = await self.reader.durability()
            self._durability_at = now
        return self._durability

    async def _remake_log(self, rp: str) -> None:
        """Make the missing log of an RP that exists; what exists is asked of SQL, not of the cache."""
        self.descriptors.forget(rp)
        descriptor = await self.descriptors.get(rp)
        await self.reader.create(rp, descriptor.history)
        log.info("The log of %s was missing and has been made, as a new epoch.", rp)

    def _descriptor_changed(self, rp: str) -> None:
        """A descriptor changed (any, if `rp` is empty): look again, and end the readings that it no longer allows."""
        self.descriptors.forget(rp)
        self.tokens.policies_changed()
        self.hub.wake(rp)
        read = {rp} if rp else {follower for session in self.hub.sessions for follower in session.followers}
        for one in read:
            if self.hub.readings(one):
                self._recheck_soon(one)

    def reading_began(self, descriptor: Descriptor) -> None:
        """A reading that `descriptor` allowed has begun; should that have changed meanwhile, look again."""
        if self.descriptors.peek(descriptor.id) is not descriptor:
            self._recheck_soon(descriptor.id)

    def _recheck_soon(self, rp: str) -> None:
        task = asyncio.get_running_loop().create_task(self._recheck(rp))
        self._rechecks.add(task)
        task.add_done_callback(self._rechecks.discard)

    async def _recheck(self, rp: str) -> None:
        while self.hub.readings(rp):
            try:
                descriptor = await self.descriptors.get(rp)
            except HeraldError as error:
                if error.status in (404, 410):
                    self.hub.ended(rp, error)
                    return
                await asyncio.sleep(RECHECK_S)  # the change must not be forgotten because SQL is away
            else:
                for follower in self.hub.readings(rp):
                    end_unless_allowed(descriptor, follower)
                return

    def refuse_foreign_admin(self, descriptor: Descriptor) -> None:
        """Only the domain itself publishes at administrative RPs. Raises Forbidden."""
        if is_admin(descriptor.id):
            raise Forbidden("Only the domain itself publishes at an administrative rendezvous point.")


_gateways: WeakKeyDictionary[asyncio.AbstractEventLoop, Gateway] = WeakKeyDictionary()
_starting: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Gateway]] = WeakKeyDictionary()


async def running_gateway() -> Gateway:
    """This event loop's gateway, made and started if there is none."""
    loop = asyncio.get_running_loop()
    gateway = _gateways.get(loop)
    if gateway is not None:
        return gateway
    if loop not in _starting:
        _starting[loop] = loop.create_task(_start(loop))
    return await asyncio.shield(_starting[loop])


async def _start(loop: asyncio.AbstractEventLoop) -> Gateway:
    gateway = Gateway(settings_in_use())
    await gateway.start()
    _gateways[loop] = gateway
    return gateway


def drain_gateway() -> None:
    """The server is about to stop: see `Gateway.drain`."""
    gateway = _gateways.get(asyncio.get_running_loop())
    if gateway is not None:
        gateway.drain()


async def stop_gateway() -> None:
    """End this event loop's gateway, if there is one."""
    gateway = _gateways.pop(asyncio.get_running_loop(), None)
    if gateway is not None:
        await gateway.close()


__all__ = ["Gateway", "drain_gateway", "running_gateway", "stop_gateway"]
