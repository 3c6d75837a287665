"""Operators' requests about this gateway's sessions: listing, and disconnecting some (transported by
store/sessions.py).

No state is kept for this: sessions are examined on request, a slice at a time so that events keep flowing.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import AsyncIterator

from eventing.core.decoding import Undecodable
from eventing.gateway.delivery.hub import Hub
from eventing.gateway.delivery.session import Follower, Session
from eventing.operations.rules.session_listing import (
    LIMIT_MAX,
    RPS_SHOWN,
    Ask,
    Key,
    Row,
    SessionListing,
    ask_read,
    encode,
    key_of,
)
from eventing.store.cancellation import cancel_and_wait
from eventing.store.connection import AsyncRedis
from eventing.store.errors import RedisError
from eventing.store.sessions import answer_give

CHECKED_AT_ONCE = 1000  # readings between two turns of the loop; ~1 ms
CLOSED_AT_ONCE = 50  # sessions; ~5 ms with the consequences of closing
# bound: concurrent queries for sessions at a gateway; further queries are not answered; the answer names this gateway as missing
ASKS_MAX = 16
log = logging.getLogger(__name__)


class SessionControl:
    """Operators' requests about sessions.

    Args:
        gateway: this gateway's id.
        hub: hub of the sessions.
        client: Redis client for the answers.
    """

    def __init__(self, gateway: str, hub: Hub, client: AsyncRedis) -> None:
        self._gateway = gateway
        self._hub = hub
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()

    def asked(self, message: bytes) -> None:
        """Handle a request. Returns at once."""
        try:
            ask = ask_read(message)
        except Undecodable as error:  # a gateway of another version
            log.warning("A request about sessions is malformed: %s", error)
            return
        if len(self._tasks) < ASKS_MAX:
            task = asyncio.get_running_loop().create_task(self._answer(ask))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop answering."""
        await cancel_and_wait(self._tasks)

    async def _answer(self, ask: Ask) -> None:
        try:
            if ask.close is None:
                await answer_give(self._client, ask.reply, encode(await self._listed(ask)))
            else:
                found = [session async for session in self._matching(ask)]
                await answer_give(self._client, ask.reply, encode(SessionListing(self._gateway, len(found))))
                await self._disconnect(found, ask.close)
        except (RedisError, OSError) as error:
            log.warning("A request about sessions cannot be answered: %s", error)
        except Exception:
            log.exception("A request about sessions cannot be answered")

    async def _matching(self, ask: Ask) -> AsyncIterator[Session]:
        checked = 0
        for session in list(self._hub.sessions):
            checked += 1 + len(session.followers)
            if checked >= CHECKED_AT_ONCE:
                checked = 0
                await asyncio.sleep(0)
            if session not in self._hub.sessions:  # it has ended meanwhile
                continue
            if ask.rp and ask.rp not in session.followers:
                continue
            if ask.principal and ask.principal != session.who.principal:
                continue
            if ask.session and ask.session != self._id(session):
                continue
            yield session

    async def _listed(self, ask: Ask) -> SessionListing:
        matching, found = 0, []
        async for session in self._matching(ask):
            matching += 1
            key = self._key(session, ask)
            if ask.after is None or key > ask.after:
                found.append((key, session))
        first = heapq.nsmallest(min(ask.limit, LIMIT_MAX) + 1, found, key=lambda each: each[0])
        return SessionListing(self._gateway, matching, [self._row(session) for _, session in first])

    async def _disconnect(self, sessions: list[Session], retry: bool) -> None:
        for closed, session in enumerate(sessions, 1):
            if session in self._hub.sessions:
                session.disconnect(retry)
            if closed % CLOSED_AT_ONCE == 0:
                await asyncio.sleep(0)
        if sessions:
            log.info("Disconnected %d sessions at an operator's request.", len(sessions))

    def _id(self, session: Session) -> str:
        return f"{self._gateway}-{session.who.session}"

    def _key(self, session: Session, ask: Ask) -> Key:
        lag = max(map(lag_of, session.followers.values()), default=0) if ask.sort == "lag" else 0
        waiting_bytes = session.sink.waiting() if ask.sort == "lag" else 0
        return key_of(ask.sort, id=self._id(session), lag=lag, waiting_bytes=waiting_bytes, since=session.since)

    def _row(self, session: Session) -> Row:
        followers = list(session.followers.values())
        if session.sink.paused:
            state = "stalled"
        elif any(follower.hungry for follower in followers):
            state = "replaying"
        else:
            state = "live" if followers else "idle"
        return Row(
            id=self._id(session),
            gateway=self._gateway,
            principal=session.who.principal,
            issuer=session.who.issuer,
            kind=session.who.client,
            rps=[follower.channel.rp for follower in followers[:RPS_SHOWN]],
            readings=len(followers),
            since=session.since,
            state=state,  # type: ignore[arg-type]
            lag=max(map(lag_of, followers), default=0),
            waiting_bytes=session.sink.waiting(),
            address=session.address,
            passed=sum(map(passed_by, followers)),
        )


def lag_of(follower: Follower) -> int:
    """Return how many events a reading is behind its log's end, as known to this gateway; 0 while it is live."""
    channel = follower.channel
    if follower.live:
        return 0
    begin = follower.next if follower.epoch == channel.epoch else 1
    return max(0, channel.next - begin)


def passed_by(follower: Follower) -> int:
    """Return how many events of its log a reading has passed: its position, from which rates are computed without counting."""
    return (follower.channel.next if follower.live else follower.next) - 1
