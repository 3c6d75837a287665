"""Reports of a client about its connections: lost and replaced ones, and counters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A connection was lost; subscriptions and unanswered publishes continue on the next one.

    Attributes:
        url: the domain.
        code: WebSocket close code; 1006 if the connection broke without one.
        reason: the domain's reason; may be empty.
        retry_in_s: seconds until the next attempt.
    """

    url: str
    code: int
    reason: str
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class Reconnected:
    """A connection that was lost has been replaced.

    Attributes:
        url: the domain, which may be another one than before.
        away_s: seconds since the loss.
    """

    url: str
    away_s: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counters of a client since it was made.

    Attributes:
        connections: connections that are open now.
        connects: connections opened so far; the first ones and those after a loss.
        disconnects: connections lost so far, without those that the client closed.
        received, gaps: events and gaps delivered to subscriptions.
        published: events confirmed; publishes by HTTP count as well.
        refused: events whose publish failed.
        in_flight: publishes that are not confirmed yet.
    """

    connections: int
    connects: int
    disconnects: int
    received: int
    gaps: int
    published: int
    refused: int
    in_flight: int


class Counters:
    """The counters while they change; see Statistics."""

    __slots__ = ("connects", "disconnects", "ended", "gaps", "published", "received", "refused")

    def __init__(self) -> None:
        self.connects = self.ended = self.disconnects = 0
        self.received = self.gaps = 0
        self.published = self.refused = 0

    def statistics(self, in_flight: int) -> Statistics:
        """Return them as they are now."""
        return Statistics(
            connections=self.connects - self.ended,
            connects=self.connects,
            disconnects=self.disconnects,
            received=self.received,
            gaps=self.gaps,
            published=self.published,
            refused=self.refused,
            in_flight=in_flight,
        )
