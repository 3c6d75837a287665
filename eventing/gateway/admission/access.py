"""Principals and descriptors for the hot path, from memory; SQL is read only for new ones.

A token is verified once and its principal cached (access/verification/verifier.py). A descriptor is cached until it
changes (announced over Redis) or `DESCRIPTOR_S` has passed, whichever is first, so the effect of a lost announcement is
bounded. A descriptor in use is read again before that, together with others and without waiting requests: of 500 read
at once each costs a twentieth of one read by itself, so those that had a request within USED_S count as in use.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress

from django.db import Error as DatabaseError

from eventing.access.verification.verifier import STEPS_MAX, WAIT_S, RefreshNeeded, unverified, verifier
from eventing.core.config import Config
from eventing.core.errors import (
    TOKEN_NEEDED,
    ApplicationError,
    Forbidden,
    Gone,
    Moved,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from eventing.core.principals import Principal
from eventing.replication.selectors import redirects as redirect_selectors
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database

DESCRIPTORS_MAX = 100_000  # bound: descriptors in the cache; the oldest descriptor is read again
REFUSED_TOKENS_MAX = 10_000
# bound: seconds that a cached descriptor is valid; the next request for the RP waits until it is read again
DESCRIPTOR_S = 60.0
# bound: seconds since a descriptor in use was read; the descriptor is read again while the cached one serves
AGAIN_S = 45.0
# bound: seconds since the last request for an RP; its descriptor is not read again until the next one
USED_S = 600.0
GATHER_S = 0.5  # gathering time for other descriptors that are to be read again
READ_AT_ONCE = 500  # bound: descriptors of one query; the others are in the next query
UNKNOWN_S = 1.0  # bound: seconds that an RP is known not to exist; the RP is looked up again
log = logging.getLogger(__name__)


class Tokens:
    """Verification of tokens on the event loop: results in memory are returned at once, others are awaited."""

    def __init__(self) -> None:
        self._verifier = verifier()
        self._refreshing: asyncio.Task[None] | None = None
        self.peek = self._verifier.peek
        self.peek_digest = self._verifier.peek_digest

    def peek_anonymous(self) -> Principal | None:
        """Return the principal of a request without a token, if memory decides it. Raises Unauthenticated if none is admitted."""
        step = self._verifier.step("")
        return step if isinstance(step, Principal) else None

    async def principal(self, token: str) -> Principal:
        """Verify `token`; an empty one gives ANONYMOUS where some policy admits anyone.

        Raises Unauthenticated with the reason, Unavailable.
        """
        for _ in range(STEPS_MAX):
            step = self._verifier.step(token)
            if isinstance(step, Principal):
                return step
            if isinstance(step, RefreshNeeded):
                await in_database(step.refresh)()
            elif not await _done(step.future, WAIT_S):
                break
        raise unverified()

    def keys_announced(self) -> None:
        """Read the domain's keys again: they changed, or an announcement of a change may have been missed."""
        self._verifier.keys_changed()
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh_keys())

    def policies_changed(self) -> None:
        """Read the issuers again: a changed policy may name other ones."""
        self._verifier.issuers.policies_changed()

    async def _refresh_keys(self) -> None:
        try:
            await in_database(self._verifier.refresh_keys)()
        except (Unavailable, DatabaseError) as error:
            log.warning("The domain's keys cannot be read; the next unknown token triggers another attempt: %s", error)


async def _done(future: Future[None], wait_s: float) -> bool:
    """Wait for a future of other threads; return True if it is done. It is shared, so a disconnecting client must not cancel it."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell(_: Future[None]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await done.wait()
    return done.is_set()


class _Cached:
    """A cached descriptor, and in Unix seconds when it was read and when it was last asked for."""

    __slots__ = ("descriptor", "read_at", "used_at")

    def __init__(self, descriptor: Descriptor, read_at: float, used_at: float) -> None:
        self.descriptor = descriptor
        self.read_at = read_at
        self.used_at = used_at


class Descriptors:
    """Cache of the descriptors of RPs, by id and by name."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Cached] = OrderedDict()  # in the order of their reads
        self._unknown: OrderedDict[str, tuple[ApplicationError, float]] = OrderedDict()
        self._references: dict[str, set[str]] = {}
        self._asking: dict[str, asyncio.Future[Descriptor]] = {}
        self._wanted: dict[str, asyncio.Future[Descriptor]] = {}  # those of them for which no query has begun
        self._again: asyncio.TimerHandle | None = None  # when the oldest ones are to be read again
        self._reading: asyncio.Task[None] | None = None
        self.reads = 0  # total reads from SQL

    def __len__(self) -> int:
        """Number of cached entries, under ids and names."""
        return len(self._known)

    def peek(self, reference: str) -> Descriptor | None:
        """Return the descriptor, if it is cached and its lease has not ended."""
        cached = self._known.get(reference)
        if cached is None:
            return None
        now = cached.used_at = time.time()
        if now >= cached.read_at + DESCRIPTOR_S or now >= cached.descriptor.expires_at:
            return None
        return cached.descriptor

    def _read_again(self) -> None:
        """Have the old ones in use read again, and discard the others; then wait for the next ones to be old."""
        now, self._again = time.time(), None
        old = list(itertools.takewhile(lambda known: known[1].read_at + AGAIN_S <= now, self._known.items()))
        for reference, cached in old:
            if now >= min(cached.read_at + DESCRIPTOR_S, cached.used_at + USED_S):
                self._discard(reference)
            elif reference not in self._asking:
                self._ask(reference)
        self._again_soon()

    def _again_soon(self) -> None:
        if self._again is None and self._known:
            oldest = next(iter(self._known.values()))
            in_s = max(0.0, oldest.read_at + AGAIN_S - time.time())
            self._again = asyncio.get_running_loop().call_later(in_s + GATHER_S, self._read_again)

    async def get(self, reference: str) -> Descriptor:
        """Return the descriptor of an RP by id or name. Raises NotFound or Gone."""
        descriptor = self.peek(reference)
        if descriptor is not None:
            return descriptor
        refused = self._unknown.get(reference)
        if refused is not None and time.time() < refused[1]:
            raise refused[0].with_traceback(None)  # each raise would add the frames of all earlier ones
        asking = self._asking.get(reference)
        if asking is None:
            asking = self._ask(reference)
        return await asyncio.shield(asking)

    def _ask(self, reference: str) -> asyncio.Future[Descriptor]:
        asking = self._wanted.get(reference)  # dropped before its query began: the answer will be fresh
        if asking is None:
            asking = self._wanted[reference] = asyncio.get_running_loop().create_future()
            asking.add_done_callback(_nobody_may_be_left)
        self._asking[reference] = asking
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        return asking

    async def _read(self) -> None:
        """Read the wanted descriptors, and those requested meanwhile, in few queries: a cold start needs thousands."""
        try:
            while self._wanted:
                part = dict(itertools.islice(self._wanted.items(), READ_AT_ONCE))
                self.reads += len(part)
                for reference in part:
                    del self._wanted[reference]
                try:
                    found = await in_database(redirect_selectors.descriptors_or_moved)(list(part))
                except ApplicationError as error:
                    self._answer(part, [error] * len(part))
                except Exception as error:
                    log.exception("Descriptors could not be read")
                    for reference, asking in part.items():
                        self._asked(reference, asking)
                        asking.set_exception(error)
                else:
                    self._answer(part, found)
        finally:
            self._reading = None

    def _answer(
        self, asked: Mapping[str, asyncio.Future[Descriptor]], found: Sequence[Descriptor | ApplicationError]
    ) -> None:
        for (reference, asking), answer in zip(asked.items(), found, strict=True):
            current = self._asked(
                reference, asking
            )  # else it was dropped during the read, which may have returned the old one
            if isinstance(answer, Descriptor):
                if current:
                    self._remember(reference, answer)
                asking.set_result(answer)
            else:
                if current and isinstance(answer, NotFound | Gone | Moved):
                    self._known.pop(reference, None)  # it was cached until this read
                    self._refuse(reference, answer)
                asking.set_exception(answer)

    def _asked(self, reference: str, asking: asyncio.Future[Descriptor]) -> bool:
        """Return True if the answer may be cached: the RP was not dropped since the request."""
        if self._asking.get(reference) is not asking:
            return False
        del self._asking[reference]
        return True

    def _remember(self, reference: str, descriptor: Descriptor) -> None:
        now = time.time()
        for one in dict.fromkeys((descriptor.id, reference)):
            before = self._known.pop(one, None)
            asked_at = now if one == reference else 0.0
            self._known[one] = _Cached(descriptor, now, asked_at if before is None else before.used_at)
        self._references.setdefault(descriptor.id, set()).add(reference)
        while len(self._known) > DESCRIPTORS_MAX:
            self._discard(next(iter(self._known)))
        self._again_soon()

    def _discard(self, reference: str) -> None:
        rp = self._known.pop(reference).descriptor.id
        references = self._references.get(rp, set())
        references.discard(reference)
        if not references:
            self._references.pop(rp, None)

    def _refuse(self, reference: str, error: ApplicationError) -> None:
        self._unknown[reference] = (error, time.time() + UNKNOWN_S)
        if len(self._unknown) > REFUSED_TOKENS_MAX:
            self._unknown.popitem(last=False)

    def forget(self, rp: str) -> None:
        """Drop the cached descriptor of one RP; of all if `rp` is empty."""
        self._unknown.clear()
        self._asking.clear()
        if not rp:
            self._known.clear()
            self._references.clear()
            return
        for reference in self._references.pop(rp, set()) | {rp}:
            self._known.pop(reference, None)


def _nobody_may_be_left(asking: asyncio.Future[Descriptor]) -> None:
    """Retrieve the exception of a future with no waiters left, so that asyncio does not log it as unretrieved."""
    if not asking.cancelled():
        asking.exception()


def require(descriptor: Descriptor, principal: Principal, operation: str) -> None:
    """Raise Forbidden, or Unauthenticated without a token, unless `principal` may do `operation` at the RP."""
    if not descriptor.allows(principal, operation):
        if principal.anonymous:
            raise Unauthenticated(TOKEN_NEEDED)
        raise Forbidden(f"Your token does not allow {operation} here.", operation=operation)


def redacted_for(error: ApplicationError, *, anonymous: bool) -> ApplicationError:
    """Redact `error` for a client: without a token, the existence of resources is not disclosed."""
    return Unauthenticated(TOKEN_NEEDED) if anonymous and isinstance(error, NotFound | Gone | Moved) else error


def require_session(config: Config, principal: Principal) -> None:
    """Raise Unauthenticated for a stranger if only bearers of tokens may hold connections."""
    if principal.anonymous and not config.anonymous_sessions:
        raise Unauthenticated(TOKEN_NEEDED)
