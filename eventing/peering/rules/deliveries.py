"""Deliveries: what failed at a peer, which failures are tried again, and when. Pure.

(none) --fails--> retrying --succeeds--> (none)          unreachable, busy: after a pause that doubles, with jitter
(none) --fails--> stopped  --resumed--> (none)           refused, invalid: until an administrator or the peer changes
                                                         something; a refused one is probed when the peer speaks to us
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PAUSE_S = 0.5  # the first; doubled each time
PAUSE_S_MAX = 60.0
RETRY_AFTER_S_MAX = 3600.0  # whatever a peer asks, it is tried again within the hour
DETAIL_CHARS_MAX = 255
_DOUBLINGS_MAX = 10  # PAUSE_S_MAX is reached long before


class Failure(StrEnum):
    """What went wrong; the same words as peering/wire/client.py: PeerError."""

    UNREACHABLE = "unreachable"  # no connection, no answer in time, or a 5xx of something in between
    BUSY = "busy"  # it asks us to come later
    REFUSED = "refused"  # it does not take us for a peer (any more, or yet)
    INVALID = "invalid"  # it, or we, do not understand or believe the other: keys, signatures, formats


STOPS = frozenset({Failure.REFUSED, Failure.INVALID})
PROBED = frozenset({Failure.UNREACHABLE, Failure.REFUSED})
"""Failures that contact by the peer casts doubt on: one request is tried at once, and it alone clears them."""


class Standstill(StrEnum):
    """Why nothing arrives at a peer although no request fails."""

    PAUSED = "paused"  # it asked to be sent nothing for a while
    NOT_TAKING = "not-taking"  # it answers, and its vector covers nothing of what it was sent


UNTAKEN_SHOWN_S = 10.0
"""Seconds that a peer takes nothing of what it is sent before that is shown: one that is busy catches up by then."""

ADVICE = {
    Failure.UNREACHABLE: "Check that it runs and that its address is right. It is tried again by itself.",
    Failure.BUSY: "Nothing has to be done: it is tried again when it said. To try now: herald peer retry NAME",
    Failure.REFUSED: "Ask its administrator to approve or resume this domain, then: herald peer retry NAME",
    Failure.INVALID: "Compare clocks, versions and fingerprints with its administrator, then: herald peer retry NAME",
    Standstill.PAUSED: "Ask its administrator why. It is sent what waits when the pause ends; sooner by: herald peer retry NAME",
    Standstill.NOT_TAKING: "Ask its administrator what its log says of this domain's events. They wait here as long as histories "
    "hold them.",
}
"""What an administrator does about each; NAME is the peer's."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a peer beside its failures; times in Unix seconds, None for none.

    Attributes:
        request_at: when its last request came.
        answer_at: when it last answered a request of this domain.
        paused_since, paused_until: the pause that it asked for.
        untaken_since: since when it has taken nothing of what it was sent.
    """

    request_at: float | None = None
    answer_at: float | None = None
    paused_since: float | None = None
    paused_until: float | None = None
    untaken_since: float | None = None

    def standstill(self, backlog: int, now: float) -> Standstill | None:
        """Why nothing arrives at the peer although no request fails; None where that is not so."""
        if self.paused_until is not None and self.paused_until > now:
            return Standstill.PAUSED
        if backlog and self.untaken_since is not None and now - self.untaken_since >= UNTAKEN_SHOWN_S:
            return Standstill.NOT_TAKING
        return None

    def span(self, standstill: Standstill) -> tuple[float | None, float | None]:
        """Since when that is so, and until when."""
        if standstill is Standstill.PAUSED:
            return self.paused_since, self.paused_until
        return self.untaken_since, None

    def detail(self, standstill: Standstill) -> str:
        """The same in a sentence."""
        if standstill is Standstill.PAUSED:
            asked_s = (self.paused_until or 0.0) - (self.paused_since or 0.0)
            return f"It asked to be sent nothing for {asked_s:.0f} s."
        return "It answers, and takes nothing of what it is sent."


def pause_s(failures: int, retry_after_s: float | None, jitter: float) -> float:
    """Seconds until the next try.

    Args:
        failures: in a row, this one counted; at least 1.
        retry_after_s: what the peer asked for; honoured, within RETRY_AFTER_S_MAX.
        jitter: 0 to 1, chance: peers that failed together do not come back together.
    """
    backoff_s: float = min(PAUSE_S * 2.0 ** min(failures - 1, _DOUBLINGS_MAX), PAUSE_S_MAX)
    spread_s = backoff_s * (0.5 + jitter / 2)
    return spread_s if retry_after_s is None else max(spread_s, min(max(retry_after_s, 0.0), RETRY_AFTER_S_MAX))
