"""Who asks, and for which RP: both answered from memory on the hot path, and from SQL only when they are new.

A token is verified once and its principal kept (access/verification/verifier.py). A descriptor is kept until it changes (announced
over Redis) or `DESCRIPTOR_S` has passed, whichever is first, so a lost announcement heals by itself. What is in use is read
again before that, together with others and with nobody waiting: thousands of RPs would be read one by one else.
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

from eventing.access.verification.verifier import STEPS_MAX, WAIT_S, Look, unverified, verifier
from eventing.core.config import Config
from eventing.core.errors import (
    TOKEN_NEEDED,
    Forbidden,
    Gone,
    HeraldError,
    Moved,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from eventing.core.principals import Principal
from eventing.replication.selectors import redirects as redirect_selectors
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database

DESCRIPTORS_MAX = 100_000
REFUSED_TOKENS_MAX = 10_000
DESCRIPTOR_S = 60.0
AGAIN_S = 45.0  # the age at which a descriptor in use is read again
GATHER_S = 0.5  # for others that are to be read again as well
READ_AT_ONCE = 500  # descriptors of one query
UNKNOWN_S = 1.0  # an unknown RP is asked for again after this long
log = logging.getLogger(__name__)


class Tokens:
    """Verification of tokens for the event loop: what memory knows at once, what must be waited for awaited."""

    def __init__(self) -> None:
        self._verifier = verifier()
        self._looking: asyncio.Task[None] | None = None
        self.peek = self._verifier.peek
        self.peek_digest = self._verifier.peek_digest

    def peek_anonymous(self) -> Principal | None:
        """The principal of a request without a token, if memory has the answer. Raises Unauthenticated if none is admitted."""
        step = self._verifier.step("")
        return step if isinstance(step, Principal) else None

    async def principal(self, token: str) -> Principal:
        """Verify `token`; empty for none, which is ANONYMOUS where some policy admits anyone.

        Raises Unauthenticated with the reason, Unavailable.
        """
        for _ in range(STEPS_MAX):
            step = self._verifier.step(token)
            if isinstance(step, Principal):
                return step
            if isinstance(step, Look):
                await in_database(step.look)()
            elif not await _done(step.future, WAIT_S):
                break
        raise unverified()

    def keys_announced(self) -> None:
        """The domain's keys changed, or an announcement of that may have been missed."""
        self._verifier.keys_changed()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look_for_keys())

    def policies_changed(self) -> None:
        """Some policy changed: it may name other issuers."""
        self._verifier.issuers.policies_changed()

    async def _look_for_keys(self) -> None:
        try:
            await in_database(self._verifier.look_for_keys)()
        except (Unavailable, DatabaseError) as error:
            log.warning("The domain's keys cannot be read; the next token that is new makes us look again: %s", error)


async def _done(future: Future[None], wait_s: float) -> bool:
    """Wait for a future of other threads; whether it is done. It is shared, so whoever goes away must not cancel it."""
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


class Descriptors:
    """The descriptors of RPs, by id and by name, cached."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Descriptor, float, float]] = OrderedDict()  # read again at, good until
        self._unknown: OrderedDict[str, tuple[HeraldError, float]] = OrderedDict()
        self._references: dict[str, set[str]] = {}
        self._asking: dict[str, asyncio.Future[Descriptor]] = {}
        self._wanted: dict[str, asyncio.Future[Descriptor]] = {}  # of these, those that no query asks for yet
        self._old: set[str] = set()  # to be read again soon
        self._reading: asyncio.Task[None] | None = None
        self.reads = 0  # from SQL, in all

    def __len__(self) -> int:
        """How many are known, under ids and names."""
        return len(self._known)

    def peek(self, reference: str) -> Descriptor | None:
        """The descriptor, if it is known and its lease runs."""
        entry = self._known.get(reference)
        if entry is None:
            return None
        descriptor, again, until = entry
        now = time.time()
        if now >= again:
            if now >= until:
                return None
            if reference not in self._old:
                self._again_soon(reference)
        return descriptor if now < descriptor.expires_at else None

    def _again_soon(self, reference: str) -> None:
        if not self._old:
            asyncio.get_running_loop().call_later(GATHER_S, self._again)
        self._old.add(reference)

    def _again(self) -> None:
        old, self._old = self._old, set()
        for reference in old:
            if reference in self._known and reference not in self._asking:
                self._ask(reference)

    async def get(self, reference: str) -> Descriptor:
        """The descriptor of an RP by id or name. Raises NotFound or Gone."""
        descriptor = self.peek(reference)
        if descriptor is not None:
            return descriptor
        refused = self._unknown.get(reference)
        if refused is not None and time.time() < refused[1]:
            raise refused[0].with_traceback(None)  # each raise would add the frames of all before it
        asking = self._asking.get(reference)
        if asking is None:
            asking = self._ask(reference)
        return await asyncio.shield(asking)

    def _ask(self, reference: str) -> asyncio.Future[Descriptor]:
        asking = self._wanted.get(reference)  # forgotten before a query asked for it: the answer will be fresh
        if asking is None:
            asking = self._wanted[reference] = asyncio.get_running_loop().create_future()
            asking.add_done_callback(_nobody_may_be_left)
        self._asking[reference] = asking
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        return asking

    async def _read(self) -> None:
        """Read what is wanted, and what comes to be wanted meanwhile, in few queries: a cold start asks for thousands."""
        try:
            while self._wanted:
                part = dict(itertools.islice(self._wanted.items(), READ_AT_ONCE))
                self.reads += len(part)
                for reference in part:
                    del self._wanted[reference]
                try:
                    found = await in_database(redirect_selectors.descriptors_or_moved)(list(part))
                except HeraldError as error:
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
        self, asked: Mapping[str, asyncio.Future[Descriptor]], found: Sequence[Descriptor | HeraldError]
    ) -> None:
        for (reference, asking), answer in zip(asked.items(), found, strict=True):
            current = self._asked(reference, asking)  # else forgotten while it was read: perhaps the old one
            if isinstance(answer, Descriptor):
                if current:
                    self._remember(reference, answer)
                asking.set_result(answer)
            else:
                if current and isinstance(answer, NotFound | Gone | Moved):
                    self._known.pop(reference, None)  # it was known until it was read again
                    self._refuse(reference, answer)
                asking.set_exception(answer)

    def _asked(self, reference: str, asking: asyncio.Future[Descriptor]) -> bool:
        """Whether the answer may be kept: nobody has forgotten the RP since it was asked for."""
        if self._asking.get(reference) is not asking:
            return False
        del self._asking[reference]
        return True

    def _remember(self, reference: str, descriptor: Descriptor) -> None:
        now = time.time()
        self._known[reference] = self._known[descriptor.id] = (descriptor, now + AGAIN_S, now + DESCRIPTOR_S)
        self._references.setdefault(descriptor.id, set()).add(reference)
        while len(self._known) > DESCRIPTORS_MAX:
            old, (gone, *_) = self._known.popitem(last=False)
            self._references.get(gone.id, set()).discard(old)

    def _refuse(self, reference: str, error: HeraldError) -> None:
        self._unknown[reference] = (error, time.time() + UNKNOWN_S)
        if len(self._unknown) > REFUSED_TOKENS_MAX:
            self._unknown.popitem(last=False)

    def forget(self, rp: str) -> None:
        """Drop what is known of one RP; of all if `rp` is empty."""
        self._unknown.clear()
        self._asking.clear()
        if not rp:
            self._known.clear()
            self._references.clear()
            return
        for reference in self._references.pop(rp, set()) | {rp}:
            self._known.pop(reference, None)


def _nobody_may_be_left(asking: asyncio.Future[Descriptor]) -> None:
    """Whoever asked may have gone: an error that nobody takes is none."""
    if not asking.cancelled():
        asking.exception()


def require(descriptor: Descriptor, principal: Principal, operation: str) -> None:
    """Raise Forbidden, or Unauthenticated without a token, unless `principal` may do `operation` at the RP."""
    if not descriptor.allows(principal, operation):
        if principal.anonymous:
            raise Unauthenticated(TOKEN_NEEDED)
        raise Forbidden(f"Your token does not allow {operation} here.", operation=operation)


def as_told(error: HeraldError, *, anonymous: bool) -> HeraldError:
    """What a client is told of `error`: whoever shows no token is not told what exists here and what does not."""
    return Unauthenticated(TOKEN_NEEDED) if anonymous and isinstance(error, NotFound | Gone | Moved) else error


def require_session(config: Config, principal: Principal) -> None:
    """Raise Unauthenticated for a stranger where only bearers of tokens may hold connections."""
    if principal.anonymous and not config.anonymous_sessions:
        raise Unauthenticated(TOKEN_NEEDED)
