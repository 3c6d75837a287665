"""The hub: a gateway process's registry of live connections, and the channels that feed them.

It holds ONE Redis subscription per RP with readers here, finds holes by periodic comparison with the logs' ends, pings
sessions, and ends readings of removed RPs. The pacer decides when a channel's events are written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

from eventing.core.config import Config
from eventing.core.errors import ENDED, ApplicationError, Unavailable
from eventing.core.events.positions import LogState, Position, Start
from eventing.core.ids import is_admin
from eventing.gateway.delivery.channel import Channel, FlushSpan
from eventing.gateway.delivery.pacer import Pacer
from eventing.gateway.delivery.session import Follower, Session
from eventing.gateway.delivery.start_positions import start_of
from eventing.gateway.recording import AccessRecords
from eventing.log.reader import LogReader
from eventing.log.routed_notifications import Channels
from eventing.log.scripts import NoLog
from eventing.store import keys
from eventing.store.cancellation import cancel_and_wait
from eventing.store.errors import RedisError
from eventing.telemetry.totals import flows, totals

CHECK_S = 2.0  # bound: seconds between two comparisons with the ends of the logs; the logs' ends are compared again
REVEALED_MAX = 20  # bound: logs whose withheld events are revealed after one comparison; the others after the next ones
CHECK_CHANNELS_MAX = 1000  # bound: channels per comparison; each channel is compared less often
# bound: seconds that a notification may take; the missing events count as a hole and are read from the log
NOTIFICATION_S = 0.25
LINGER_S = 5.0  # bound: seconds that a channel without readers is kept; the channel is discarded
log = logging.getLogger(__name__)


class Announcements(NamedTuple):
    """Handlers of what is announced to all gateways of the domain, and of all of it when Redis is back.

    Attributes:
        descriptor: the descriptor of an RP changed; of any RP, for an empty id.
        revocations: the revocations changed.
        keys: the domain's keys changed.
        sessions: gateways are asked about their sessions (observation/session_control.py).
        reader_moves: moves of readers began or ended.
    """

    descriptor: Callable[[str], None]
    revocations: Callable[[], None]
    keys: Callable[[], None]
    sessions: Callable[[bytes], None]
    reader_moves: Callable[[], None]


class Hub:
    """Registry of live connections and channels of one gateway process.

    Args:
        config: bounds.
        reader: reader of the log.
        notification_client: Redis client of the notification connection.
        remake: makes the missing log of an RP; raises ApplicationError when the RP has ended.
        records: the access records of sessions and deliveries.
        announced: what handles the domain's announcements.
        replicated: returns whether an RP has replicas elsewhere.
        flush_span: makes the span of a flush; None where none are made.
    """

    def __init__(
        self,
        config: Config,
        reader: LogReader,
        make_notifications: Callable[[Callable[[str, bytes], None], Callable[[], None]], Channels],
        remake: Callable[[str], Awaitable[None]],
        records: AccessRecords,
        announced: Announcements,
        *,
        replicated: Callable[[str], bool],
        flush_span: FlushSpan | None = None,
    ) -> None:
        self.records = records
        self._config = config
        self._reader = reader
        self._remake = remake
        self._announced = announced
        self._replicated = replicated
        self._flush_span = flush_span
        self._notifications = make_notifications(self._on_notification, self._restored)
        self._channels: dict[str, Channel] = {}
        self.administrative: dict[str, Channel] = {}  # those of administrative RPs among them
        self._by_notification_channel: dict[str, Channel] = {}
        self.sessions: dict[Session, None] = {}
        self._pacer = Pacer(config.tick_ms / 1000, config.tick_max_ms / 1000)
        self._tasks: list[asyncio.Task[None]] = []
        self._checks: set[asyncio.Task[None]] = set()
        self._check_at = 0
        self._withheld: dict[str, int] = {}  # first offset that waited for replicas at the last check, by RP
        self._revealing: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        """Begin: connect the notification channel and start the periodic work."""
        self._notifications.start()
        self._notifications.subscribe(keys.DESCRIPTOR_CHANNEL)
        self._notifications.subscribe(keys.REVOCATION_CHANNEL)
        self._notifications.subscribe(keys.KEYS_CHANNEL)
        self._notifications.subscribe(keys.SESSIONS_CHANNEL)
        self._notifications.subscribe(keys.READER_MOVES_CHANNEL)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._check_forever()), loop.create_task(self._ping_forever())]

    def stop(self) -> None:
        """End the sessions there are and those that still begin, and let waiting pulls answer."""
        self._stopping = True
        for session in list(self.sessions):
            session.abort()
        for channel in self._channels.values():
            channel.release_waiters()

    async def close(self) -> None:
        """Stop all work; sessions must have been closed."""
        await cancel_and_wait([*self._tasks, *self._checks, *([self._revealing] if self._revealing else [])])
        await self._notifications.close()

    # Sessions

    def room_for_session(self) -> None:
        """Raise Unavailable if this process has as many sessions as it takes."""
        if len(self.sessions) >= self._config.sessions_max:
            raise Unavailable("This gateway has as many connections as it takes. Try again later.", retry_after_s=5)

    def opened(self, session: Session) -> None:
        """Register a session. While the process stops, it is closed so that its reader reconnects, instead of being refused."""
        self.sessions[session] = None
        totals().sessions_opened += 1
        self.records.connected(session)
        if self._stopping:
            asyncio.get_running_loop().call_soon(session.abort)

    def closed(self, session: Session) -> None:
        """Forget a session. Harmless when repeated."""
        known = self.sessions.pop(session, self) is None
        session.closed()
        if known:
            totals().sessions_closed += 1
            self.records.disconnected(session)

    def fail(self, session: Session, lost: bool = False) -> None:
        """End a session that cannot go on (`lost`: its reader does not answer), so that its reader connects again."""
        self.closed(session)
        session.abort(lost)

    async def _ping_forever(self) -> None:
        """Ping every session once per heartbeat, spread over it; end those that left two pings unanswered."""
        while True:
            sessions = list(self.sessions)
            pause_s = self._config.heartbeat_s / max(1, len(sessions) // 50 + 1)
            for index, session in enumerate(sessions):
                if index % 50 == 0:
                    await asyncio.sleep(pause_s)
                if session not in self.sessions or session.sink.paused:
                    continue  # a stalled reader cannot answer; its cost is bounded
                if session.unanswered_pings >= 2:
                    self.fail(session, lost=True)
                else:
                    session.unanswered_pings += session.sink.ping()
            if not sessions:
                await asyncio.sleep(pause_s)

    # Readings

    async def channel(self, rp: str) -> tuple[Channel, LogState]:
        """Return the channel of `rp`, up to date with the present end of the log, and the log's extent.

        The caller must take the channel by `Session.begin` or `hold` before its next await. Raises ApplicationError.
        """
        channel = self._channels.get(rp)
        if channel is None:
            channel = self._channels[rp] = Channel(rp, self._reader, self._pacer.soon, self._flush_span)
            self._by_notification_channel[keys.notification_channel(rp)] = channel
            if is_admin(rp):
                self.administrative[rp] = channel
        self._check_replicas(channel)
        channel.readers += 1  # held while waiting
        try:
            async with asyncio.timeout(10):
                await asyncio.shield(self._notifications.subscribe(keys.notification_channel(rp)))
                state = await self._caught_up(channel)
        except (TimeoutError, RedisError, OSError):
            raise Unavailable("The event log is not responding. Try again in a moment.", retry_after_s=2) from None
        finally:
            self.released(channel)
        return channel, state

    async def _caught_up(self, channel: Channel) -> LogState:
        for _ in range(3):
            known = channel.next
            try:
                state = await self._reader.state(channel.rp)
            except NoLog:
                await self._remake(channel.rp)
                continue
            if state.epoch != channel.epoch or state.next > channel.next or state.next < known or not channel.next:
                # shielded: the repair is shared, and a disconnecting reader must not cancel it
                await asyncio.shield(channel.repair())
            if state.epoch == channel.epoch and state.next > channel.flushed:
                channel.flush()
            if state.epoch == channel.epoch and channel.flushed >= state.next:
                return state
        raise Unavailable("The event log is being replaced. Try again in a moment.", retry_after_s=1)

    async def follow(
        self, session: Session, rp: str, wanted: Position, oldest_granted: int = 0
    ) -> tuple[Follower, Start]:
        """Prepare the reading of `rp` by `session`. The caller answers its reader and then calls
        `session.begin(follower)`, without an await between, so that the answer precedes the events and nothing is
        missed.

        Args:
            wanted: now, earliest, last, a time or a cursor.
            oldest_granted: the oldest offset that a durable subscription's own bounds grant.
        """
        channel, state = await self.channel(rp)
        if wanted == "now" and oldest_granted <= channel.flushed:
            held = None if channel.progress is None else dict(channel.progress.held)
            start = Start(channel.epoch, channel.flushed, True, None, held)
        else:
            start = await self.start_at(
                channel, wanted, replace(state, next=max(state.next, channel.flushed)), oldest_granted
            )
        return Follower(session, channel, start), start

    async def start_at(self, channel: Channel, wanted: Position, state: LogState, oldest_granted: int) -> Start:
        """Compute the start of a reader in the log whose extent is `state`; for every binding. Raises ApplicationError."""
        self.hold(channel)
        try:
            replicated = channel.progress is not None
            start = await start_of(
                self._reader, channel.rp, wanted, state, oldest_granted=oldest_granted, replicated=replicated
            )
            totals().gaps += start.gap is not None
            return start
        except NoLog:
            raise Unavailable("The event log is being replaced. Try again in a moment.", retry_after_s=1) from None
        except (RedisError, OSError):
            raise Unavailable("The event log is not responding. Try again in a moment.", retry_after_s=2) from None
        finally:
            self.released(channel)

    def replicas_changed(self, rp: str) -> None:
        """Update the channel after an RP's descriptor was read again."""
        channel = self._channels.get(rp)
        if channel is not None:
            self._check_replicas(channel)

    def _check_replicas(self, channel: Channel) -> None:
        if not channel.replicated and self._replicated(channel.rp):
            channel.replicate()

    def released(self, channel: Channel) -> None:
        """Count one reader less; an unused channel is dropped after a while."""
        channel.readers -= 1
        if channel.readers == 0:
            channel.idle_since = asyncio.get_running_loop().time()

    def hold(self, channel: Channel) -> None:
        """Count one more reader that is not a session (a waiting pull); undo it by `released`."""
        channel.readers += 1

    def _drop_idle(self) -> None:
        horizon = asyncio.get_running_loop().time() - LINGER_S
        for channel in [c for c in self._channels.values() if c.readers == 0 and c.idle_since < horizon]:
            del self._channels[channel.rp]
            self.administrative.pop(channel.rp, None)
            flows().release(channel.flow)
            del self._by_notification_channel[keys.notification_channel(channel.rp)]
            self._notifications.unsubscribe(keys.notification_channel(channel.rp))

    # Notifications

    def _on_notification(self, name: str, message: bytes) -> None:
        channel = self._by_notification_channel.get(name)
        if channel is not None:
            channel.on_notification(message)
        elif name == keys.DESCRIPTOR_CHANNEL:
            self._announced.descriptor(message.decode())
        elif name == keys.REVOCATION_CHANNEL:
            self._announced.revocations()
        elif name == keys.KEYS_CHANNEL:
            self._announced.keys()
        elif name == keys.SESSIONS_CHANNEL:
            self._announced.sessions(message)
        elif name == keys.READER_MOVES_CHANNEL:
            self._announced.reader_moves()

    def _restored(self) -> None:
        self._announced.descriptor("")  # any descriptor may have changed meanwhile
        self._announced.revocations()
        self._announced.keys()
        self._announced.reader_moves()
        for channel in self._channels.values():
            if channel.next:
                channel.repair()

    # Checks of the logs

    def check(self, channel: Channel) -> None:
        """Check one channel's log soon: it is missing, or seems to be."""
        self._later(self._check_one(channel))

    async def _check_one(self, channel: Channel) -> None:
        try:
            await self._caught_up(channel)
        except ApplicationError as error:
            if error.status in ENDED:
                self.ended(channel.rp, error)
        except (RedisError, OSError):
            pass  # the periodic check repeats it

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)

    @property
    def channel_count(self) -> int:
        """Number of channels."""
        return len(self._channels)

    def known(self, rp: str) -> Channel | None:
        """Return the channel of `rp`, if there is one."""
        return self._channels.get(rp)

    def channels(self) -> list[Channel]:
        """List all channels of this process."""
        return list(self._channels.values())

    def is_read(self, rp: str) -> bool:
        """Return True if `rp` has followers in this process."""
        channel = self._channels.get(rp)
        return channel is not None and channel.readers > 0

    def readings(self, rp: str) -> list[Follower]:
        """List all followers of `rp` in this process."""
        return [session.followers[rp] for session in self.sessions if rp in session.followers]

    def wake(self, rp: str) -> None:
        """Wake the pulls that wait at `rp`: they may no longer be allowed."""
        channel = self._channels.get(rp)
        if channel is not None:
            channel.release_waiters()

    def ended(self, rp: str, error: ApplicationError) -> None:
        """End the readings of a removed RP, with the error for its readers."""
        for follower in self.readings(rp):
            follower.session.reading_ended(follower, error)

    async def _check_forever(self) -> None:
        """Compare notified events with the logs' ends periodically, to detect a dead notification connection."""
        while True:
            await asyncio.sleep(CHECK_S)
            try:
                self._drop_idle()
                await self._check_some()
            except (RedisError, OSError):
                pass  # Redis is unreachable; after its return every channel is repaired
            except Exception:
                log.exception("Checking the logs' ends failed; trying again.")

    async def _check_some(self) -> None:
        channels = [channel for channel in self._channels.values() if channel.next]
        if self._check_at >= len(channels):
            self._check_at = 0
        part = channels[self._check_at : self._check_at + CHECK_CHANNELS_MAX]
        self._check_at += CHECK_CHANNELS_MAX
        if not part:
            return
        known = [channel.next for channel in part]
        heads = await self._reader.heads([channel.rp for channel in part])
        await asyncio.sleep(NOTIFICATION_S)  # a notification on its way is not a hole
        for channel, next_known, head in zip(part, known, heads, strict=True):
            if head is None:
                self.check(channel)
            elif head.epoch == channel.epoch and head.next < next_known:
                log.warning("The log of %s ends before events that were notified; reading it.", channel.rp)
                channel.repair()
            elif head.epoch != channel.epoch or head.next > channel.next:
                log.warning("The notifications of %s did not include events in its log; reading the log.", channel.rp)
                channel.repair()
        self._check_withheld(
            {channel.rp: head.next for channel, head in zip(part, heads, strict=True) if head and head.withheld}
        )

    def _check_withheld(self, withheld: dict[str, int]) -> None:
        """Reveal what waits for replicas since the check before: the gateway that waited ended, or gave up."""
        stuck = [rp for rp, first in withheld.items() if self._withheld.get(rp) == first][:REVEALED_MAX]
        self._withheld = withheld
        if stuck and self._revealing is None:
            self._revealing = asyncio.get_running_loop().create_task(self._reveal(stuck))

    async def _reveal(self, rps: list[str]) -> None:
        try:
            for rp in rps:
                await self._reader.reveal_replicated(rp)
        except (NoLog, RedisError, OSError):
            pass  # the next checks find what is still withheld
        finally:
            self._revealing = None
