"""Keys of foreign issuers: fetched when a token first needs them, cached, refreshed, and never waited for twice.

Life of a source of keys (an issuer's own discovery, or the JWKS address that a policy names): unknown -> fetched by one
of a few dedicated threads, while all requests that need it wait for the same answer -> fresh for as long as its
Cache-Control states, within bounds -> stale: still used, while it is fetched again in the background -> unusable
STALE_S later. A failure is remembered, twice as long each time, so that a slow or unreachable issuer costs little;
earlier keys stay in use. A key id that is missing in the source triggers another fetch, but not within REFRESH_S of the
last one.
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

# Slow issuers delay each other, never the threads that serve requests.
THREADS = 8  # bound: concurrent fetches of foreign keys; further fetches wait
FETCHES_MAX = 64  # bound: fetches of foreign keys, running or waiting; 503
WAITERS_MAX = 1000  # bound: requests that wait for foreign keys; 503
# A set of keys has up to 100 KB.
SOURCES_MAX = 1000  # bound: foreign key sets in memory; the least recently used set is fetched again
# bound: seconds between two fetches from an issuer because of unknown key ids; tokens with an unknown key id are refused in between
REFRESH_S = 30.0
# An issuer may be down overnight.
STALE_S = 86_400.0  # bound: seconds that an unreachable issuer's keys are used; the keys are discarded
FAILED_S = (30.0, 600.0)  # how long a failure is remembered: at first, and at most
DISCOVERY_PATH = "/.well-known/openid-configuration"
log = logging.getLogger(__name__)

Fetch = Callable[[str, float], Fetched]
SourceName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key, and the JWKS address from which it was fetched; empty for the issuer's own discovery."""

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
    """Cached keys of all foreign issuers. Thread-safe; nothing here blocks but the `fetching` futures.

    Args:
        algorithms: accepted values of `alg`; keys for others are dropped.
        private: whether private addresses may be called (see `fetching.fetch`).
        fetch_document: fetches an address within so many seconds; None for the real one.
        clock: monotonic seconds.
        removed: called with issuer, source and the key ids removed from it.
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

    def find(self, issuer: str, sources: Sequence[str], kid: str) -> FoundKey | Future[None] | None:
        """Find the key `kid` of an issuer in `sources`, in their order.

        Returns a future if a source must be fetched first: call again once it is done. None if no source has the key.
        Raises Unavailable if this cannot be decided now: a source failed, or too many fetches are in progress.
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
                    return FoundKey(key, keys_from)
                if now >= source.retry_at and (not usable or now >= source.asked_at + REFRESH_S):
                    future = self._start((issuer, keys_from), source)
                    if future is None or self._waiters >= WAITERS_MAX:
                        raise Unavailable(
                            "Too many issuers' keys are being fetched. Try again in a moment.", retry_after_s=1
                        )
                    self._waiters += 1
                    future.add_done_callback(self._waited)
                    return future
                if not usable:
                    failed_until = max(failed_until, source.retry_at)
        if failed_until:
            raise Unavailable(
                f"The keys of the issuer {issuer} cannot be fetched at present. Try again later.",
                retry_after_s=max(1, round(failed_until - now)),
            )
        return None

    def close(self) -> None:
        """Stop the threads, without waiting for them."""
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
        """Start a fetch, unless one is in progress; None if too many are."""
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
        """Fetch a source's keys, on a dedicated thread; never raises."""
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
        """Return the keys and the seconds for which they are fresh. Raises FetchFailed, BadKeys."""
        ends_at = time.monotonic() + FETCH_S
        if not address:
            discovered = self._fetch(issuer.rstrip("/") + DISCOVERY_PATH, FETCH_S)
            address = jwks.parse_discovery(discovered.content, issuer)
            if not is_address(address) or (issuer.startswith("https:") and not address.startswith("https:")):
                raise BadKeys("The discovery document's jwks_uri is not an https address.")
        left_s = ends_at - time.monotonic()
        if left_s <= 0:
            raise FetchFailed(f"No complete answer within {FETCH_S:g} s.")
        fetched = self._fetch(address, left_s)
        return jwks.parse(fetched.content, self._algorithms), fetched.max_age_s
