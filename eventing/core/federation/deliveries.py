"""Deliveries: what failed at a peer, which failures are tried again, and when. Pure.

(none) --fails--> retrying --succeeds--> (none)          unreachable, busy: after a pause that doubles, with jitter
(none) --fails--> stopped  --resumed--> (none)           refused, invalid: until an administrator or the peer changes
                                                         something; a refused one is probed when the peer speaks to us
"""

from __future__ import annotations

from enum import StrEnum

PAUSE_S = 0.5  # the first; doubled each time
PAUSE_S_MAX = 60.0
RETRY_AFTER_S_MAX = 3600.0  # whatever a peer asks, it is tried again within the hour
DETAIL_CHARS_MAX = 255
_DOUBLINGS_MAX = 10  # PAUSE_S_MAX is reached long before


class Failure(StrEnum):
    """What went wrong; the same words as federation/client.py: PeerError."""

    UNREACHABLE = "unreachable"  # no connection, no answer in time, or a 5xx of something in between
    BUSY = "busy"  # it asks us to come later
    REFUSED = "refused"  # it does not take us for a peer (any more, or yet)
    INVALID = "invalid"  # it, or we, do not understand or believe the other: keys, signatures, formats


STOPS = frozenset({Failure.REFUSED, Failure.INVALID})
PROBED = frozenset({Failure.UNREACHABLE, Failure.REFUSED})
"""Failures that contact by the peer casts doubt on: one request is tried at once, and it alone clears them."""


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
