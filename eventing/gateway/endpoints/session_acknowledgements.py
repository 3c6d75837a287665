"""Acknowledgements of a session on their way into the log: many at once, answered in the order in which they were sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from eventing.access.rules.permission import require_writer
from eventing.core.errors import ApplicationError, InvalidRequest
from eventing.core.events.cursors import Cursor
from eventing.core.principals import Principal
from eventing.gateway.delivery.acknowledgements import Acknowledgements, Outcome, PendingAcknowledgement

ACKS_MAX = 5_000  # bound: unanswered acknowledgements of a connection; reading stops

T = TypeVar("T")


class _Sent(Generic[T]):
    """A sent and unanswered acknowledgement; `outcome` is None until it is known."""

    __slots__ = ("operation", "outcome", "size", "waiting")

    def __init__(self, operation: T, size: int) -> None:
        self.operation = operation
        self.size = size
        self.waiting: PendingAcknowledgement | None = None
        self.outcome: Outcome | None = None


class SessionAcknowledgements(Generic[T]):
    """Acknowledgements of a session, answered in order; `T` is the caller's value that is returned with an outcome.

    Args:
        answered: called with each operation and its outcome, in the order of `add`.

    Attributes:
        bytes: size of the unanswered messages.
    """

    __slots__ = ("_acknowledgements", "_answered", "_sent", "_settled", "bytes")

    def __init__(self, acknowledgements: Acknowledgements, answered: Callable[[T, Outcome], None]) -> None:
        self._acknowledgements = acknowledgements
        self._answered = answered
        self._sent: deque[_Sent[T]] = deque()
        self._settled: asyncio.Event | None = None
        self.bytes = 0

    def __len__(self) -> int:
        """Number of unanswered acknowledgements."""
        return len(self._sent)

    def add(self, operation: T, size: int, principal: Principal, subscription: str, cursor: str) -> None:
        """Store an acknowledgement of `size` bytes. A fault in it is answered in its turn."""
        sent = _Sent(operation, size)
        self._sent.append(sent)
        self.bytes += size
        try:
            if not subscription:
                raise InvalidRequest('ack takes "subscription" and "cursor".')
            place = Cursor.parse(cursor)
            require_writer(principal)
            sent.waiting = PendingAcknowledgement(principal, place, lambda outcome: self._come(sent, outcome))
            self._acknowledgements.add(subscription, sent.waiting)
        except ApplicationError as error:
            self._come(sent, error)

    async def settled(self) -> None:
        """Return when all acknowledgements added before are answered."""
        while self._sent:
            self._settled = self._settled or asyncio.Event()
            await self._settled.wait()

    def withdraw(self) -> None:
        """Prevent the storing of those that are not in progress, and answer none."""
        for sent in self._sent:
            if sent.waiting is not None:
                sent.waiting.withdrawn = True
        self.forget()

    def forget(self) -> None:
        """Answer none of the waiting ones: the client has disconnected."""
        self._sent.clear()
        self.bytes = 0
        self._answer_all()

    def _come(self, sent: _Sent[T], outcome: Outcome) -> None:
        sent.outcome = outcome
        while self._sent and (first := self._sent[0]).outcome is not None:
            self._sent.popleft()
            self.bytes -= first.size
            self._answered(first.operation, first.outcome)
        if not self._sent:
            self._answer_all()

    def _answer_all(self) -> None:
        if self._settled is not None:
            self._settled.set()
            self._settled = None
