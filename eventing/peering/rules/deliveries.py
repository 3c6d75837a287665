"""Deliveries to peers: classes of failure, which of them are retried, and when. Pure.

(none) --fails--> retrying --succeeds--> (none)          unreachable, busy: after a pause that doubles, with jitter
(none) --fails--> stopped  --resumed--> (none)           refused, invalid: until an administrator or the peer changes
                                                         something; a refused one is probed on contact by the peer
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PAUSE_S = 0.5  # the first; doubled each time
PAUSE_S_MAX = 60.0  # bound: seconds of back-off after failures of a peer; the peer is tried again
RETRY_AFTER_S_MAX = 3600.0  # bound: seconds of a peer's `Retry-After`; the peer is tried again
DETAIL_CHARS_MAX = 255
_DOUBLINGS_MAX = 10  # PAUSE_S_MAX is reached long before


class Failure(StrEnum):
    """Class of a failed request; the same words as peering/wire/client.py: PeerError."""

    UNREACHABLE = "unreachable"  # no connection, no answer in time, or a 5xx of something in between
    BUSY = "busy"  # the peer asks for a later request
    REFUSED = "refused"  # this domain is not an active peer there
    INVALID = "invalid"  # keys, signatures or formats do not match


STOPS = frozenset({Failure.REFUSED, Failure.INVALID})
PROBED = frozenset({Failure.UNREACHABLE, Failure.REFUSED})
"""Failures that contact by the peer puts in doubt: one request is sent at once, and only its success clears the
failure.
"""


class Standstill(StrEnum):
    """Reason why a peer receives nothing although no request fails."""

    PAUSED = "paused"  # the peer asked for a pause
    NOT_TAKING = "not-taking"  # the peer answers, but its vector covers nothing of what it was sent


UNTAKEN_SHOWN_S = 10.0
"""Seconds that a peer accepts nothing of what it is sent before this is shown; a busy peer catches up within them."""

ADVICE = {
    Failure.UNREACHABLE: "Check that the peer runs and that its address is right. Delivery is retried automatically.",
    Failure.BUSY: "No action is needed: delivery is retried at the time that the peer asked for. To retry now: herald "
    "peer retry NAME",
    Failure.REFUSED: "Ask its administrator to approve or resume this domain, then: herald peer retry NAME",
    Failure.INVALID: "Compare clocks, versions and fingerprints with its administrator, then: herald peer retry NAME",
    Standstill.PAUSED: "Ask its administrator for the reason. Waiting events are sent when the pause ends; to send "
    "them sooner: herald peer retry NAME",
    Standstill.NOT_TAKING: "Ask its administrator to check the peer's log for this domain's events. The events wait "
    "here while the histories hold them.",
}
"""Advice to an administrator for each failure and standstill; NAME is the peer's name."""


@dataclass(frozen=True, slots=True)
class PeerStanding:
    """State of a peer beside its failures; times in Unix seconds, None for none.

    Attributes:
        request_at: time of its last request.
        answer_at: time of its last answer to a request of this domain.
        paused_since, paused_until: the pause that it asked for.
        untaken_since: since when it has accepted nothing of what it was sent.
    """

    request_at: float | None = None
    answer_at: float | None = None
    paused_since: float | None = None
    paused_until: float | None = None
    untaken_since: float | None = None

    def standstill(self, backlog: int, now: float) -> Standstill | None:
        """Return why the peer receives nothing although no request fails; None for no standstill."""
        if self.paused_until is not None and self.paused_until > now:
            return Standstill.PAUSED
        if backlog and self.untaken_since is not None and now - self.untaken_since >= UNTAKEN_SHOWN_S:
            return Standstill.NOT_TAKING
        return None

    def span(self, standstill: Standstill) -> tuple[float | None, float | None]:
        """Return start and end of the standstill."""
        if standstill is Standstill.PAUSED:
            return self.paused_since, self.paused_until
        return self.untaken_since, None

    def detail(self, standstill: Standstill) -> str:
        """Return the standstill as a sentence."""
        if standstill is Standstill.PAUSED:
            asked_s = (self.paused_until or 0.0) - (self.paused_since or 0.0)
            return f"The peer asked for a pause of {asked_s:.0f} s."
        return "The peer answers, but accepts nothing of what it is sent."


def pause_s(failures: int, retry_after_s: float | None, jitter: float) -> float:
    """Return the seconds until the next attempt.

    Args:
        failures: consecutive failures, this one included; at least 1.
        retry_after_s: the pause that the peer asked for; honoured up to RETRY_AFTER_S_MAX.
        jitter: random, 0 to 1, so that peers that failed together are not retried together.
    """
    backoff_s: float = min(PAUSE_S * 2.0 ** min(failures - 1, _DOUBLINGS_MAX), PAUSE_S_MAX)
    spread_s = backoff_s * (0.5 + jitter / 2)
    return spread_s if retry_after_s is None else max(spread_s, min(max(retry_after_s, 0.0), RETRY_AFTER_S_MAX))
