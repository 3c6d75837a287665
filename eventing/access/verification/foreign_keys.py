"""Keys of foreign issuers: fetched when a token first needs them, kept, refreshed, and never waited for twice.

The life of a source of keys (an issuer's own discovery, or the JWKS address that a policy names): unknown -> fetched by
one thread of a few that do nothing else, while all who need it wait for the same answer -> fresh for as long as its
Cache-Control says, within bounds -> stale: still used, while it is fetched again in the background -> unusable STALE_S
later. A failure is remembered, twice as long each time, so that an issuer that is slow or gone costs little; what was had
before stays in use. A key id that the source has not makes us ask it again, but not within REFRESH_S of the last time.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from eventing.access.rules import jwks
from eventing.access.rules.jwks import BadKeys, ForeignKey
from eventing.access.rules.policy_issuers import is_address
from eventing.access.verification.fetching import FETCH_S, Fetched, FetchFailed, fetch
from eventing.core.errors import Unavailable

THREADS = 8  # that fetch; slow issuers hold up each other, never those threads that serve requests
FETCHES_MAX = 64  # under way or waiting for a thread; beyond it whoever needs another is told to come again
WAITERS_MAX = 1000  # who wait for all of them together
SOURCES_MAX = 1000  # kept; a set of keys has up to ~100 KB
REFRESH_S = 30.0  # between two fetches of a source for a key id it did not have
STALE_S = 86_400.0  # how long keys are used after they should have been fetched anew: an issuer may be down over night
FAILED_S = (30.0, 600.0)  # how long a failure is remembered: at first, and at most
DISCOVERY_PATH = "/.well-known/openid-configuration"
log = logging.getLogger(__name__)

Fetch = Callable[[str, float], Fetched]
SourceName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """A key, and the JWKS address it was had from; empty for the issuer's own discovery."""

    key: ForeignKey
    keys_from: str


@dataclass(slots=True)
class _Source:
    keys: Mapping[str, ForeignKey] = field(default_factory=dict)
    loaded: bool = False
    asked_at: float = float("-inf")
    fresh_until: float = float("-inf")
    failures: int = 0
    retry_at: float = float("-inf")
    fetching: Future[None] | None = None


class ForeignKeys:
    """See the module. Safe to use from several threads; nothing here blocks but `fetching` futures, which others wait for.

    Args:
        algorithms: values of `alg` that are accepted; keys for others are not kept.
        private: whether private addresses may be asked (see `fetching.fetch`).
        fetch_document: fetches an address within so many seconds; None for the real one.
        clock: monotonic seconds.
        removed: called with issuer, source and key ids that are gone from it.
    """

    def __init__(
        self,
        algorithms: Collection[str],
        *,
        private: bool = False,
        fetch_document: Fetch | None = None,
        clock: Callable[[], float] = time.monotonic,
        removed: Callable[[str, str, frozenset[str]], None] = lambda issuer, source, kids: None,
    ) -> None:
        self._algorithms = tuple(algorithms)
        self._fetch: Fetch = fetch_document or (lambda url, fetch_s: fetch(url, private=private, fetch_s=fetch_s))
        self._clock = clock
        self._removed = removed
        self._sources: OrderedDict[SourceName, _Source] = OrderedDict()
        self._lock = Lock()
        self._fetches = 0
        self._waiters = 0
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="issuer-keys")

    def find(self, issuer: str, sources: Sequence[str], kid: str) -> Found | Future[None] | None:
        """The key `kid` of an issuer, looked for in `sources` in their order.

        Returns a future if a source must be heard first: find again once it is done. None if no source has the key.
        Raises Unavailable when it cannot be known now: a source failed, or too many are being asked.
        """
        now = self._clock()
        failed_until = 0.0
        with self._lock:
            for keys_from in sources:
                source = self._source((issuer, keys_from))
                usable = source.loaded and now < source.fresh_until + STALE_S
                key = source.keys.get(kid) if usable else None
                if key is not None:
                    if now >= source.fresh_until and now >= source.retry_at:
                        self._start((issuer, keys_from), source)  # in the background
                    return Found(key, keys_from)
                if now >= source.retry_at and (not usable or now >= source.asked_at + REFRESH_S):
                    future = self._start((issuer, keys_from), source)
                    if future is None or self._waiters >= WAITERS_MAX:
                        raise Unavailable(
                            "Too many issuers are being asked for keys. Try again in a moment.", retry_after_s=1
                        )
                    self._waiters += 1
                    future.add_done_callback(self._waited)
                    return future
                if not usable:
                    failed_until = max(failed_until, source.retry_at)
        if failed_until:
            raise Unavailable(
                f"The keys of the issuer {issuer} cannot be had right now.",
                retry_after_s=max(1, round(failed_until - now)),
            )
        return None

    def close(self) -> None:
        """End the threads, without waiting for them."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _source(self, name: SourceName) -> _Source:
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = _Source()
            while len(self._sources) > SOURCES_MAX:
                self._sources.popitem(last=False)
        self._sources.move_to_end(name)
        return source

    def _start(self, name: SourceName, source: _Source) -> Future[None] | None:
        """Fetch, unless that is under way; None if too much is."""
        if source.fetching is None:
            if self._fetches >= FETCHES_MAX:
                return None
            self._fetches += 1
            source.fetching = self._threads.submit(self._load, name, source)
        return source.fetching

    def _waited(self, future: Future[None]) -> None:
        with self._lock:
            self._waiters -= 1

    def _load(self, name: SourceName, source: _Source) -> None:
        """Fetch a source's keys, on a thread of ours; never raises."""
        keys, max_age_s, failure = source.keys, 0, ""
        try:
            keys, max_age_s = self._fetched(*name)
        except (FetchFailed, BadKeys) as error:
            failure = str(error)
        except Exception:
            log.exception("Fetching the keys of the issuer %s failed", name[0])
            failure = "internal error"
        gone: frozenset[str] = frozenset()
        with self._lock:
            now = self._clock()
            self._fetches -= 1
            source.fetching = None
            source.asked_at = now
            if failure:
                source.failures += 1
                source.retry_at = now + min(FAILED_S[0] * 2 ** min(source.failures - 1, 10), FAILED_S[1])
            else:
                gone = frozenset(kid for kid, key in source.keys.items() if keys.get(kid) != key)
                source.keys, source.loaded = keys, True
                source.fresh_until = now + max_age_s
                source.failures, source.retry_at = 0, float("-inf")
        if failure:
            log.warning("No keys of the issuer %s from %s: %s", name[0], name[1] or "its discovery", failure)
        if gone:
            log.info("The issuer %s no longer publishes the keys %s.", name[0], ", ".join(sorted(gone)))
            self._removed(*name, gone)

    def _fetched(self, issuer: str, address: str) -> tuple[dict[str, ForeignKey], int]:
        """The keys and for how many seconds they are fresh. Raises FetchFailed, BadKeys."""
        ends_at = time.monotonic() + FETCH_S
        if not address:
            discovered = self._fetch(issuer.rstrip("/") + DISCOVERY_PATH, FETCH_S)
            address = jwks.parse_discovery(discovered.content, issuer)
            if not is_address(address) or (issuer.startswith("https:") and not address.startswith("https:")):
                raise BadKeys("The discovery document's jwks_uri is not an https address.")
        left_s = ends_at - time.monotonic()
        if left_s <= 0:
            raise FetchFailed(f"There was no complete answer within {FETCH_S:g} s.")
        fetched = self._fetch(address, left_s)
        return jwks.parse(fetched.content, self._algorithms), fetched.max_age_s
