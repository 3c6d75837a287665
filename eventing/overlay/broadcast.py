"""Links: the state of a replica of an RP towards a peer's replica, and the choice of the next message. Pure; Plumtree
per (peer, RP).

Every pair of peered replicas has a link. Where it is eager, runs are sent to the peer as they are stored; where it is
lazy, only vectors (Plumtree's IHAVE). A run that was received twice prunes the link of its second copy, so that the
eager links become a tree. A vector that shows more than is held here starts a timer; if the timer ends before the runs
are received, the link is grafted: made eager, and its peer is asked (J. Leitao, J. Pereira, L. Rodrigues: Epidemic
Broadcast Trees, SRDS 2007, sections 3.6 to 3.8). A link is eager or lazy per feed, which makes a tree per origin: in
one tree for all, origins that publish at once cut a circle at several places, graft it again, and never converge
(observed in tests/overlay/test_convergence.py: 0.86 redundant copies per event, against below 0.05). Whatever is eager,
vectors decide what is sent: a peer is never sent what it has stated to hold, so catching up after a partition is the
same operation as live forwarding.

    said(link, have)   a message of the peer begins     -> the link, before anything of the message is in the log
    heard(link, ...)   the message is processed         -> the link, the answer's content, whether there is something to send
    due(link, ...)     its timer may have ended         -> the link, whether to ask
    plan(link, ours)   there is time to send            -> runs (`wanting` and `within` select them), a vector, or nothing
    told(link, ...)    the peer answered a request      -> the link; feeds that it refuses are put off, longer each time

Sending and receiving run concurrently, in several processes, and neither is atomic. So their steps have an order:

    receiving   `on_vector` and `carried`, written; then the runs into the log; then `on_message`, written
    sending     our vector from the log; then the link; then the runs, `within` that vector only

Every run in the vector used for sending was then preceded, in the link, by the vector of its carrier; runs received
later are left for the next request, when the link includes their carrier. In any other order runs return to their
senders, and on pruned links: 0.6 redundant copies per event in the live domains, and in test_convergence.py, whose
world takes the same steps one by one.

A link learns the duration of its timer from runs that arrived without a graft (`patience_s`). On a busy machine runs
take about as long as vectors, and every early graft causes redundant copies: 0.02 to 0.14 per event in a live ring.

Time is an argument, in seconds of any clock that all callers share; so is randomness (`jitter`, 0 to 1). Timers are
data: late, repeated and lost ones are harmless, because the next vector starts them anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.events import vectors
from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.events.vectors import SEQUENCE_MAX, Vector
from eventing.overlay.exchange import FeedGap

GRAFT_S = 0.5  # least time for announced runs to arrive by another link (guess: ten hops of 50 ms)
PATIENCE_S_MAX = 8.0  # and the most, where runs were observed to take longer (guess)
PATIENCE_MARGIN = 2.0  # factor on the longest observed delay of runs that arrived without a graft
PATIENCE_HALF_S = 60.0  # half-life of a link's learned patience
LATE_S_MAX = 2.0  # longest delay to learn from: beyond it the carrier is catching up, not slow
EAGER_PATIENCE = 3.0  # factor for feeds that were not pruned: they are on their way, unless the peer is wrong
# bound: seconds that a carrier's paths are ignored after a false one; paths of the carrier are used again
PATHS_DOUBTED_S = 600.0
PRESUMED_S = 5.0  # after this a peer that a run passed through has confirmed to hold it, in all but rare cases
# bound: seconds after contact with a peer; the peer is asked once more what it holds
CONFIRM_S = 30.0  # requests of an earlier life of this domain have been processed everywhere by then: several times a request's timeout
GRAFT_S_MAX = 30.0  # bound: seconds to wait for an announced run; the peer is asked for the run again
# 10 to 20 s; the peer claims events that it does not hold.
GRAFTS_FUTILE = 4  # bound: grafts without a result; the vector counts as `false-vector`
DEAF_S = 0.5  # a feed of which the peer took nothing is sent again after this, doubled each time
DEAF_S_MAX = 60.0  # bound: seconds that a feed refused by a peer is not sent; the feed is tried again
SHUT_S = 0.5  # a peer that refused the RP as a whole is sent it again after this, doubled each time, or when it mentions the RP
SHUT_S_MAX = 60.0
# bound: feeds of an RP that a peer is recorded to hold; feeds neither held here, nor in the peer's last vector, nor awaited are discarded
# FEEDS_MAX held here, as many in the peer's last vector, as many awaited.
THEIRS_MAX = 192
FORMAT = 1


class Link(msgspec.Struct, array_like=True, frozen=True):
    """The state of one link.

    Attributes:
        format: format of this state in storage.
        lazy: feeds that the peer pruned, so that it is sent vectors only; all others are eager.
        pruned: feeds that this replica pruned: they arrive by another link.
        theirs: the peer's vector, as it stated last; THEIRS_MAX feeds at most.
        met: whether the peer has sent any vector of this RP yet.
        awaited: what the peer held and this replica lacked when the timer was started: by feed, the last sequence.
        ask_at: when to ask for that, unless it has arrived by then; None: nothing is lacking.
        asked: number of requests for runs since the last run from the peer.
        grafting: whether the next message asks for runs.
        deaf: feeds that the peer refuses (it does not admit their origin, or lacks events before): until when they are
            not sent, and how often that happened.
        shut_until: until when nothing of the RP is sent, because the peer refused it.
        refusals: of the RP as a whole, in a row.
        received_at: when the peer last sent a message about the RP.
        patience_s: time to wait for runs that its vectors announce, before jitter: twice the longest observed delay of
            such runs without a graft, and doubled when a graft was too early, because the runs arrived by another link
            all the same. It shrinks again over time.
        grafted: feeds that a timer grafted and that have not since arrived by another link.
        presumed: what the peer must hold because runs passed through it, beyond its own statement.
        ask_presumed_at: when to ask for confirmation of that, unless the peer has confirmed it by then; None: nothing
            is presumed.
        awaited_at: when the timer was started for what is awaited.
        late_s: delay after which some of it, not grafted by a timer, was last observed to be lacking.
        confirm_at: when to ask the peer once more, because its first vector may have been incomplete: if this domain
            lost its data, runs sent before could still have been on their way to the peer. The peer then assumes that
            they are held here, and without new events neither side would notice. None: confirmed since.
        unsendable: feeds with events that the peer lacks and that cannot be sent from here: until when that is assumed,
            how often it was found, and up to which sequence.
        met_at: when `met` became true.
        presumed_by: for each feed of `presumed`, the peer that brought the run whose path names this one.
        paths_doubted_until: until when paths stated by this peer presume nothing about other peers.
    """

    format: int = FORMAT
    lazy: frozenset[str] = frozenset()
    pruned: frozenset[str] = frozenset()
    theirs: dict[str, int] = {}
    met: bool = False
    awaited: dict[str, int] = {}
    ask_at: float | None = None
    asked: int = 0
    grafting: bool = False
    deaf: dict[str, tuple[float, int]] = {}
    shut_until: float = 0.0
    refusals: int = 0
    received_at: float = 0.0
    patience_s: float = GRAFT_S
    grafted: frozenset[str] = frozenset()
    presumed: dict[str, int] = {}
    ask_presumed_at: float | None = None
    awaited_at: float = 0.0
    late_s: float = 0.0
    confirm_at: float | None = None
    unsendable: dict[str, tuple[float, int, int]] = {}
    met_at: float = 0.0
    presumed_by: dict[str, str] = {}
    paths_doubted_until: float = 0.0


class ReceivedFeeds(NamedTuple):
    """Results of the runs of one message, as feed keys.

    Attributes:
        new: runs with new events.
        known: runs that were already held.
        redundant: known runs that had arrived by a link that still delivers the feed (according to `feeds`): this link
            is redundant.
        holes: runs after events that are missing here.
        refused: runs not admitted or invalid.
    """

    new: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    redundant: frozenset[str] = frozenset()
    holes: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()


class MessageOutcome(NamedTuple):
    """Result of a message: the link, and the feeds to graft and to prune by the answer.

    `mistaken`: peers that brought runs whose paths name this one, which does not hold them.
    """

    link: Link
    graft: frozenset[str]
    prune: frozenset[str]
    mistaken: frozenset[str] = frozenset()


class LinkDue(NamedTuple):
    """Result of a timer: the link, whether to ask the peer now, and whether it was asked in vain for too long."""

    link: Link
    ask: bool
    futile: bool


class LinkPlan(Enum):
    """Next message on a link."""

    NOTHING = 0
    VECTOR = 1
    RUNS = 2


NEW = Link()
NOTHING_RECEIVED = ReceivedFeeds()


def on_vector(link: Link, have: Vector) -> Link:
    """Update the link when a message with the peer's vector begins: events in that vector are not sent to the peer meanwhile."""
    if not link.met or vectors.covers(link.theirs, have):
        return link  # an unmet peer is sent nothing anyway, and `on_message` takes its first vector
    return msgspec.structs.replace(link, theirs=_bounded(vectors.merged(link.theirs, have), have, link.awaited))


def on_message(
    link: Link,
    have: Vector,
    *,
    ours: Vector,
    now: float,
    jitter: float,
    received: ReceivedFeeds = NOTHING_RECEIVED,
    graft: Iterable[str] = (),
    prune: Iterable[str] = (),
    answers: bool = False,
    shown: bool = True,
) -> MessageOutcome:
    """Process a peer's message about the RP.

    Args:
        have: the peer's vector, as stated.
        ours: own vector, including the runs of this message.
        received: results of these runs.
        graft, prune: the feeds that the peer wants by this link from now on, and those that it receives by another.
        answers: whether the message answers a request of this domain.
        shown: False for a request that claims more of the own feed than was sealed, without the seal: its vector does
            not make the link met, so that the peer is asked, and its answer does.

    Requests and answers of both sides may cross, so a vector that shows less than known before is usually an older one.
    It proves a loss at the peer only for feeds that the peer grafts, or for which the peer was just asked; where the
    link is in doubt (`doubted`), only an answer proves it.

    The stored vector is bounded: beyond THEIRS_MAX feeds, which no honest peer reaches, feeds that are neither held
    here nor in `have` are dropped. Awaited feeds are dropped last, so that a peer that keeps claiming new feeds is
    still asked for them and detected.
    """
    grafted = frozenset(graft)
    anew = not link.met and (answers or (shown and not link.theirs))
    theirs = dict(have) if anew else vectors.merged(link.theirs, have)
    asked_for = link.awaited if answers and link.grafting else ()
    theirs.update({feed: have.get(feed, 0) for feed in (*grafted, *asked_for) if feed in theirs})
    theirs = _bounded(theirs, ours, have, link.awaited)
    lazy = (link.lazy | frozenset(prune)) - grafted
    # A feed that arrives although it was pruned is pruned again: the answer with the prune was lost, or is still on its
    # way.
    again = link.pruned & (received.new | received.known)
    pruned = (link.pruned | received.redundant) - received.holes
    awaited = {feed: min(last, theirs.get(feed, 0)) for feed, last in link.awaited.items()}
    ask_at, asked = link.ask_at, link.asked
    awaited_at, late_s = link.awaited_at, link.late_s
    if ask_at is not None and vectors.lacking(ours, awaited).keys() - link.grafted:
        late_s = min(now - awaited_at, LATE_S_MAX)
    patience_s = max(
        _patience_s(link, ours, received) * 0.5 ** (max(0.0, now - link.received_at) / PATIENCE_HALF_S), GRAFT_S
    )
    if received.new:
        asked = 0
    if ask_at is not None and vectors.covers(ours, awaited):
        ask_at, asked = None, 0
    if ask_at is None:
        awaited = _ahead(theirs, ours)
        ask_at = now + patience_s * (1 + jitter) if awaited else None
        awaited_at, late_s = now, 0.0
    if received.refused and not received.new and ask_at is not None:
        ask_at, asked = (
            now + GRAFT_S_MAX * (1 + jitter),
            0,
        )  # the peer has what it claims, but it is not wanted here, not yet
    deaf = {feed: until for feed, until in link.deaf.items() if feed not in grafted}
    unsendable = {
        feed: left for feed, left in link.unsendable.items() if feed not in grafted and theirs.get(feed, 0) < left[2]
    }
    # The answer states what the peer was asked about, and grafted feeds are lacking there, whatever passing runs
    # suggested.
    answered = answers and link.ask_presumed_at is not None and now >= link.ask_presumed_at
    mistaken = [link.presumed_by.get(f, "") for f, n in link.presumed.items() if answered and theirs.get(f, 0) < n]
    presumed = {} if answered else {f: n for f, n in link.presumed.items() if theirs.get(f, 0) < n and f not in grafted}
    confirmed = answers and link.confirm_at is not None and now >= link.confirm_at
    confirm_at = now + CONFIRM_S if anew else None if confirmed else link.confirm_at
    changed = Link(
        FORMAT,
        frozenset(sorted(lazy)[:FEEDS_MAX]),
        pruned,
        theirs,
        link.met or anew,
        awaited,
        ask_at,
        asked,
        link.grafting and not answers,
        deaf,
        received_at=now,
        patience_s=patience_s,
        grafted=(link.grafted - received.known) & (theirs.keys() | ours.keys()),
        presumed=presumed,
        ask_presumed_at=link.ask_presumed_at if presumed else None,
        awaited_at=awaited_at,
        late_s=late_s,
        confirm_at=confirm_at,
        unsendable=unsendable,
        met_at=now if anew else link.met_at,
        presumed_by={feed: by for feed, by in link.presumed_by.items() if feed in presumed},
        paths_doubted_until=link.paths_doubted_until,
    )
    return MessageOutcome(
        changed, received.holes, (again | received.redundant) - received.holes, frozenset(filter(None, mistaken))
    )


def _bounded(theirs: dict[str, int], *first: Iterable[str]) -> dict[str, int]:
    """Bound a vector to THEIRS_MAX feeds: those of `first` before the others."""
    if len(theirs) <= THEIRS_MAX:
        return theirs
    wanted = dict.fromkeys(feed for feeds in (*first, sorted(theirs)) for feed in feeds if feed in theirs)
    return {feed: theirs[feed] for feed in list(wanted)[:THEIRS_MAX]}


def _patience_s(link: Link, ours: Vector, received: ReceivedFeeds) -> float:
    """Compute the link's new patience: longer if a run arrived by another link before a timer's graft delivered it, and
    long enough for the last run that arrived without a graft."""
    if link.grafted & received.known:
        return min(2 * link.patience_s, PATIENCE_S_MAX)
    if link.awaited and not link.asked and vectors.covers(ours, link.awaited):
        return min(max(link.patience_s, PATIENCE_MARGIN * link.late_s), PATIENCE_S_MAX)
    return link.patience_s


def early(carrier: Link, feed_key: str) -> Link:
    """Update the link by which a run had arrived, when a copy arrives by another: if a timer had grafted it, the graft
    was too early."""
    if feed_key not in carrier.grafted:
        return carrier
    patience_s = min(2 * carrier.patience_s, PATIENCE_S_MAX)
    return msgspec.structs.replace(carrier, grafted=carrier.grafted - {feed_key}, patience_s=patience_s)


def feeds(carrier: Link, feed_key: str) -> bool:
    """Return True if the peer of this link, by which a run had arrived, can be relied on for the feed: it is not pruned there."""
    return feed_key not in carrier.pruned


def on_sent(before: Link, after: Link, sent: Mapping[str, int], *, now: float, refused: bool = False) -> Link:
    """Update the link after the peer's answer: feeds that were sent and refused completely are put off.

    Args:
        before, after: the link when the request was sent, and after `on_message` of the answer.
        sent: last sequence of each feed sent.
        refused: whether the peer refused the RP as a whole.
    """
    if refused:
        pause_s = min(SHUT_S * 2.0 ** min(after.refusals, 10), SHUT_S_MAX)
        return msgspec.structs.replace(after, shut_until=now + pause_s, refusals=after.refusals + 1)
    deaf = {feed: entry for feed, entry in after.deaf.items() if feed not in sent}
    for feed in sent:
        if after.theirs.get(feed, 0) <= before.theirs.get(feed, 0):
            times = before.deaf.get(feed, (0.0, 0))[1] + 1
            deaf[feed] = (now + min(DEAF_S * 2 ** (times - 1), DEAF_S_MAX), times)
    return after if deaf == after.deaf else msgspec.structs.replace(after, deaf=deaf)


def unsendable(link: Link, upto: Mapping[str, int], *, now: float) -> Link:
    """Update the link when nothing of these feeds up to these sequences can be sent, though the peer lacks it: the
    events have left the history, or have passed as many domains as allowed. They are left out for a while, longer each
    time, and later events are sent."""
    left = dict(link.unsendable)
    for feed, last in upto.items():
        until, times, before = left.get(feed, (0.0, 0, 0))
        if now >= until:
            until, times = now + min(DEAF_S * 2 ** min(times, 10), DEAF_S_MAX), times + 1
        left[feed] = (until, times, max(last, before))
    return msgspec.structs.replace(link, unsendable=left)


def assumed(link: Link, before: Link, sent: Mapping[str, int]) -> Link:
    """Predict the link after complete acceptance of the request in progress, as basis of the next request.

    Args:
        link: present link.
        before: link when that request was built: its questions are not repeated.
        sent: last sequence of each feed sent.
    """
    return msgspec.structs.replace(
        link,
        theirs=vectors.merged(link.theirs, sent),
        grafting=link.grafting and not before.grafting,
        ask_presumed_at=None if before.ask_presumed_at is not None else link.ask_presumed_at,
        confirm_at=None if before.confirm_at is not None else link.confirm_at,
    )


def as_assumed(link: Link, before: Link, sent: Mapping[str, int], *, now: float) -> bool:
    """Return True if a request built on a predicted link may still be sent, given the link after the peer's answer.

    Args:
        before: the predicted link.
        sent: last sequence of each feed to be sent.
    """
    taken = link.met and now >= link.shut_until and vectors.covers(link.theirs, before.theirs)
    return taken and link.lazy.isdisjoint(sent)


def carried(link: Link, feed_key: str, last: int, *, now: float, by: str = "") -> Link:
    """Update the link when a run from another peer has passed through this one, which is then presumed to hold the feed
    up to there.

    The presumption is temporary: the peer may have lost its data since, and then send nothing that would show it. A
    path is also only a claim of the run's carrier (`by`), which may have invented it so that this peer is sent nothing.
    """
    if holds(link, feed_key) >= last:
        return link
    presumed = {**link.presumed, feed_key: last}
    presumed_by = {**link.presumed_by, feed_key: by}
    at = link.ask_presumed_at if link.ask_presumed_at is not None else now + PRESUMED_S
    return msgspec.structs.replace(link, presumed=presumed, presumed_by=presumed_by, ask_presumed_at=at)


def paths_doubted(link: Link, *, now: float) -> Link:
    """Update the link of a peer whose paths named another that does not hold the runs: they presume nothing for PATHS_DOUBTED_S."""
    return msgspec.structs.replace(link, paths_doubted_until=now + PATHS_DOUBTED_S)


def holds(link: Link, feed_key: str) -> int:
    """Return the sequence up to which the peer holds a feed, by its statement and by runs that passed through it."""
    return max(link.theirs.get(feed_key, 0), link.presumed.get(feed_key, 0))


def doubted(link: Link, since: float) -> Link:
    """Update the link when something is missing here: unless the peer sent a message since then, it is asked what it holds."""
    return link if link.received_at >= since or not link.met else msgspec.structs.replace(link, met=False)


def silent(link: Link, feed_key: str, gap: FeedGap, since: float, lacks: int) -> bool:
    """Return True if the peer has sent a message since then and cannot fill the gap.

    Either the peer holds none of the missing events, or its own runs leave out as many: two peers with the same loss
    would otherwise wait for each other.

    Args:
        since: when the gap was noticed.
        lacks: sequence up to which its own runs left out the events missing here; 0 for none.
    """
    return link.received_at >= since and (holds(link, feed_key) < gap.first or lacks >= gap.last)


def due(link: Link, *, ours: Vector, now: float, jitter: float, gone: Vector | None = None) -> LinkDue:
    """Handle the link's timer. If it has ended and the peer still has more, the link is grafted and the peer is asked.

    Feeds that are not pruned here are sent by the peer anyway, and would be sent twice if asked for: they get more
    time.

    Args:
        gone: by feed, the sequence up to which its origin keeps nothing (its low-water mark). Other domains may keep
            these events longer, so they are still asked for; a peer that then sends nothing does not hold them either,
            and is neither asked further nor doubted.
    """
    if link.ask_at is None or now < link.ask_at:
        return LinkDue(link, False, False)
    if vectors.covers(ours, link.awaited):
        awaited = _ahead(link.theirs, ours)
        patience_s = _patience_s(link, ours, NOTHING_RECEIVED)
        ask_at = now + patience_s * (1 + jitter) if awaited else None
        changed = msgspec.structs.replace(
            link, awaited=awaited, ask_at=ask_at, asked=0, patience_s=patience_s, awaited_at=now, late_s=0.0
        )
        return LinkDue(changed, False, False)
    eager_at = link.awaited_at + EAGER_PATIENCE * link.patience_s
    lacking = frozenset(vectors.lacking(ours, link.awaited))
    wanted = lacking if link.asked or now >= eager_at else lacking & link.pruned
    if not wanted:
        return LinkDue(msgspec.structs.replace(link, ask_at=eager_at + link.patience_s * jitter), False, False)
    asked = link.asked + 1
    if asked >= GRAFTS_FUTILE and gone and vectors.covers(vectors.merged(ours, gone), link.awaited):
        return LinkDue(msgspec.structs.replace(link, ask_at=None), False, False)
    grafted = msgspec.structs.replace(
        link,
        pruned=link.pruned - wanted,
        asked=asked,
        ask_at=now + min(link.patience_s * 2**asked, GRAFT_S_MAX) * (1 + jitter),
        grafting=True,
        grafted=link.grafted | wanted,
        late_s=0.0,
    )
    return LinkDue(grafted, True, asked >= GRAFTS_FUTILE)


def asked_at_once(link: Link, feed_key: str, last: int, *, now: float) -> Link:
    """Update the link when its peer is to be asked with the next message for its claim about a feed, before any timer."""
    return msgspec.structs.replace(
        link,
        pruned=link.pruned - {feed_key},
        awaited={**link.awaited, feed_key: last},
        awaited_at=now,
        ask_at=now + GRAFT_S_MAX if link.ask_at is None else link.ask_at,
        grafting=True,
        grafted=link.grafted | {feed_key},
    )


def grafts(link: Link, ours: Vector) -> frozenset[str]:
    """Return the feeds to ask for: those that a timer grafted and whose awaited events have not arrived."""
    return link.grafted.intersection(vectors.lacking(ours, link.awaited))


def _ahead(theirs: Vector, ours: Vector) -> dict[str, int]:
    return {feed: last for feed, (_, last) in vectors.lacking(ours, theirs).items()}


def plan(link: Link, ours: Vector, *, now: float) -> LinkPlan:
    """Choose the next message, given the own vector. A peer that never sent a vector is first sent the own one."""
    if now < link.shut_until:
        return LinkPlan.NOTHING
    if not link.met:
        return LinkPlan.VECTOR
    if not vectors.covers(wanting(link, now=now), ours):
        return LinkPlan.RUNS
    if asks(link, now=now) or any(ours.get(feed, 0) > holds(link, feed) for feed in link.lazy):
        return LinkPlan.VECTOR
    return LinkPlan.NOTHING


def asks(link: Link, *, now: float) -> bool:
    """Return True if the peer is to be asked something, so that a message to it is not delayed for batching."""
    presumed_for_long = link.ask_presumed_at is not None and now >= link.ask_presumed_at
    return (
        link.grafting or not link.met or presumed_for_long or (link.confirm_at is not None and now >= link.confirm_at)
    )


def wanting(link: Link, *, now: float) -> dict[str, int]:
    """Return the vector after which runs are sent: the peer's vector, with lazy, refused and unsendable feeds raised to
    their maximum, whatever is appended to the log until the runs are read."""
    wanted = vectors.merged(link.theirs, link.presumed)
    if link.unsendable:
        left = {feed: last for feed, (until, _, last) in link.unsendable.items() if now < until}
        wanted = vectors.merged(wanted, left)
    wanted.update(dict.fromkeys(link.lazy, SEQUENCE_MAX))
    wanted.update({feed: SEQUENCE_MAX for feed, (until, _) in link.deaf.items() if now < until})
    return wanted


def within(ours: Vector, feed_key: str, last: int) -> bool:
    """Return True if a run belongs to a request built on the own vector `ours`, not if it was received after that was read."""
    return last <= ours.get(feed_key, 0)


def again_at(link: Link) -> float | None:
    """Return the time of the link's next timer or of the end of a delay; None for never."""
    times = [until for until, _ in link.deaf.values()]
    times += [until for until, _, _ in link.unsendable.values()]
    times += [at for at in (link.ask_presumed_at, link.confirm_at) if at is not None]
    if link.shut_until:
        times.append(link.shut_until)
    if link.ask_at is not None:
        times.append(link.ask_at)
    return max(min(times), link.shut_until) if times else None


def stored(link: Link) -> bytes:
    """Encode the link for storage."""
    return _encode(link)


def read(data: bytes | None) -> Link:
    """Decode a stored link; a new link for None and for undecodable data: asking the peer again loses nothing."""
    if data is None:
        return NEW
    try:
        link = _decode(data)
    except Undecodable:
        return NEW
    return link if link.format == FORMAT else NEW


_encode = msgspec.msgpack.Encoder().encode
_decode = msgpack_reader(Link)
