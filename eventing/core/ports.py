"""Ports and hooks: how a lower subject reaches a higher one without importing it.

A subject states in its `ports` module what it asks of others, or tells others, and calls it. `eventing.composition`, the one
composition root, connects the functions of higher subjects when a process starts. The calls are ordinary function calls: in
the caller's thread and transaction, and their exceptions reach the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class NotConnectedError(RuntimeError):
    """A port was called in a process whose composition root was not run."""


class Port(Generic[P, R]):
    """A function that a lower subject calls and exactly one higher subject provides.

    Args:
        contract: the signature, as a function whose docstring states arguments, result and errors. It is never called.
    """

    def __init__(self, contract: Callable[P, R]) -> None:
        self.__doc__ = contract.__doc__
        self._name = f"{contract.__module__}.{contract.__name__}"
        self._provider: Callable[P, R] | None = None

    def connect(self, provider: Callable[P, R]) -> None:
        """Have calls answered by `provider`, in place of an earlier one."""
        self._provider = provider

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the provider. Raises NotConnectedError if there is none."""
        if self._provider is None:
            raise NotConnectedError(self._name)
        return self._provider(*args, **kwargs)


class Hook(Generic[P]):
    """A function that a lower subject calls and any number of higher subjects receive, in the order in which they connected.

    Args:
        contract: as of Port.
    """

    def __init__(self, contract: Callable[P, None]) -> None:
        self.__doc__ = contract.__doc__
        self._receivers: list[Callable[P, None]] = []

    def connect(self, receiver: Callable[P, None]) -> None:
        """Add a receiver; no harm if it is one already."""
        if receiver not in self._receivers:
            self._receivers.append(receiver)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call each receiver; the first exception ends the calls."""
        for receiver in self._receivers:
            receiver(*args, **kwargs)
