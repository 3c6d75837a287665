"""A session's acknowledgements on their way into the log: many at once, answered in the order in which they were sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from eventing.access.rules.permission import require_writer
from eventing.core.errors import HeraldError, InvalidRequest
from eventing.core.events.cursors import Cursor
from eventing.core.principals import Principal
from eventing.gateway.delivery.acknowledgements import Acknowledgements, Outcome, Waiting

ACKS_MAX = 5_000  # unanswered acknowledgements of a session; then the client is read no further until some are answered

T = TypeVar("T")


class _Sent(Generic[T]):
    """An acknowledgement that the client has sent and that is not answered yet; `outcome` is None until it is known."""

    __slots__ = ("operation", "outcome", "size", "waiting")

    def __init__(self, operation: T, size: int) -> None:
        self.operation = operation
        self.size = size
        self.waiting: Waiting | None = None
        self.outcome: Outcome | None = None


class SessionAcknowledgements(Generic[T]):
    """See the module; `T` is whatever the caller is given back with an outcome.

    Args:
        answered: called with each operation and what came of it, in the order of `add`.

    Attributes:
        bytes: of the messages that are not answered yet.
    """

    __slots__ = ("_acknowledgements", "_answered", "_sent", "_settled", "bytes")

    def __init__(self, acknowledgements: Acknowledgements, answered: Callable[[T, Outcome], None]) -> None:
        self._acknowledgements = acknowledgements
        self._answered = answered
        self._sent: deque[_Sent[T]] = deque()
        self._settled: asyncio.Event | None = None
        self.bytes = 0

    def __len__(self) -> int:
        """How many are not answered yet."""
        return len(self._sent)

    def add(self, operation: T, size: int, principal: Principal, subscription: str, cursor: str) -> None:
        """Have an acknowledgement of `size` bytes stored. Whatever is wrong with it is answered in its turn."""
        sent = _Sent(operation, size)
        self._sent.append(sent)
        self.bytes += size
        try:
            if not subscription:
                raise InvalidRequest('ack takes "subscription" and "cursor".')
            place = Cursor.parse(cursor)
            require_writer(principal)
            sent.waiting = Waiting(principal, place, lambda outcome: self._come(sent, outcome))
            self._acknowledgements.add(subscription, sent.waiting)
        except HeraldError as error:
            self._come(sent, error)

    async def settled(self) -> None:
        """Return when all that were added before are answered."""
        while self._sent:
            self._settled = self._settled or asyncio.Event()
            await self._settled.wait()

    def withdraw(self) -> None:
        """Have those that are not under way stored no more, and answer none."""
        for sent in self._sent:
            if sent.waiting is not None:
                sent.waiting.withdrawn = True
        self.forget()

    def forget(self) -> None:
        """Answer none of those that wait: the client has gone."""
        self._sent.clear()
        self.bytes = 0
        self._tell()

    def _come(self, sent: _Sent[T], outcome: Outcome) -> None:
        sent.outcome = outcome
        while self._sent and (first := self._sent[0]).outcome is not None:
            self._sent.popleft()
            self.bytes -= first.size
            self._answered(first.operation, first.outcome)
        if not self._sent:
            self._tell()

    def _tell(self) -> None:
        if self._settled is not None:
            self._settled.set()
            self._settled = None
