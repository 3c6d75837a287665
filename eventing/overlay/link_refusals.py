"""Part of a link: what is not sent for a while, because the peer refused it or because it cannot be sent. Pure.

Each pause is twice as long as the one before, up to a bound, and ends early when the peer asks for the feed.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from eventing.core.events.vectors import Vector

DEAF_S = 0.5  # a feed of which the peer took nothing is sent again after this, doubled each time
DEAF_S_MAX = 60.0  # bound: seconds that a feed refused by a peer is not sent; the feed is tried again
SHUT_S = 0.5  # a peer that refused the RP as a whole is sent it again after this, doubled each time, or when it mentions the RP
SHUT_S_MAX = 60.0


class LinkRefusals(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The pauses of one link.

    Attributes:
        deaf: feeds that the peer refuses (it does not admit their origin, or lacks events before): until when they are
            not sent, and how often that happened.
        unsendable: feeds with events that the peer lacks and that cannot be sent from here: until when that is assumed,
            how often it was found, and up to which sequence.
        shut_until: until when nothing of the RP is sent, because the peer refused it.
        count: refusals of the RP as a whole, in a row.
    """

    deaf: dict[str, tuple[float, int]] = {}
    unsendable: dict[str, tuple[float, int, int]] = {}
    shut_until: float = 0.0
    count: int = 0


NOTHING_REFUSED = LinkRefusals()


def refusals_on_message(refusals: LinkRefusals, theirs: Vector, graft: frozenset[str]) -> LinkRefusals:
    """End pauses after a message: the peer mentions the RP, wants feeds, or has got what could not be sent from here."""
    if refusals == NOTHING_REFUSED:
        return NOTHING_REFUSED
    deaf = {feed: until for feed, until in refusals.deaf.items() if feed not in graft}
    unsendable = {
        feed: left for feed, left in refusals.unsendable.items() if feed not in graft and theirs.get(feed, 0) < left[2]
    }
    return LinkRefusals(deaf, unsendable)


def refusals_shut(refusals: LinkRefusals, now: float) -> LinkRefusals:
    """Pause the whole RP."""
    pause_s = min(SHUT_S * 2.0 ** min(refusals.count, 10), SHUT_S_MAX)
    return LinkRefusals(refusals.deaf, refusals.unsendable, now + pause_s, refusals.count + 1)


def refusals_on_sent(
    before: LinkRefusals,
    after: LinkRefusals,
    sent: Mapping[str, int],
    theirs_before: Vector,
    theirs: Vector,
    now: float,
) -> LinkRefusals:
    """Pause the feeds that were sent and refused completely; end the pause of those that were taken."""
    refused = [feed for feed in sent if theirs.get(feed, 0) <= theirs_before.get(feed, 0)]
    if not refused and (not after.deaf or after.deaf.keys().isdisjoint(sent)):
        return after
    deaf = {feed: entry for feed, entry in after.deaf.items() if feed not in sent}
    for feed in refused:
        times = before.deaf.get(feed, (0.0, 0))[1] + 1
        deaf[feed] = (now + min(DEAF_S * 2 ** (times - 1), DEAF_S_MAX), times)
    return LinkRefusals(deaf, after.unsendable, after.shut_until, after.count)


def refusals_unsendable(refusals: LinkRefusals, upto: Mapping[str, int], now: float) -> LinkRefusals:
    """Pause events that have left the history or have passed as many domains as allowed; later events are sent."""
    left = dict(refusals.unsendable)
    for feed, last in upto.items():
        until, times, before = left.get(feed, (0.0, 0, 0))
        if now >= until:
            until, times = now + min(DEAF_S * 2 ** min(times, 10), DEAF_S_MAX), times + 1
        left[feed] = (until, times, max(last, before))
    return LinkRefusals(refusals.deaf, left, refusals.shut_until, refusals.count)


def refusals_cover(refusals: LinkRefusals, feed_key: str, last: int, now: float) -> bool:
    """Return True if a feed is not sent now up to this sequence."""
    deaf, left = refusals.deaf.get(feed_key), refusals.unsendable.get(feed_key)
    return (deaf is not None and now < deaf[0]) or (left is not None and now < left[0] and last <= left[2])


def refusals_until(refusals: LinkRefusals) -> list[float]:
    """Return the ends of all pauses."""
    times = [until for until, _ in refusals.deaf.values()]
    times += [until for until, _, _ in refusals.unsendable.values()]
    return [*times, refusals.shut_until] if refusals.shut_until else times
