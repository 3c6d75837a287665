"""The one way in which a credential becomes a principal, for the hot path and REST alike.

The life of a token here: it is shown -> `peek` knows it from before, by its hash, and it is neither over nor revoked ->
else `step` reads it and says what is needed before the next step: nothing, a look into SQL, or keys that a foreign issuer
is being asked for -> who asks sees to that where waiting is allowed, and steps again -> the principal is kept under the
token's hash until the token ends or `RECHECK_S` has passed, whichever is first, so that a retired key, an issuer that no
policy names any more or a lost announcement heals by itself.

Whoever issued it decides how it is verified, and nothing else: a token of this domain by this domain's keys only, one of
an issuer that a policy names by that issuer's keys only, one of a peer domain by the keys in that domain's document
only, any other not at all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import Error as DatabaseError

from eventing.access.rules import jwks, tokens
from eventing.access.rules.delegation import PREFIX as BISCUIT_PREFIX
from eventing.access.rules.policy_issuers import ANYONE
from eventing.access.rules.token_issuers import is_domain
from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.access.selectors import keys as key_selectors
from eventing.access.verification.biscuits import verify_biscuit
from eventing.access.verification.fetching import FETCH_S
from eventing.access.verification.foreign_keys import ForeignKeys
from eventing.access.verification.issuers import Issuers
from eventing.access.verification.peer_keys import PeerKeys
from eventing.access.verification.revocations import revocations
from eventing.conf import config
from eventing.core.algorithms import parse_algorithms
from eventing.core.config import Config
from eventing.core.errors import TOKEN_NEEDED, TokenRevoked, Unauthenticated, Unavailable
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.principals import ANONYMOUS, Principal

TOKENS_MAX = 100_000  # verified tokens kept
TOKENS_CHARS_MAX = 64 * 1024 * 1024  # of these together; what is kept of a token is some times its length
RECHECK_S = 300.0  # what was verified is verified again after this long
KEYS_S = 5.0  # a token with an unknown key makes us look for new keys at most this often
NO_KEYS_S = 0.2  # of a domain that had none: it is being set up, and its first token comes soon after its first key
KEYS_RELOAD_S = 60.0  # and without one this often: well before a new key signs (access/services/keys.py)
WAIT_S = 2 * FETCH_S  # for an issuer's keys, with the queue of who else is asked
STEPS_MAX = 20  # of one verification: each waits for something else, and there are no more sources of keys
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Look:
    """The next step needs `look()`, which reads SQL: call it on a thread that may."""

    look: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Wait:
    """The next step needs `future`: an issuer is being asked. Others wait for it too, so never cancel it."""

    future: Future[None]


class Verifier:
    """Verifies credentials. Safe to use from several threads.

    Args:
        settings: the domain's settings.
        tokens_max: verified tokens kept.
        clock: the wall clock, Unix seconds.
        issuers: which foreign issuers are admitted; None for those that policies name.
        foreign_keys: their keys; None for the real ones.
    """

    def __init__(
        self,
        settings: Config,
        *,
        tokens_max: int = TOKENS_MAX,
        clock: Callable[[], float] = time.time,
        issuers: Issuers | None = None,
        foreign_keys: ForeignKeys | None = None,
    ) -> None:
        self._domain = settings.domain
        self._audiences = (settings.domain, settings.base_url)
        self._algorithms = parse_algorithms(settings.foreign_algorithms)
        self._tokens_max = tokens_max
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, tuple[Principal, float, int]] = OrderedDict()
        self._known_chars = 0
        self._keys: Mapping[str, Mapping[str, Any]] = {}
        self._keys_at = float("-inf")
        self._looking = threading.Lock()
        self._revocations = revocations()
        self.issuers = issuers or Issuers()
        self.foreign_keys = foreign_keys or ForeignKeys(
            self._algorithms, private=settings.allow_private_issuers, removed=self.foreign_keys_removed
        )
        self.peer_keys = PeerKeys(self.peer_keys_gone)

    def __len__(self) -> int:
        return len(self._known)

    def peek(self, token: str) -> Principal | None:
        """The principal of a token that was verified before; None if it must be verified. Reads memory only.

        Raises Unauthenticated for one that has expired or was revoked.
        """
        return self.peek_digest(token_digest(token))

    def peek_digest(self, digest: bytes) -> Principal | None:
        """As `peek`, of the token with this digest."""
        entry = self._known.get(digest)
        if entry is None:
            return None
        principal, until, _ = entry
        now = self._clock()
        if now >= until:
            self._drop([digest])
            if now >= principal.expires_at:
                raise Unauthenticated("The token has expired; get a new one.")
            return None
        reason = self._revocations.revoked(principal)
        if reason is not None:
            raise TokenRevoked(reason)
        return principal

    def step(self, token: str) -> Principal | Look | Wait:
        """Verify as far as memory goes: the principal, or what must be seen to before the next step.

        No token at all is ANONYMOUS where some policy admits anyone. Raises Unauthenticated with the reason, Unavailable.
        """
        if not token:
            return self._anonymous()
        known = self.peek(token)
        if known is not None:
            return known
        if not self._revocations.loaded:
            return Look(self._revocations.look_if_due)
        if time.monotonic() - self._keys_at >= KEYS_RELOAD_S:
            return Look(self.look_for_keys)
        step = self._own(token) if token.startswith(BISCUIT_PREFIX) else self._signed(token)
        if isinstance(step, Principal):
            reason = self._revocations.revoked(step)
            if reason is not None:
                raise TokenRevoked(reason)
            self._keep(token, step)
        return step

    def verify(self, token: str) -> Principal:
        """Who `token` speaks for. Blocks while SQL is read or an issuer asked: never on an event loop.

        Raises Unauthenticated with the reason, Unavailable when an issuer does not answer.
        """
        self._revocations.look_if_due()
        for _ in range(STEPS_MAX):
            step = self.step(token)
            if isinstance(step, Principal):
                return step
            if isinstance(step, Look):
                step.look()
            else:
                try:
                    step.future.result(WAIT_S)
                except TimeoutError:
                    break
        raise unverified()

    # This domain's own

    def _signed(self, token: str) -> Principal | Look | Wait:
        read = tokens.read(token)
        reason = self._revocations.key_revoked(read.issuer, read.key_id)
        if reason is not None:  # said without the signature: a revoked key of our own is no longer there to verify it
            raise TokenRevoked(reason)
        if read.issuer == self._domain:
            return self._own(token, read)
        return self._of_peer(read) if self._revocations.peers.accepts(read.issuer) else self._foreign(token, read)

    def _own(self, token: str, read: tokens.Read | None = None) -> Principal | Look:
        """A token of this domain: what was read of a JWT, else a Biscuit."""
        now = self._clock()
        try:
            if read is None:
                return verify_biscuit(token, self._keys, now, issuer=self._domain, audience=self._audiences)
            return tokens.verify(read, self._keys, issuer=self._domain, audience=self._audiences, now=now)
        except tokens.UnknownKey:
            if time.monotonic() - self._keys_at < (KEYS_S if self._keys else NO_KEYS_S):
                raise
            return Look(self.look_for_keys)

    def keys_changed(self) -> None:
        """The domain's keys were announced to have changed. Look for them soon: `look_for_keys`."""
        self._keys_at = float("-inf")

    def look_for_keys(self) -> None:
        """Read the domain's keys from SQL, unless somebody just has. Raises django.db.Error only if none are known."""
        asked_at = time.monotonic()
        with self._looking:
            if self._keys_at >= asked_at:
                return
            before, began_at = self._keys, time.monotonic()
            try:
                self._keys = key_selectors.verification_keys()
            except DatabaseError as error:
                if not before:
                    raise
                log.warning("The domain's keys cannot be read, those known stay in use: %s", error)
            self._keys_at = began_at  # whoever asks from here on may know of a later change
        gone = before.keys() - self._keys.keys()
        if gone:
            self._forget(lambda principal: principal.local and principal.key_id in gone)

    # Of other domains

    def _of_peer(self, read: tokens.Read) -> Principal | Look | Wait:
        """A token of another domain whose tokens count here."""
        name = read.issuer
        if self.peer_keys.due(name):
            return Look(partial(self.peer_keys.look, name))
        keys = self.peer_keys.keys(name)
        try:
            return tokens.verify_of_domain(read, keys, issuer=name, audience=self._audiences, now=self._clock())
        except tokens.UnknownKey:
            if read.key_id in keys:  # known, and its window has not opened or has closed
                raise
            if self.peer_keys.due(name, unknown_key=True):
                return Look(partial(self.peer_keys.look, name))
            asked = self.peer_keys.refetch(name)
            if asked is None:
                raise
            return Wait(asked)

    def peer_keys_gone(self, issuer: str, kids: frozenset[str]) -> None:
        """The windows of these keys of another domain have changed: what they signed is verified again."""
        self._forget(lambda principal: not principal.local and principal.issuer == issuer and principal.key_id in kids)

    # Of foreign issuers

    def _foreign(self, token: str, read: tokens.Read) -> Principal | Look | Wait:
        """A token of another issuer; all that needs no key is checked before anybody is asked for one."""
        issuer = read.issuer
        if is_domain(issuer) and DOMAIN_PATTERN.fullmatch(issuer):
            raise Unauthenticated(self._revocations.peers.refusal(issuer) or TOKEN_NEEDED)
        if self.issuers.due(issuer):
            return Look(self.issuers.look)
        sources = self.issuers.sources(issuer)
        if not sources or issuer == ANYONE:
            shown = issuer if len(issuer) <= tokens.SUBJECT_CHARS_MAX and issuer.isprintable() else "it was issued by"
            raise Unauthenticated(
                f"No policy here names the issuer {shown}." if issuer else "The token names no issuer."
            )
        jwks.check_header(read)
        jwks.check_algorithm(read, self._algorithms)
        principal = jwks.principal_of(read, audience=self._audiences, now=self._clock())
        found = self.foreign_keys.find(issuer, sources, read.key_id)
        if isinstance(found, Future):
            return Wait(found)
        if found is None:
            if self.issuers.due(issuer, unknown_key=True):
                return Look(self.issuers.look)  # a policy may name another source of its keys by now
            raise tokens.UnknownKey(f"The token's kid names no key of {issuer} that is accepted here.")
        jwks.verify(read, token, found.key, self._algorithms)
        principal = dataclasses.replace(principal, keys_from=found.keys_from)
        if len(principal.identity) > IDENTITY_CHARS_MAX:
            raise Unauthenticated(
                f"The token's issuer and subject are together longer than {IDENTITY_CHARS_MAX} characters."
            )
        return principal

    def foreign_keys_removed(self, issuer: str, keys_from: str, kids: frozenset[str]) -> None:
        """An issuer no longer publishes these keys: what they signed is verified again."""
        self._forget(
            lambda principal: (
                principal.issuer == issuer and principal.keys_from == keys_from and principal.key_id in kids
            )
        )

    def _anonymous(self) -> Principal | Look:
        if self.issuers.due(ANYONE):
            return Look(self.issuers.look)
        if not self.issuers.anyone:
            raise Unauthenticated(TOKEN_NEEDED)
        return ANONYMOUS

    # What was verified

    def _keep(self, token: str, principal: Principal) -> None:
        until = min(principal.expires_at, self._clock() + RECHECK_S)
        digest = token_digest(token)
        with self._lock:
            if digest in self._known:
                return
            self._known[digest] = (principal, until, len(token))
            self._known_chars += len(token)
            while len(self._known) > self._tokens_max or self._known_chars > TOKENS_CHARS_MAX:
                _, (_, _, chars) = self._known.popitem(last=False)
                self._known_chars -= chars

    def _drop(self, digests: list[bytes]) -> None:
        with self._lock:
            for digest in digests:
                entry = self._known.pop(digest, None)
                if entry is not None:
                    self._known_chars -= entry[2]

    def _forget(self, which: Callable[[Principal], bool]) -> None:
        with self._lock:
            entries = list(self._known.items())
        self._drop([digest for digest, (principal, _, _) in entries if which(principal)])


def token_digest(token: str) -> bytes:
    """Under what a verified token is kept: tokens themselves are not."""
    return hashlib.sha256(token.encode()).digest()


def unverified() -> Unavailable:
    """What is answered when verification did not come to an end."""
    return Unavailable("The token could not be verified in time. Try again in a moment.", retry_after_s=5)


_verifiers: dict[Config, Verifier] = {}
_making = threading.Lock()


def verifier() -> Verifier:
    """This process's verifier."""
    settings = config()
    made = _verifiers.get(settings)
    if made is None:
        with _making:
            made = _verifiers.get(settings)
            if made is None:
                made = _verifiers[settings] = Verifier(settings)
    return made


@contextmanager
def fresh_verifier() -> Iterator[None]:
    """Forget this process's verifiers before and after; for tests, which change the database under them."""
    _forget_verifiers()
    yield
    _forget_verifiers()


def _forget_verifiers() -> None:
    for one in _verifiers.values():
        one.foreign_keys.close()
    _verifiers.clear()
