"""Cached keys, at most CACHE_S old, for what is signed and verified many times a second: requests between domains, and
runs.

A retired key is used up to CACHE_S longer: other domains refuse its signatures, which are then made anew. Seals, which
are kept permanently, and the requests that carry them use access/selectors/keys.py instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from eventing.access.selectors.keys import signing_key
from eventing.core.container import per_process
from eventing.peering.selectors.domain_documents import domain_keys

CACHE_S = 1.0  # greatest age of a cached key: rotations and new documents are seen after it
CACHED_MAX = 10_000  # domains: one per document
Keys = Mapping[str, Mapping[str, Any]]
T = TypeVar("T")


class Recent(Generic[T]):
    """Values of `read` per name, read at most once in CACHE_S."""

    def __init__(self, read: Callable[[str], T]) -> None:
        self._read = read
        self._kept: dict[str, tuple[float, T]] = {}

    def get(self, name: str) -> T:
        entry = self._kept.get(name)
        now = time.monotonic()  # before the read: later writes are not in it
        if entry is not None and now - entry[0] < CACHE_S:
            return entry[1]
        found = self._read(name)
        if len(self._kept) >= CACHED_MAX:
            self._kept.clear()
        self._kept[name] = (now, found)
        return found

    def forget(self) -> None:
        self._kept = {}


@per_process
def _of_domains() -> Recent[Keys]:
    return Recent(domain_keys)


@per_process
def _own() -> Recent[dict[str, Any] | None]:
    return Recent(lambda _: signing_key())


def domain_keys_recent(name: str) -> Keys:
    """Return the selectors' `domain_keys`, at most CACHE_S old."""
    return _of_domains().get(name)


def signing_key_recent() -> dict[str, Any] | None:
    """Return the selectors' `signing_key`, at most CACHE_S old; read anew when the cached key has expired, or there was
    none.
    """
    key = _own().get("")
    if key is None or int(key.get("exp", 2**53)) <= time.time():
        _own().forget()
        key = _own().get("")
    return key


def recent_keys_forget() -> None:
    """Discard this process's cached keys after a change."""
    _of_domains().forget()
    _own().forget()
