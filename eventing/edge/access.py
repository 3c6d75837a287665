"""Who asks, and for which RP: both answered from memory on the hot path, and from SQL only when they are new.

A token is verified once and its principal kept under the token's hash until it expires. A descriptor is kept until it
changes (announced over Redis) or `DESCRIPTOR_S` has passed, whichever is first, so a lost announcement heals by itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec, TypeVar, cast

from channels.db import DatabaseSyncToAsync
from django.db import InterfaceError, OperationalError

from eventing.core.descriptor import Descriptor
from eventing.core.errors import Forbidden, Gone, HeraldError, NotFound, Unauthenticated, Unavailable
from eventing.core.policy import Principal
from eventing.core.tokens import verify
from eventing.selectors import descriptors as descriptor_selectors
from eventing.selectors import keys as key_selectors

P = ParamSpec("P")
R = TypeVar("R")

TOKENS_MAX = 100_000
DESCRIPTORS_MAX = 100_000
REFUSED_TOKENS_MAX = 10_000
DESCRIPTOR_S = 60.0
UNKNOWN_S = 1.0  # an unknown RP is asked for again after this long
KEYS_S = 5.0  # a token with an unknown key makes us look for new keys at most this often
log = logging.getLogger(__name__)


def in_database(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Make a selector or service awaitable, on a thread whose database connection is looked after.

    The result raises Unavailable when the database does not answer.
    """
    in_thread = cast(Callable[P, Awaitable[R]], DatabaseSyncToAsync(function, thread_sensitive=False))

    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await in_thread(*args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            log.error("The database does not answer: %s", error)
            raise Unavailable("The database does not answer. Try again in a moment.", retry_after_s=2) from None

    return call


class Tokens:
    """Verification of tokens, cached by their hash.

    Args:
        domain: issuer and audience that a token must name.
    """

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._known: OrderedDict[bytes, Principal] = OrderedDict()
        self._keys: Mapping[str, Mapping[str, Any]] = {}
        self._keys_at = float("-inf")
        self._looking: asyncio.Lock = asyncio.Lock()

    def peek(self, token: str) -> Principal | None:
        """The principal of a token that was verified before; None if it must be verified. Raises Unauthenticated."""
        digest = hashlib.sha256(token.encode()).digest()
        principal = self._known.get(digest)
        if principal is not None and principal.expires_at <= time.time():
            del self._known[digest]
            raise Unauthenticated("The token has expired; get a new one.")
        return principal

    async def principal(self, token: str) -> Principal:
        """Verify `token`. Raises Unauthenticated with the reason."""
        known = self.peek(token)
        if known is not None:
            return known
        try:
            principal = self._verify(token)
        except Unauthenticated:
            if not await self._look_for_keys():
                raise
            principal = self._verify(token)
        self._known[hashlib.sha256(token.encode()).digest()] = principal
        if len(self._known) > TOKENS_MAX:
            self._known.popitem(last=False)
        return principal

    def _verify(self, token: str) -> Principal:
        return verify(token, self._keys, issuer=self._domain, audience=self._domain, now=time.time())

    async def _look_for_keys(self) -> bool:
        """Read the domain's keys again, if it is time; whether they are other ones than before, by whoever's reading."""
        before = self._keys
        async with self._looking:
            now = time.monotonic()
            if now - self._keys_at >= KEYS_S:
                self._keys = await in_database(key_selectors.verification_keys)()
                self._keys_at = now
        return before != self._keys


class Descriptors:
    """The descriptors of RPs, by id and by name, cached."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Descriptor, float]] = OrderedDict()
        self._unknown: OrderedDict[str, tuple[HeraldError, float]] = OrderedDict()
        self._references: dict[str, set[str]] = {}
        self._asking: dict[str, asyncio.Future[Descriptor]] = {}

    def peek(self, reference: str) -> Descriptor | None:
        """The descriptor, if it is known and its lease runs."""
        entry = self._known.get(reference)
        if entry is None:
            return None
        descriptor, until = entry
        now = time.time()
        return descriptor if now < until and now < descriptor.expires_at else None

    async def get(self, reference: str) -> Descriptor:
        """The descriptor of an RP by id or name. Raises NotFound or Gone."""
        descriptor = self.peek(reference)
        if descriptor is not None:
            return descriptor
        refused = self._unknown.get(reference)
        if refused is not None and time.time() < refused[1]:
            raise refused[0]
        asking = self._asking.get(reference)
        if asking is None:
            asking = self._asking[reference] = asyncio.ensure_future(self._ask(reference))
            asking.add_done_callback(lambda done: self._asked(reference, done))
        return await asyncio.shield(asking)

    def _asked(self, reference: str, asking: asyncio.Future[Descriptor]) -> None:
        if self._asking.get(reference) is asking:
            del self._asking[reference]
        if not asking.cancelled():
            asking.exception()  # whoever asked may have gone

    async def _ask(self, reference: str) -> Descriptor:
        try:
            descriptor: Descriptor = await in_database(descriptor_selectors.descriptor_get)(reference)
        except (NotFound, Gone) as error:
            if self._asking.get(reference) is not asyncio.current_task():
                raise
            self._unknown[reference] = (error, time.time() + UNKNOWN_S)
            if len(self._unknown) > REFUSED_TOKENS_MAX:
                self._unknown.popitem(last=False)
            raise
        if self._asking.get(reference) is not asyncio.current_task():
            return descriptor  # forgotten while it was read: perhaps the old one
        self._known[reference] = self._known[descriptor.id] = (descriptor, time.time() + DESCRIPTOR_S)
        self._references.setdefault(descriptor.id, set()).add(reference)
        while len(self._known) > DESCRIPTORS_MAX:
            old, (gone, _) = self._known.popitem(last=False)
            self._references.get(gone.id, set()).discard(old)
        return descriptor

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


def require(descriptor: Descriptor, principal: Principal, operation: str) -> None:
    """Raise Forbidden unless `principal` may do `operation` at the RP."""
    if not descriptor.allows(principal, operation):
        raise Forbidden(f"Your token does not allow {operation} here.", operation=operation)
