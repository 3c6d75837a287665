"""Revocation during connections: sessions of revoked tokens are closed, within seconds whatever fails.

One task reads SQL when a revocation is announced, and every REFRESH_S anyway, so neither Redis nor the announcement is
needed. After a change, another checks all sessions and waiting pulls, a slice at a time so that events keep flowing. A
session that opens meanwhile is checked when it is registered: after that, every sweep includes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from django.db import Error as DatabaseError

from eventing.access.verification.revocations import REFRESH_S, revocations
from eventing.core.errors import Forbidden, Unavailable
from eventing.core.principals import Principal
from eventing.gateway.delivery.hub import Hub
from eventing.gateway.delivery.session import Follower, Session
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database
from eventing.store.cancellation import cancel_and_wait

SPACING_S = 0.2  # between two reads: a flood of announcements costs one read and one sweep each
# About 1 ms.
CHECKED_AT_ONCE = 1000  # bound: sessions checked without yielding; the others are checked after other work
CLOSED_AT_ONCE = 50  # sessions; ~5 ms with the consequences of closing
log = logging.getLogger(__name__)


def end_unless_allowed(descriptor: Descriptor, follower: Follower) -> None:
    """End a reading that the changed policy of its RP no longer allows, live or from the log.

    A reading from the past needs `history` until it reaches the front; a live reading that has fallen behind catches up
    under `subscribe`, as if served live.
    """
    session = follower.session
    needed = ("subscribe", "history") if follower.replays else ("subscribe",)
    for operation in needed:
        if session.principal is not None and not descriptor.allows(session.principal, operation):
            session.reading_ended(follower, Forbidden(f"The policy no longer allows {operation} here."))
            return


class Revoking:
    """Closing of revoked sessions.

    Args:
        hub: hub of the sessions.
        pause_s: seconds between two reads that are not announced.
    """

    def __init__(self, hub: Hub, pause_s: float = REFRESH_S) -> None:
        self._hub = hub
        self._pause_s = pause_s
        self._revocations = revocations()
        self._waiting: dict[object, tuple[Principal, Callable[[], object]]] = {}
        self._announced = asyncio.Event()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._unlisten: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Begin the periodic work."""
        loop = asyncio.get_running_loop()

        def changed() -> None:
            with suppress(RuntimeError):  # a loop that has ended
                loop.call_soon_threadsafe(self._changed.set)

        self._unlisten = self._revocations.listen(changed)
        self._tasks = [loop.create_task(self._check_forever()), loop.create_task(self._sweep_forever())]

    async def close(self) -> None:
        """Stop all work."""
        self._unlisten()
        await cancel_and_wait(self._tasks)

    def announced(self) -> None:
        """Read soon: a revocation was announced, or announcements may have been missed."""
        self._announced.set()

    def opened(self, session: Session) -> None:
        """Check a newly registered session: close it if its token was revoked since its verification."""
        if session.principal is not None and self._revocations.revoked(session.principal) is not None:
            session.revoked()

    @contextmanager
    def waiting(self, principal: Principal, release: Callable[[], object]) -> Iterator[None]:
        """Call `release` within the block when the principal's token is revoked; check with `refuse_revoked` afterwards."""
        key = object()
        self._waiting[key] = (principal, release)
        try:
            yield
        finally:
            del self._waiting[key]

    async def _check_forever(self) -> None:
        failing = False
        while True:
            try:
                async with asyncio.timeout(self._pause_s):
                    await self._announced.wait()
            except TimeoutError:
                pass  # not announced, or the announcement was lost
            self._announced.clear()
            try:
                await in_database(self._revocations.refresh)()
            except (Unavailable, DatabaseError) as error:
                if not failing:
                    log.warning("Revocations cannot be read; the known ones stay in force: %s", error)
                failing = True
            except Exception:
                log.exception("Reading revocations failed; trying again.")
            else:
                failing = False
            await asyncio.sleep(SPACING_S)

    async def _sweep_forever(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._sweep()
            except Exception:
                log.exception("Closing revoked sessions failed; trying again.")
                self._changed.set()
                await asyncio.sleep(SPACING_S)

    async def _sweep(self) -> None:
        revoked = self._revocations.revoked
        closed = 0
        for principal, release in list(self._waiting.values()):
            if revoked(principal) is not None:
                release()
        for checked, session in enumerate(list(self._hub.sessions), 1):
            if session.principal is not None and session in self._hub.sessions and revoked(session.principal):
                session.revoked()
                closed += 1
                if closed % CLOSED_AT_ONCE == 0:
                    await asyncio.sleep(0)
            if checked % CHECKED_AT_ONCE == 0:
                await asyncio.sleep(0)
        if closed:
            log.info("Closed %d sessions whose token was revoked.", closed)
