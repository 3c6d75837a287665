"""Keys for what is signed and checked many times a second, requests between domains and runs: as they were CACHE_S ago.

A key that was retired meanwhile is used so much longer: what it signs is refused by who knows better, and is made anew.
For seals, which are kept for ever, and the requests that bring them, ask access/selectors/keys.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from eventing.access.selectors.keys import signing_key
from eventing.peering.selectors.domain_documents import domain_keys

CACHE_S = 1.0  # how long a process believes what it read: a rotation, or a document that came, is seen by then
CACHED_MAX = 10_000  # domains; as many as there are documents
Keys = Mapping[str, Mapping[str, Any]]
T = TypeVar("T")


class Recent(Generic[T]):
    """What `read` says of a name, asked at most once in CACHE_S."""

    def __init__(self, read: Callable[[str], T]) -> None:
        self._read = read
        self._kept: dict[str, tuple[float, T]] = {}

    def get(self, name: str) -> T:
        entry = self._kept.get(name)
        now = time.monotonic()  # before it is read: what is written later is not in it
        if entry is not None and now - entry[0] < CACHE_S:
            return entry[1]
        found = self._read(name)
        if len(self._kept) >= CACHED_MAX:
            self._kept.clear()
        self._kept[name] = (now, found)
        return found

    def forget(self) -> None:
        self._kept = {}


_of_domains = Recent[Keys](domain_keys)
_own = Recent[dict[str, Any] | None](lambda _: signing_key())


def domain_keys_recent(name: str) -> Keys:
    """As selectors' `domain_keys`, at most CACHE_S old."""
    return _of_domains.get(name)


def signing_key_recent() -> dict[str, Any] | None:
    """As selectors' `signing_key`, at most CACHE_S old; read anew when the one that was read has ended, or there was none."""
    key = _own.get("")
    if key is None or int(key.get("exp", 2**53)) <= time.time():
        _own.forget()
        key = _own.get("")
    return key


def recent_keys_forget() -> None:
    """Have this process read all keys anew: some have just changed."""
    _of_domains.forget()
    _own.forget()
