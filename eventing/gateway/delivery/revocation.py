"""Permission that ends while a reader is connected: whoever holds a revoked token is let go, within seconds whatever fails.

One task looks at SQL when a revocation is announced, and every LOOK_S anyway, so neither Redis nor the announcement is
needed. When anything changed, another looks at all sessions and waiting pulls, a slice at a time so that events keep
flowing. A session that opens meanwhile is looked at when it is registered: after that, every sweep sees it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from django.db import Error as DatabaseError

from eventing.access.verification.revocations import LOOK_S, revocations
from eventing.core.errors import Forbidden, Unavailable
from eventing.core.principals import Principal
from eventing.gateway.delivery.hub import Hub
from eventing.gateway.delivery.session import Follower, Session
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database
from eventing.store.cancellation import cancel_and_wait

SPACING_S = 0.2  # between two looks: a flood of announcements costs one look and one sweep each
LOOKED_AT_ONCE = 1000  # sessions between two turns of the loop; ~1 ms
CLOSED_AT_ONCE = 50  # sessions; ~5 ms with what closing them sets off
log = logging.getLogger(__name__)


def end_unless_allowed(descriptor: Descriptor, follower: Follower) -> None:
    """End a reading that the policy of its RP, which has changed, no longer allows, live or from the log.

    What was begun in the past needs `history` until it has come to the front; a live reading that has fallen behind is
    caught up under `subscribe`, as it would have been served live.
    """
    session = follower.session
    needed = ("subscribe", "history") if follower.replays else ("subscribe",)
    for operation in needed:
        if session.principal is not None and not descriptor.allows(session.principal, operation):
            session.reading_ended(follower, Forbidden(f"The policy no longer allows {operation} here."))
            return


class Revoking:
    """See the module.

    Args:
        hub: whose sessions it looks after.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
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
        self._tasks = [loop.create_task(self._look_forever()), loop.create_task(self._sweep_forever())]

    async def close(self) -> None:
        """Stop all work."""
        self._unlisten()
        await cancel_and_wait(self._tasks)

    def announced(self) -> None:
        """A revocation was announced, or announcements may have been missed: look soon."""
        self._announced.set()

    def opened(self, session: Session) -> None:
        """A session has been registered at the hub: let it go if its token was revoked since it was verified."""
        if session.principal is not None and self._revocations.revoked(session.principal) is not None:
            session.revoked()

    @contextmanager
    def waiting(self, principal: Principal, release: Callable[[], object]) -> Iterator[None]:
        """Within it, `release` is called when the principal's token is revoked; `refuse_revoked` afterwards."""
        key = object()
        self._waiting[key] = (principal, release)
        try:
            yield
        finally:
            del self._waiting[key]

    async def _look_forever(self) -> None:
        failing = False
        while True:
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._announced.wait()
            except TimeoutError:
                pass  # not announced, or not heard
            self._announced.clear()
            try:
                await in_database(self._revocations.look)()
            except (Unavailable, DatabaseError) as error:
                if not failing:
                    log.warning("Revocations cannot be read, those known stay in force: %s", error)
                failing = True
            except Exception:
                log.exception("Looking for revocations failed; trying again.")
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
        for looked, session in enumerate(list(self._hub.sessions), 1):
            if session.principal is not None and session in self._hub.sessions and revoked(session.principal):
                session.revoked()
                closed += 1
                if closed % CLOSED_AT_ONCE == 0:
                    await asyncio.sleep(0)
            if looked % LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)
        if closed:
            log.info("Closed %d sessions whose token was revoked.", closed)
