"""Who asks, and for which RP: both answered from memory on the hot path, and from SQL only when they are new.

A token is verified once and its principal kept under the token's hash until it expires. A descriptor is kept until it
changes (announced over Redis) or `DESCRIPTOR_S` has passed, whichever is first, so a lost announcement heals by itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from eventing.core.descriptor import Descriptor
from eventing.core.errors import Forbidden, Gone, HeraldError, NotFound, Unauthenticated
from eventing.core.principals import Principal
from eventing.core.tokens import verify
from eventing.edge.database import in_database
from eventing.selectors import descriptors as descriptor_selectors
from eventing.selectors import keys as key_selectors

TOKENS_MAX = 100_000
DESCRIPTORS_MAX = 100_000
REFUSED_TOKENS_MAX = 10_000
DESCRIPTOR_S = 60.0
READ_AT_ONCE = 500  # descriptors of one query
UNKNOWN_S = 1.0  # an unknown RP is asked for again after this long
KEYS_S = 5.0  # a token with an unknown key makes us look for new keys at most this often
log = logging.getLogger(__name__)


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
        self._wanted: dict[str, asyncio.Future[Descriptor]] = {}  # of these, those that no query asks for yet
        self._reading: asyncio.Task[None] | None = None

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
            asking = self._wanted.get(reference)  # forgotten before a query asked for it: the answer will be fresh
            if asking is None:
                asking = self._wanted[reference] = asyncio.get_running_loop().create_future()
                asking.add_done_callback(_nobody_may_be_left)
            self._asking[reference] = asking
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
        return await asyncio.shield(asking)

    async def _read(self) -> None:
        """Read what is wanted, and what comes to be wanted meanwhile, in few queries: a cold start asks for thousands."""
        try:
            while self._wanted:
                part = dict(itertools.islice(self._wanted.items(), READ_AT_ONCE))
                for reference in part:
                    del self._wanted[reference]
                try:
                    found = await in_database(descriptor_selectors.descriptors_get)(list(part))
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
                if current and isinstance(answer, NotFound | Gone):
                    self._refuse(reference, answer)
                asking.set_exception(answer)

    def _asked(self, reference: str, asking: asyncio.Future[Descriptor]) -> bool:
        """Whether the answer may be kept: nobody has forgotten the RP since it was asked for."""
        if self._asking.get(reference) is not asking:
            return False
        del self._asking[reference]
        return True

    def _remember(self, reference: str, descriptor: Descriptor) -> None:
        self._known[reference] = self._known[descriptor.id] = (descriptor, time.time() + DESCRIPTOR_S)
        self._references.setdefault(descriptor.id, set()).add(reference)
        while len(self._known) > DESCRIPTORS_MAX:
            old, (gone, _) = self._known.popitem(last=False)
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
    """Raise Forbidden unless `principal` may do `operation` at the RP."""
    if not descriptor.allows(principal, operation):
        raise Forbidden(f"Your token does not allow {operation} here.", operation=operation)
