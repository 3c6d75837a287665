"""The container of every object of this process that changes and is not part of another object. Pure.

A subject declares such an object with a factory. The container makes the object at the first call and keeps it:

    refusals = per_process(Refusals)

    @memoized(maxsize=4096)
    def public_key(x: str) -> Ed25519PublicKey: ...

So no module has state of its own. A process gets a new container at its start, after a fork, and a test for itself
(`fresh_container`). Connections of the composition root (ports.py) are not state: a new container has them too. An
object graph such as the gateway's takes what it needs in constructors; `per_process` is for views, services and tasks,
which their frameworks call without one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, wraps
from threading import RLock
from typing import Any, TypeVar, TypeVarTuple, cast

Args = TypeVarTuple("Args")
R = TypeVar("R")
T = TypeVar("T")


class Container:
    """The objects of one process, each by the function that returns it.

    Args:
        connected: the providers of ports and the receivers of hooks.
    """

    __slots__ = ("_locks", "connected", "inherited", "objects")

    def __init__(self, connected: Mapping[Hashable, Any]) -> None:
        self.connected = dict(connected)
        self.objects: dict[Callable[[], Any], Any] = {}
        self.inherited: Container | None = None
        self._locks: dict[Callable[[], Any], RLock] = {}

    def make(self, key: Callable[[], Any], factory: Callable[[], Any]) -> Any:
        """Return the object of a key, made by this thread unless another one has made it in the meantime."""
        with self._locks.setdefault(key, RLock()):
            if key not in self.objects:
                self.objects[key] = factory()
            return self.objects[key]


_container = Container({})


def connected() -> dict[Hashable, Any]:
    """Return the connections of the composition root in this process."""
    return _container.connected


@contextmanager
def fresh_container() -> Iterator[None]:
    """Run the block with a container of its own, in which everything is connected and nothing made; then restore the
    present one."""
    global _container
    before, _container = _container, Container(_container.connected)
    try:
        yield
    finally:
        _container = before


def _after_fork() -> None:
    """Begin anew in a forked child. The parent's container is kept, so that no destructor of its objects runs in the child."""
    global _container
    inherited, _container = _container, Container(_container.connected)
    _container.inherited = inherited


os.register_at_fork(after_in_child=_after_fork)


def per_process(factory: Callable[[], T]) -> Callable[[], T]:
    """Return the process's object of `factory`; the first call makes it. Thread-safe."""

    @wraps(factory, updated=())
    def held() -> T:
        try:
            found: T = _container.objects[held]
        except KeyError:
            found = _container.make(held, factory)
        return found

    return held


def memoized(maxsize: int) -> Callable[[Callable[[*Args], R]], Callable[[*Args], R]]:
    """Memoize as functools.lru_cache does, for functions of positional arguments; the container holds the results."""

    def decorate(function: Callable[[*Args], R]) -> Callable[[*Args], R]:
        def cache() -> Callable[[*Args], R]:
            return cast(Callable[[*Args], R], lru_cache(maxsize)(function))

        @wraps(function)
        def remembered(*args: *Args) -> R:
            try:
                found: Callable[[*Args], R] = _container.objects[cache]
            except KeyError:
                found = _container.make(cache, cache)
            return found(*args)

        return remembered

    return decorate
