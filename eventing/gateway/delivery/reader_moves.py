"""Moves of readers at one gateway: which of its sessions are redirected, where to, and when.

Life: a move is announced, or found at the start -> the sessions drawn for it are redirected one after the other, each once per move ->
sessions that begin to read or publish while it lasts are drawn too. Only clients that stated to support it are redirected, and none that
has followed HOPS_MAX redirects already.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from eventing.core.errors import Moved
from eventing.gateway.delivery.hub import Hub
from eventing.gateway.delivery.redirects import Redirects
from eventing.gateway.delivery.session import Session
from eventing.replication.rules.reader_moves import (
    BY_BALANCING,
    HOPS_MAX,
    ReaderMove,
    is_drawn,
    move_read,
    new_is_drawn,
    new_pause_s,
    pause_s,
    targets_by_room,
    valid_s,
)
from eventing.store.cancellation import cancel_and_wait
from eventing.store.connection import AsyncRedis
from eventing.store.errors import RedisError
from eventing.store.reader_moves import reader_moves_read

READ_AGAIN_S = 60.0  # bound: seconds until the moves are read again without an announcement; a lost one is made up for
DRAWN_AT_ONCE = 1000  # bound: sessions drawn between two turns of the loop; the others follow in the next turn
log = logging.getLogger(__name__)


class ReaderMoves:
    """The moves at one gateway.

    Args:
        gateway: this gateway's id.
        redis: the gateway's client.
        redirects: addresses of alternatives.
        hub: hub of the sessions.
        clock: Unix seconds.
    """

    def __init__(
        self, gateway: str, redis: AsyncRedis, redirects: Redirects, hub: Hub, clock: Callable[[], float]
    ) -> None:
        self._gateway = gateway
        self._redis = redis
        self._redirects = redirects
        self._hub = hub
        self._clock = clock
        self._moves: dict[str, ReaderMove] = {}
        self._changed = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._moving: dict[str, asyncio.Task[None]] = {}  # by move
        self._waiting: dict[asyncio.TimerHandle, None] = {}  # redirects of sessions that came later
        self._leaving: dict[Session, tuple[str, float]] = {}  # RP and end of the redirect that a session was sent last

    def start(self) -> None:
        """Read the moves, now and after each change."""
        self._reading = asyncio.get_running_loop().create_task(self._read_forever())

    def changed(self) -> None:
        """Note that the moves changed."""
        self._changed.set()

    async def close(self) -> None:
        """Stop."""
        for handle in self._waiting:
            handle.cancel()
        self._waiting.clear()
        await cancel_and_wait([*self._moving.values(), *([self._reading] if self._reading else [])])

    def key_of(self, session: Session) -> str:
        """Return the key by which a session is drawn, and its alternatives ranked."""
        return f"{self._gateway}-{session.who.session}"

    def active(self, rp: str) -> list[ReaderMove]:
        """Return the moves of an RP's readers that are under way."""
        now = self._clock()
        return [move for move in self._moves.values() if move.rp == rp and move.until > now]

    def leaving(self) -> dict[str, int]:
        """Return by RP how many sessions were redirected and are still here while their redirect is valid; they may go any moment."""
        now, there = self._clock(), self._hub.sessions
        self._leaving = {one: sent for one, sent in self._leaving.items() if sent[1] > now and one in there}
        return Counter(rp for rp, _ in self._leaving.values())

    def began(self, session: Session, rp: str) -> None:
        """Draw a session that begins to read or publish at an RP."""
        if not self._moves or session.hops is None:
            return
        now, key = self._clock(), self.key_of(session)
        for move in self.active(rp):
            if new_is_drawn(move, key, session.hops):
                self._later(session, move, new_pause_s(move, key, now))

    def advise(self, rp: str, hops: int | None, publisher: str) -> None:
        """Raise Moved, with `hops` and `valid_s`, if an HTTP publisher is among those who move.

        Args:
            hops: redirects that the client has followed, as it states; None: it follows none.
            publisher: key by which it is drawn, the same for all its requests.
        """
        if hops is None or hops >= HOPS_MAX or not self._moves:
            return
        now = self._clock()
        for move in self.active(rp):
            if is_drawn(move, publisher) and (urls := self.targets(move, publisher)):
                raise Moved(
                    "This domain asks you to publish at one of the domains in `to`. To publish here, repeat the request "
                    "without Herald-Hops.",
                    rp=rp,
                    to=urls,
                    hops=hops + 1,
                    valid_s=round(valid_s(move, now), 3),
                )

    def targets(self, move: ReaderMove, key: str) -> list[str]:
        """Return where a move points one reader: the stated addresses, those drawn for it by their room, or those ranked for it."""
        return (
            list(move.to)
            or targets_by_room(move, key)
            or [one.url for one in self._redirects.alternatives(move.rp, key)]
        )

    def _later(self, session: Session, move: ReaderMove, delay_s: float) -> None:
        def due() -> None:
            self._waiting.pop(handle, None)
            self._redirect(session, move)

        handle = asyncio.get_running_loop().call_later(delay_s, due)
        self._waiting[handle] = None

    async def _read_forever(self) -> None:
        while True:
            self._changed.clear()
            try:
                self._take(await reader_moves_read(self._redis))
            except (RedisError, OSError) as error:
                log.warning("The moves of readers cannot be read: %s", error)
            try:
                async with asyncio.timeout(READ_AGAIN_S):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _take(self, stored: list[bytes]) -> None:
        now = self._clock()
        moves = [move for one in stored if (move := move_read(one)) is not None and move.until > now]
        known, self._moves = self._moves, {move.id: move for move in moves}
        for id in [id for id in self._moving if id not in self._moves]:
            self._moving.pop(id).cancel()
        for move in moves:
            if move.id not in known:
                self._moving[move.id] = asyncio.get_running_loop().create_task(self._move(move))

    async def _move(self, move: ReaderMove) -> None:
        """Redirect the drawn sessions, one after the other."""
        began, now = self._clock(), self._clock()
        drawn: list[tuple[float, int, Session]] = []
        for number, session in enumerate(list(self._hub.sessions)):
            if number % DRAWN_AT_ONCE == DRAWN_AT_ONCE - 1:
                await asyncio.sleep(0)
            if session.hops is None or not session.uses(move.rp):
                continue
            key = self.key_of(session)
            if is_drawn(move, key) and not self._is_moved(session, move):
                drawn.append((pause_s(move, key, now), number, session))
        if not move.to and not move.rooms:
            await self._redirects.looked_up_anew(move.rp)
        for due_s, _, session in sorted(drawn, key=lambda one: one[:2]):
            await asyncio.sleep(max(0.0, began + due_s - self._clock()))
            self._redirect(session, move)

    def _redirect(self, session: Session, move: ReaderMove) -> None:
        left_s = valid_s(move, self._clock())
        if session.hops is None or session.hops >= HOPS_MAX or move.id not in self._moves or left_s <= 0:
            return
        if session not in self._hub.sessions or not session.uses(move.rp):
            return
        if urls := self.targets(move, self.key_of(session)):
            session.redirect(move.rp, urls, hops=session.hops + 1, valid_s=round(left_s, 3))
            self._leaving[session] = move.rp, self._clock() + left_s

    def _is_moved(self, session: Session, move: ReaderMove) -> bool:
        """Return whether an earlier step of balancing counts the session already."""
        _, until = self._leaving.get(session, ("", 0.0))
        return move.by == BY_BALANCING and until > self._clock()
