"""Verification of credentials, the only way from a credential to a principal, for the hot path and REST alike.

Life of a token here: a client sends it -> `peek` finds it by its hash among verified tokens, neither expired nor
revoked -> else `step` parses it and returns what is needed before the next step: nothing, a read of SQL, or keys that
are being fetched from a foreign issuer -> the caller provides it where waiting is allowed, and calls `step` again ->
the principal is cached under the token's hash until the token expires or `RECHECK_S` has passed, whichever is first, so
that the effects of a retired key, of an issuer that no policy names any more or of a lost announcement are bounded in
time.

The issuer alone decides the kind of verification: a token of this domain by this domain's keys only, one of an issuer
that a policy names by that issuer's keys only, one of a peer domain by the keys in that domain's document only, any
other not at all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
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
from eventing.core.container import per_process
from eventing.core.errors import TOKEN_NEEDED, TokenRevoked, Unauthenticated, Unavailable
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.principals import ANONYMOUS, Principal

TOKENS_MAX = 100_000  # bound: verified tokens in the cache; the oldest token is verified again
# A cached token takes a small multiple of its length.
TOKENS_CHARS_MAX = 64 * 1024 * 1024  # bound: characters of all cached tokens; the oldest token is verified again
RECHECK_S = 300.0  # bound: seconds since a token was verified; the token is verified again
# bound: seconds between two reads of the keys because of an unknown key id; tokens with an unknown key id are refused in between
KEYS_S = 5.0
NO_KEYS_S = 0.2  # for a domain without keys: it is being set up, and its first token follows soon after its first key
KEYS_RELOAD_S = 60.0  # interval without an unknown key: well before a new key signs (access/services/keys.py)
WAIT_S = 2 * FETCH_S  # for an issuer's keys, including the queue of other fetches
STEPS_MAX = 20  # of one verification: each waits for something else, and there are no more sources of keys
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RefreshNeeded:
    """The next step needs `refresh()`, which reads SQL: call it on a thread that may block."""

    refresh: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Wait:
    """The next step needs `future`: keys are being fetched. Other callers wait for it too, so never cancel it."""

    future: Future[None]


class Verifier:
    """Verifies credentials. Thread-safe.

    Args:
        settings: the domain's settings.
        tokens_max: most verified tokens in the cache.
        clock: the wall clock, Unix seconds.
        issuers: admitted foreign issuers; None for those that policies name.
        foreign_keys: keys of foreign issuers; None for the real ones.
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
        self._refreshing = threading.Lock()
        self._revocations = revocations()
        self.issuers = issuers or Issuers()
        self.foreign_keys = foreign_keys or ForeignKeys(
            self._algorithms, private=settings.allow_private_issuers, removed=self.foreign_keys_removed
        )
        self.peer_keys = PeerKeys(self.peer_keys_gone)

    def __len__(self) -> int:
        return len(self._known)

    def peek(self, token: str) -> Principal | None:
        """Return the principal of a token that was verified before; None if it must be verified. Reads memory only.

        Raises Unauthenticated for one that has expired or was revoked.
        """
        return self.peek_digest(token_digest(token))

    def peek_digest(self, digest: bytes) -> Principal | None:
        """Return `peek` of the token with this digest."""
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

    def step(self, token: str) -> Principal | RefreshNeeded | Wait:
        """Verify as far as memory allows: return the principal, or the requirement of the next step.

        An empty token gives ANONYMOUS where some policy admits anyone. Raises Unauthenticated with the reason,
        Unavailable.
        """
        if not token:
            return self._anonymous()
        known = self.peek(token)
        if known is not None:
            return known
        if not self._revocations.loaded:
            return RefreshNeeded(self._revocations.refresh_if_due)
        if time.monotonic() - self._keys_at >= KEYS_RELOAD_S:
            return RefreshNeeded(self.refresh_keys)
        step = self._own(token) if token.startswith(BISCUIT_PREFIX) else self._signed(token)
        if isinstance(step, Principal):
            reason = self._revocations.revoked(step)
            if reason is not None:
                raise TokenRevoked(reason)
            self._keep(token, step)
        return step

    def verify(self, token: str) -> Principal:
        """Return the principal of `token`. Blocks while SQL is read or keys are fetched: never on an event loop.

        Raises Unauthenticated with the reason, Unavailable when an issuer does not answer.
        """
        self._revocations.refresh_if_due()
        for _ in range(STEPS_MAX):
            step = self.step(token)
            if isinstance(step, Principal):
                return step
            if isinstance(step, RefreshNeeded):
                step.refresh()
            else:
                try:
                    step.future.result(WAIT_S)
                except TimeoutError:
                    break
        raise unverified()

    # This domain's own tokens

    def _signed(self, token: str) -> Principal | RefreshNeeded | Wait:
        read = tokens.read(token)
        reason = self._revocations.key_revoked(read.issuer, read.key_id)
        if reason is not None:  # decided without the signature: a revoked own key is no longer there to verify it
            raise TokenRevoked(reason)
        if read.issuer == self._domain:
            return self._own(token, read)
        return self._of_peer(read) if self._revocations.peers.accepts(read.issuer) else self._foreign(token, read)

    def _own(self, token: str, read: tokens.Read | None = None) -> Principal | RefreshNeeded:
        """Verify a token of this domain: the parsed JWT, else a Biscuit."""
        now = self._clock()
        try:
            if read is None:
                return verify_biscuit(token, self._keys, now, issuer=self._domain, audience=self._audiences)
            return tokens.verify(read, self._keys, issuer=self._domain, audience=self._audiences, now=now)
        except tokens.UnknownKey:
            if time.monotonic() - self._keys_at < (KEYS_S if self._keys else NO_KEYS_S):
                raise
            return RefreshNeeded(self.refresh_keys)

    def keys_changed(self) -> None:
        """Note that the domain's keys were announced to have changed, and read them soon with `refresh_keys`."""
        self._keys_at = float("-inf")

    def refresh_keys(self) -> None:
        """Read the domain's keys from SQL, unless they were just read. Raises django.db.Error only if none are known."""
        asked_at = time.monotonic()
        with self._refreshing:
            if self._keys_at >= asked_at:
                return
            before, began_at = self._keys, time.monotonic()
            try:
                self._keys = key_selectors.verification_keys()
            except DatabaseError as error:
                if not before:
                    raise
                log.warning("The domain's keys cannot be read; the known ones stay in use: %s", error)
            self._keys_at = began_at  # later callers may know of a later change
        gone = before.keys() - self._keys.keys()
        if gone:
            self._forget(lambda principal: principal.local and principal.key_id in gone)

    # Tokens of other domains

    def _of_peer(self, read: tokens.Read) -> Principal | RefreshNeeded | Wait:
        """Verify a token of another domain whose tokens are accepted here."""
        name = read.issuer
        if self.peer_keys.due(name):
            return RefreshNeeded(partial(self.peer_keys.refresh, name))
        keys = self.peer_keys.keys(name)
        try:
            return tokens.verify_of_domain(read, keys, issuer=name, audience=self._audiences, now=self._clock())
        except tokens.UnknownKey:
            if read.key_id in keys:  # known, and its window has not opened or has closed
                raise
            if self.peer_keys.due(name, unknown_key=True):
                return RefreshNeeded(partial(self.peer_keys.refresh, name))
            asked = self.peer_keys.refetch(name)
            if asked is None:
                raise
            return Wait(asked)

    def peer_keys_gone(self, issuer: str, kids: frozenset[str]) -> None:
        """Verify again the tokens of another domain's keys whose windows have changed."""
        self._forget(lambda principal: not principal.local and principal.issuer == issuer and principal.key_id in kids)

    # Tokens of foreign issuers

    def _foreign(self, token: str, read: tokens.Read) -> Principal | RefreshNeeded | Wait:
        """Verify a token of another issuer; checks that need no key precede any fetch."""
        issuer = read.issuer
        if is_domain(issuer) and DOMAIN_PATTERN.fullmatch(issuer):
            raise Unauthenticated(self._revocations.peers.refusal(issuer) or TOKEN_NEEDED)
        if self.issuers.due(issuer):
            return RefreshNeeded(self.issuers.refresh)
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
                return RefreshNeeded(self.issuers.refresh)  # a policy may name another source of its keys by now
            raise tokens.UnknownKey(f"The token's kid names no accepted key of {issuer}.")
        jwks.verify(read, token, found.key, self._algorithms)
        principal = dataclasses.replace(principal, keys_from=found.keys_from)
        if len(principal.identity) > IDENTITY_CHARS_MAX:
            raise Unauthenticated(
                f"The token's issuer and subject are together longer than {IDENTITY_CHARS_MAX} characters."
            )
        return principal

    def foreign_keys_removed(self, issuer: str, keys_from: str, kids: frozenset[str]) -> None:
        """Verify again the tokens of keys that an issuer no longer publishes."""
        self._forget(
            lambda principal: (
                principal.issuer == issuer and principal.keys_from == keys_from and principal.key_id in kids
            )
        )

    def _anonymous(self) -> Principal | RefreshNeeded:
        if self.issuers.due(ANYONE):
            return RefreshNeeded(self.issuers.refresh)
        if not self.issuers.anyone:
            raise Unauthenticated(TOKEN_NEEDED)
        return ANONYMOUS

    # Cache of verified tokens

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
    """Compute the digest under which a verified token is cached; tokens themselves are not stored."""
    return hashlib.sha256(token.encode()).digest()


def unverified() -> Unavailable:
    """Make the answer to a request whose verification was not completed."""
    return Unavailable("The token could not be verified in time. Try again in a moment.", retry_after_s=5)


@per_process
def _verifiers() -> dict[Config, Verifier]:
    """By the settings in use, of which a process has one."""
    return {}


def verifier() -> Verifier:
    """Return this process's verifier."""
    settings, made = config(), _verifiers()
    found = made.get(settings)
    return made.setdefault(settings, Verifier(settings)) if found is None else found
