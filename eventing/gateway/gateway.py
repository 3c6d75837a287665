"""The gateway: all state of one process of the hot path, made once per event loop at the first request.

It is made lazily because not every ASGI server announces its start (daphne does not), and ended by the lifespan where
there is one. Requests and sessions get it as an argument; nothing else is global.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from eventing.access.rules.limits import Limits
from eventing.access.verification.revocations import REFRESH_S
from eventing.conf import config as settings_in_use
from eventing.core.config import Config
from eventing.core.container import per_process
from eventing.core.errors import ENDED, ApplicationError, Forbidden, paused_here
from eventing.core.ids import is_admin
from eventing.gateway.admission.access import Descriptors, Tokens
from eventing.gateway.admission.auditing import Auditing
from eventing.gateway.admission.intakes import IntakeCache
from eventing.gateway.delivery.acknowledgements import Acknowledgements
from eventing.gateway.delivery.audience import Audiences
from eventing.gateway.delivery.draining import TICK_S, Departure, pause, return_after_ms
from eventing.gateway.delivery.hub import Announcements, Hub
from eventing.gateway.delivery.reader_moves import ReaderMoves
from eventing.gateway.delivery.redirects import Redirects
from eventing.gateway.delivery.revocation import Revoking, end_unless_allowed
from eventing.gateway.delivery.shared_subscriptions import SharedReadings
from eventing.gateway.lease_uses import LeaseUses
from eventing.gateway.observation.metrics import Measuring
from eventing.gateway.observation.session_control import SessionControl
from eventing.gateway.observation.tracing import flush_span
from eventing.gateway.quiet import Quiet
from eventing.gateway.recording import AccessRecords
from eventing.gateway.stale_logs import StaleLogs
from eventing.log.appender import Appender
from eventing.log.known_durability import KnownDurability
from eventing.log.reader import LogReader
from eventing.log.routed_notifications import notification_channels
from eventing.operations.alarms.watcher import Watcher
from eventing.operations.samples.sampling import LoadSampler
from eventing.replication.forwarding.new_events import ForwardingNotifier
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.random_ids import random_id
from eventing.sql.threads import in_database
from eventing.store.connection import async_client
from eventing.subscriptions.selectors.subscriptions import subscription_view
from eventing.telemetry import tracing
from eventing.telemetry.totals import totals

ID_CHARS = 8  # 40 random bits: unique among a domain's gateways
RECHECK_S = 1.0  # until a changed policy is read again after SQL did not answer
log = logging.getLogger(__name__)


class Gateway:
    """State of the hot path in one process. Made in its event loop.

    Attributes:
        id: identifies this life of the process among the domain's gateways, 8 characters; never reused.
        clock: the wall clock, Unix seconds.
        loop: the event loop. Getting the running one is a system call: too expensive for each event.
        stopping: set when the process is to stop; it may go on serving for a while.
        closed_together: sessions that are closed in the present moment, because the process is to stop.
        publish_heads: parsed heads of publishes by their digests, because heads contain tokens (server/fast_path.py).
            Process-wide: a head has the same meaning on each connection.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.id = random_id()[:ID_CHARS]
        self.clock: Callable[[], float] = time.time
        self.loop = asyncio.get_running_loop()
        self.stopping = False
        self.closed_together = 0
        self.totals = totals()
        self.publish_heads: OrderedDict[bytes, Any] = OrderedDict()
        self.redis = async_client(config.effective_redis_url)
        self.reader = LogReader(self.redis, fenced=config.fenced, replicas_known=config.redis_replicas)
        self.durability = KnownDurability(self.redis, self.reader.durability)
        self.tokens = Tokens()
        self.descriptors = Descriptors()
        self.intakes = IntakeCache()
        self.limits = Limits(config, time.monotonic)
        self.records = AccessRecords(config, self.clock)
        self.stale_logs = StaleLogs()
        self.hub = Hub(
            config,
            self.reader,
            lambda on_notification, on_restored: notification_channels(
                self.redis, on_notification, self.stale_logs.after(on_restored)
            ),
            self._remake_log,
            self.records,
            Announcements(
                descriptor=self._descriptor_changed,
                revocations=lambda: self.revoking.announced(),
                keys=self.tokens.keys_announced,
                sessions=lambda message: self.session_control.asked(message),
                reader_moves=lambda: self.reader_moves.changed(),
            ),
            replicated=self._replicated,
            flush_span=flush_span if tracing.is_on() else None,
        )
        self.quiet = Quiet(config, self.hub)
        self.revoking = Revoking(self.hub, 2 * REFRESH_S if config.is_small else REFRESH_S)
        self.session_control = SessionControl(self.id, self.hub, self.redis)
        self.uses = LeaseUses(self.hub, self.descriptors, lambda: self.clock())
        self.forwarding = ForwardingNotifier()
        self.appender = Appender(
            self.redis,
            self.durability.get,
            self._remake_log,
            window_s=config.dedup_window_s,
            ids_max=config.dedup_ids_max,
            fenced=config.fenced,
            on_replicated=self.forwarding.appended,
            on_used=self.uses.rp,
            on_short=self.durability.doubt,
            traced=tracing.is_on(),
        )
        self.auditing = Auditing()
        self.redirects = Redirects(config.domain)
        self.reader_moves = ReaderMoves(self.id, self.redis, self.redirects, self.hub, lambda: self.clock())
        self.shared = SharedReadings(self.redis, lambda: self.clock())
        self.acknowledgements = Acknowledgements(
            self.redis,
            self.reader,
            self.descriptors,
            in_database(subscription_view),
            lambda: self.clock(),
            self.uses.subscription,
            self.durability.get,
        )
        self.audiences = Audiences(self.id, self.redis, self.hub, lambda: self.clock())
        self.measuring = Measuring(self.hub, self.descriptors, self.reader, self.quiet)
        self._services: list[LoadSampler | Watcher] = []
        self._rechecks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Connect and begin the periodic work."""
        self.auditing.start()
        await self.stale_logs.check()
        await self.hub.start()
        self.records.start(self.hub.channels)
        self.revoking.start()
        self.reader_moves.start()
        self.measuring.start()
        self.uses.start()
        self._services = [LoadSampler(self), Watcher(self)]
        for service in self._services:
            service.start()

    async def drain(
        self, lead_s: float, within_s: float, stop_accepting: Callable[[], Awaitable[None]], cut: asyncio.Event
    ) -> None:
        """Leave the sessions to other gateways in time: be not ready, accept no more connections, close the sessions evenly.

        Args:
            lead_s: time for which connections are accepted as before, while `/readyz` answers that this gateway stops.
            within_s: time over which the sessions are closed; 0: at once.
            stop_accepting: closes the listening socket, and returns when accepted connections have sent their first request.
            cut: ends the pauses: the rest is to be closed at once (`end_sessions`).
        """
        self.stopping = True
        await pause(lead_s, cut)
        await stop_accepting()
        log.info("Closing %d sessions within %g s.", len(self.hub.sessions), within_s)
        departure = Departure(len(self.hub.sessions), within_s, time.monotonic())
        while not cut.is_set() and not departure.is_over(self.hub.sessions.keys()):
            due = departure.due(self.hub.sessions, time.monotonic())
            self.closed_together = len(due)
            for session in due:
                session.abort()
            await pause(TICK_S, cut)

    def end_sessions(self) -> None:
        """Close at once the sessions that are left and those that still begin, and make waiting pulls answer."""
        self.stopping = True
        self.closed_together = len(self.hub.sessions)
        self.hub.stop()

    def return_after_ms(self) -> int:
        """Draw when a client whose session is being closed because this process stops should connect again, milliseconds."""
        return return_after_ms(self.closed_together)

    async def close(self) -> None:
        """Write accepted events, and stop."""
        self.end_sessions()
        for service in self._services:
            await service.close()
        await self.stale_logs.close()
        await self.revoking.close()
        await self.session_control.close()
        for task in self._rechecks:
            task.cancel()
        await self.reader_moves.close()
        self.redirects.close()
        self.shared.close()
        await self.acknowledgements.close()
        await self.appender.close()
        await self.forwarding.close()
        await self.uses.close()
        await self.auditing.close()
        await self.hub.close()
        await self.audiences.close()
        await self.records.close()
        await self.measuring.close()
        await self.durability.close()
        self.reader.close()
        await self.redis.aclose()

    async def _remake_log(self, rp: str) -> None:
        """Make the missing log of an RP that exists according to SQL, not to the cache."""
        self.descriptors.forget(rp)
        descriptor = await self.descriptors.get(rp)
        await self.reader.create(rp, descriptor.history)
        log.info("The log of %s was missing and has been created, as a new epoch.", rp)

    def _descriptor_changed(self, rp: str) -> None:
        """Handle a changed descriptor (any, if `rp` is empty): read it again, and end readings that it no longer allows."""
        self.descriptors.forget(rp)
        self.intakes.forget(rp)
        self.tokens.policies_changed()
        self.hub.wake(rp)
        read = {rp} if rp else {follower for session in self.hub.sessions for follower in session.followers}
        for one in read:
            if self.hub.readings(one):
                self._recheck_soon(one)

    async def pause(self, period_s: float) -> float:
        """Sleep between two turns of periodic work: `period_s`, or longer while nothing happens (quiet.py). Returns how many seconds
        late the pause ended."""
        return await self.quiet.pause(period_s)

    def gateways_counted(self, count: int) -> None:
        """Take a share of the domain's rates as one of `count` live gateways."""
        self.limits.share(count)

    def reading_began(self, descriptor: Descriptor) -> None:
        """Handle a new reading that `descriptor` allowed; if that changed in the meantime, check again."""
        self.quiet.stir()
        self.uses.reading(descriptor)
        self.redirects.check(descriptor)
        self.audiences.attach(descriptor)
        if self.descriptors.peek(descriptor.id) is not descriptor:
            self._recheck_soon(descriptor.id)

    def _recheck_soon(self, rp: str) -> None:
        task = asyncio.get_running_loop().create_task(self._recheck(rp))
        self._rechecks.add(task)
        task.add_done_callback(self._rechecks.discard)

    def _replicated(self, rp: str) -> bool:
        descriptor = self.descriptors.peek(rp)
        return descriptor is not None and bool(descriptor.home or descriptor.links)

    async def _recheck(self, rp: str) -> None:
        while self.hub.readings(rp):
            try:
                descriptor = await self.descriptors.get(rp)
                self.hub.replicas_changed(rp)
                self.redirects.check(descriptor)
                self.audiences.attach(descriptor)
                self.uses.reading(descriptor)
            except ApplicationError as error:
                if error.status in ENDED:
                    self.hub.ended(rp, error)
                    return
                await asyncio.sleep(RECHECK_S)  # the change must not be lost while SQL does not answer
            else:
                for follower in self.hub.readings(rp):
                    end_unless_allowed(descriptor, follower)
                return

    def require_taken(self, descriptor: Descriptor) -> None:
        """Raise unless events are accepted here: Forbidden at administrative RPs (only the domain publishes there),
        Paused, AudienceMissing; Unavailable where `audiences.look` should have been awaited first."""
        if is_admin(descriptor.id):
            raise Forbidden("Only the domain itself publishes at an administrative rendezvous point.")
        if descriptor.paused is not None:
            raise paused_here(descriptor.paused)
        if descriptor.audience:
            self.audiences.require(descriptor)


@per_process
def gateways() -> dict[asyncio.AbstractEventLoop, Gateway]:
    """Return the gateways that run in this process, by their event loops: one, except in tests."""
    return {}


@per_process
def _starting() -> dict[asyncio.AbstractEventLoop, asyncio.Task[Gateway]]:
    return {}


def gateway_of(loop: asyncio.AbstractEventLoop) -> Gateway | None:
    """Return the event loop's gateway, if it has a running one."""
    return gateways().get(loop)


async def running_gateway() -> Gateway:
    """Return this event loop's gateway; make and start it if there is none."""
    loop = asyncio.get_running_loop()
    gateway = gateways().get(loop)
    if gateway is not None:
        return gateway
    starting = _starting()
    if loop not in starting:
        starting[loop] = loop.create_task(_start(loop))
    return await asyncio.shield(starting[loop])


async def _start(loop: asyncio.AbstractEventLoop) -> Gateway:
    gateway = Gateway(settings_in_use())
    await gateway.start()
    gateways()[loop] = gateway
    return gateway


async def stop_gateway() -> None:
    """Stop this event loop's gateway, if there is one."""
    gateway = gateways().pop(asyncio.get_running_loop(), None)
    if gateway is not None:
        await gateway.close()


__all__ = ["Gateway", "gateway_of", "running_gateway", "stop_gateway"]
