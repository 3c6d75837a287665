"""Ports and hooks, by which a lower subject calls a higher one without importing it.

A subject declares in its `ports` module the functions that it requires of other subjects and the notifications that it
sends, and calls them. `eventing.composition`, the one composition root, connects the functions of higher subjects when
a process starts; the connections are held by the container (container.py). The calls are ordinary function calls, in the caller's thread and transaction; exceptions reach the
caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from eventing.core.container import connected

P = ParamSpec("P")
R = TypeVar("R")


class NotConnectedError(RuntimeError):
    """A port was called in a process whose composition root was not run."""


class Port(Generic[P, R]):
    """A function that a lower subject calls and exactly one higher subject provides.

    Args:
        contract: signature of the port, as a function whose docstring states arguments, result and errors. Never
            called.
    """

    def __init__(self, contract: Callable[P, R]) -> None:
        self.__doc__ = contract.__doc__
        self._name = f"{contract.__module__}.{contract.__name__}"

    def connect(self, provider: Callable[P, R] | None) -> None:
        """Connect `provider`, in place of an earlier one; None: no provider."""
        connected()[self] = provider

    @property
    def provider(self) -> Callable[P, R] | None:
        """The function that answers calls; None if there is none."""
        provider: Callable[P, R] | None = connected().get(self)
        return provider

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the provider. Raises NotConnectedError if there is none."""
        provider = self.provider
        if provider is None:
            raise NotConnectedError(self._name)
        return provider(*args, **kwargs)


class Hook(Generic[P]):
    """A function that a lower subject calls and any number of higher subjects receive, in the order of connection.

    Args:
        contract: as for Port.
    """

    def __init__(self, contract: Callable[P, None]) -> None:
        self.__doc__ = contract.__doc__

    def connect(self, receiver: Callable[P, None]) -> None:
        """Add a receiver, unless it is connected already."""
        receivers = connected().get(self, ())
        if receiver not in receivers:
            connected()[self] = (*receivers, receiver)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call each receiver; the first exception ends the calls."""
        for receiver in connected().get(self, ()):
            receiver(*args, **kwargs)
