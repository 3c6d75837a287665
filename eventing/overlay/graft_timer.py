"""Part of a link: the timer that waits for announced runs, and asks for those that have not arrived by then. Pure.

The timer learns its duration from runs that arrived without a graft (`patience_s`). On a busy machine runs take about as long
as vectors, and every early graft causes redundant copies: 0.02 to 0.14 per event in a live ring.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from eventing.core.events import vectors
from eventing.core.events.vectors import Vector
from eventing.overlay.feed_tree import FeedTree, ReceivedFeeds

GRAFT_S = 0.5  # least time for announced runs to arrive by another link (guess: ten hops of 50 ms)
PATIENCE_S_MAX = 8.0  # and the most, after grafts that were too early (guess)
PATIENCE_MARGIN = 2.0  # factor on the longest observed delay of runs that arrived without a graft
PATIENCE_HALF_S = 60.0  # half-life of a link's learned patience
# Longest delay to learn from. Beyond it the carrier is not slow, but catches up, or waits for a graft of its own: learned, one repair of a
# tree would make all below it wait longer at the next (simulated: the last of 10,000 domains after 21 s; 1,000 domains: 3.9 s, not 7.3).
LATE_S_MAX = 1.0
EAGER_PATIENCE = 3.0  # factor for feeds that were not pruned: they are on their way, unless the peer is wrong
EAGER_S_MAX = 3.0  # and the most for those, where the link's patience is not longer: they may also be on no way (guess)
GRAFT_S_MAX = 30.0  # bound: seconds to wait for an announced run; the peer is asked for the run again
# 10 to 20 s; the peer claims events that it does not hold.
GRAFTS_FUTILE = 4  # bound: grafts without a result; the vector counts as `false-vector`


class GraftTimer(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The timer of one link.

    Attributes:
        awaited: what the peer held and this replica lacked when the timer was started: by feed, the last sequence.
        awaited_at: since when: when it was started, or when some of that was announced, while it ran for something else.
        ask_at: when to ask for that, unless it has arrived by then; None: nothing is lacking.
        asked: number of requests for runs since the last run from the peer.
        grafting: whether the next message asks for runs.
        patience_s: time to wait for runs that the peer's vectors announce, before jitter: twice the longest observed
            delay (up to LATE_S_MAX) of such runs without a graft, and doubled when a graft was too early, because the runs arrived by
            another link all the same. It shrinks again over time.
        late_s: delay after which some of what is awaited, not grafted by a timer, was last observed to be lacking.
        later_at: since when the peer holds more that is lacking, which is awaited next; 0: it holds no more.
    """

    awaited: dict[str, int] = {}
    awaited_at: float = 0.0
    ask_at: float | None = None
    asked: int = 0
    grafting: bool = False
    patience_s: float = GRAFT_S
    late_s: float = 0.0
    later_at: float = 0.0


IDLE = GraftTimer()


class TimerDue(NamedTuple):
    """Result of a timer that may have ended: the timer, and the feeds to graft, None where it continues to wait."""

    timer: GraftTimer
    wanted: frozenset[str] | None = None


def ahead(theirs: Vector, ours: Vector) -> dict[str, int]:
    """Return what a peer holds and this replica lacks: by feed, the last sequence."""
    if theirs == ours:
        return {}
    return {feed: last for feed, last in theirs.items() if last > ours.get(feed, 0)}


def timer_on_message(
    timer: GraftTimer,
    tree: FeedTree,
    theirs: Vector,
    ours: Vector,
    *,
    received: ReceivedFeeds,
    answers: bool,
    idle_s: float,
    now: float,
    jitter: float,
) -> GraftTimer:
    """Update the timer after a message: it stops when what is awaited has arrived, and starts if the peer holds more.

    Args:
        tree: the link's tree before the message.
        theirs: the peer's vector after it.
        idle_s: seconds since the peer's last message, by which the learned patience shrinks.
    """
    ask_at, asked, awaited_at, late_s = timer.ask_at, timer.asked, timer.awaited_at, timer.late_s
    awaited: dict[str, int] = {}
    if timer.awaited:
        awaited = {feed: min(last, theirs.get(feed, 0)) for feed, last in timer.awaited.items()}
    if ask_at is not None and not tree.grafted.issuperset(ahead(awaited, ours)):
        late_s = now - awaited_at
        if late_s > LATE_S_MAX:
            late_s = 0.0
    patience_s = _patience_s(timer, tree, ours, received.known)
    if patience_s > GRAFT_S:
        patience_s = max(patience_s * 0.5 ** (max(0.0, idle_s) / PATIENCE_HALF_S), GRAFT_S)
    if received.new:
        asked = 0
    if ask_at is not None and vectors.covers(ours, awaited):
        ask_at, asked = None, 0
    if ask_at is None:
        awaited = ahead(theirs, ours)
        awaited_at, ask_at = _begun(timer, awaited, patience_s, now, jitter)
        late_s = later_at = 0.0
    else:
        more = any(last > awaited.get(feed, 0) and last > ours.get(feed, 0) for feed, last in theirs.items())
        later_at = (timer.later_at or now) if more else 0.0
    if received.refused and not received.new and ask_at is not None:
        # The peer has what it claims, but it is not wanted here, not yet.
        ask_at, asked = now + GRAFT_S_MAX * (1 + jitter), 0
    return GraftTimer(awaited, awaited_at, ask_at, asked, timer.grafting and not answers, patience_s, late_s, later_at)


def _begun(
    timer: GraftTimer, awaited: Vector, patience_s: float, now: float, jitter: float
) -> tuple[float, float | None]:
    """Return since when this is awaited, and when to ask for it: what was announced while the timer ran for something else has waited
    since then, or events of several feeds that no link sends would be asked for one after the other.
    """
    since = timer.later_at or now
    return since, max(since + patience_s * (1 + jitter), now + GRAFT_S) if awaited else None


def timer_due(
    timer: GraftTimer,
    tree: FeedTree,
    theirs: Vector,
    ours: Vector,
    *,
    now: float,
    jitter: float,
    gone: Vector | None,
    elsewhere: frozenset[str] = frozenset(),
) -> TimerDue:
    """Handle the end of the timer: the feeds to graft are those that are still lacking.

    Feeds that are not pruned here are sent by the peer anyway, and would be sent twice if asked for: they get more time.
    The timer is set anew whenever it has ended, or a later vector would never graft again (iroh-gossip b65cdce).

    Args:
        gone, elsewhere: as of `broadcast.due`.
    """
    if vectors.covers(ours, timer.awaited):
        awaited = ahead(theirs, ours)
        patience_s = _patience_s(timer, tree, ours, frozenset())
        since, ask_at = _begun(timer, awaited, patience_s, now, jitter)
        return TimerDue(GraftTimer(awaited, since, ask_at, 0, timer.grafting, patience_s))
    eager_at = timer.awaited_at + max(timer.patience_s, min(EAGER_PATIENCE * timer.patience_s, EAGER_S_MAX))
    lacking = frozenset(ahead(timer.awaited, ours))
    wanted = lacking if timer.asked or now >= eager_at else lacking & tree.pruned
    if not wanted:
        return TimerDue(msgspec.structs.replace(timer, ask_at=eager_at + timer.patience_s * jitter))
    if elsewhere:
        wanted -= elsewhere
        if not wanted:
            return TimerDue(msgspec.structs.replace(timer, ask_at=now + timer.patience_s * (0.5 + jitter)))
    asked = timer.asked + 1
    if asked >= GRAFTS_FUTILE and gone and vectors.covers(vectors.merged(ours, gone), timer.awaited):
        return TimerDue(msgspec.structs.replace(timer, ask_at=None))
    ask_at = now + min(timer.patience_s * 2**asked, GRAFT_S_MAX) * (1 + jitter)
    return TimerDue(msgspec.structs.replace(timer, asked=asked, ask_at=ask_at, grafting=True, late_s=0.0), wanted)


def timer_too_early(timer: GraftTimer) -> GraftTimer:
    """Wait longer from now on: a graft was too early."""
    return msgspec.structs.replace(timer, patience_s=min(2 * timer.patience_s, PATIENCE_S_MAX))


def _patience_s(timer: GraftTimer, tree: FeedTree, ours: Vector, known: frozenset[str]) -> float:
    """Compute the new patience: longer if a run arrived by another link before a timer's graft delivered it, and long
    enough for the last run that arrived without a graft."""
    if not tree.grafted.isdisjoint(known):
        return min(2 * timer.patience_s, PATIENCE_S_MAX)
    if timer.awaited and not timer.asked and vectors.covers(ours, timer.awaited):
        return min(max(timer.patience_s, PATIENCE_MARGIN * timer.late_s), PATIENCE_S_MAX)
    return timer.patience_s
