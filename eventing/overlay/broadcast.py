"""Links: what one replica of an RP knows of a peer's replica, and what it says to it next. Pure; Plumtree per (peer, RP).

Every pair of peered replicas has a link. Where it is eager, runs go to the peer as they come; where it is lazy, only
vectors (Plumtree's IHAVE). A run that came twice prunes the link it came by the second time, so that the eager links
become a tree; a vector that shows more than is here starts a timer, and when the timer ends before the runs have come, the
link is grafted: made eager, and its peer asked (J. Leitao, J. Pereira, L. Rodrigues: Epidemic Broadcast Trees, SRDS 2007,
sections 3.6 to 3.8). A link is eager or lazy for each feed by itself, which makes a tree per origin: in one tree for all,
origins that publish at once cut a circle at several places, graft it again, and never come to rest (seen in
tests/federation/test_convergence.py: 0.86 redundant copies per event, against below 0.05). Whatever is eager, vectors decide
what is sent: a peer is never sent what it said it holds, so catching up after a partition is the same act as going on.

    said(link, have)   a message of the peer begins    -> the link, before anything of the message is in the log
    heard(link, ...)   the message is worked off       -> the link, what to answer, whether there is something to send
    due(link, ...)     its timer may have ended        -> the link, whether to ask
    plan(link, ours)   there is time to send           -> runs (`wanting` and `within` say which), a vector, or nothing
    told(link, ...)    the peer answered what we sent  -> the link; what it does not take is put off, longer each time

Sending and receiving go on side by side, in several processes, and neither is one step. So there is an order to keep:

    receiving   `said` and `carried`, written; then the runs into the log; then `heard`, written
    sending     our vector from the log; then the link; then the runs, `within` that vector only

Whatever is in the vector that is sent by was then preceded, in the link, by what its carrier holds; and what came since is
left for the next request, by which time the link knows about it. In any other order runs go back to whom they came from,
and by links that were pruned: 0.6 redundant copies per event in the live domains, and in test_convergence.py, whose world
takes the same steps one by one.

How long a timer waits, a link learns from what came by itself (`patience_s`). On a busy machine runs take about as long as
vectors, and every graft that is too early has some events come twice: 0.02 to 0.14 copies per event in a live ring.

Time is passed in, in seconds of any clock that all callers share; so is chance (`jitter`, 0 to 1). Timers are data: late,
repeated and forgotten ones are harmless, because the next vector starts them anew.
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
from eventing.overlay.exchange import Gap

GRAFT_S = 0.5  # how long runs that a vector announced may take by another link at least (guess: ten hops of 50 ms)
PATIENCE_S_MAX = 8.0  # and at most, where they were seen to take longer (guess)
PATIENCE_MARGIN = 2.0  # times the longest that runs which came by themselves were seen to be lacking
PATIENCE_HALF_S = 60.0  # after this, half of what a link had learned to wait
LATE_S_MAX = 2.0  # the longest lack to learn from: beyond it who brings the runs is not slow, it catches up
EAGER_PATIENCE = 3.0  # times as long for feeds that were not pruned: they are on their way, unless the peer is wrong
PATHS_DOUBTED_S = 600.0  # paths of a peer that named a domain which did not hold the run presume nothing for so long
PRESUMED_S = 5.0  # within this a peer that a run came through has shown that it holds it, in all but rare cases
CONFIRM_S = (
    30.0  # what we sent in an earlier life is taken in everywhere by then: several times what a request may take
)
GRAFT_S_MAX = 30.0  # the longest pause before a peer is asked again
GRAFTS_FUTILE = 4  # asked so often without any run (10 to 20 s): the peer claims what it does not have
DEAF_S = 0.5  # a feed that the peer did not take any of is sent again after this, doubled each time
DEAF_S_MAX = 60.0
SHUT_S = 0.5  # a peer that refused the RP as a whole is told of it again after this, doubled each time, or when it speaks of it
SHUT_S_MAX = 60.0
THEIRS_MAX = 192  # feeds that a peer is remembered to hold: FEEDS_MAX of ours, as many it said last, as many waited for
FORMAT = 1


class Link(msgspec.Struct, array_like=True, frozen=True):
    """The state of one link.

    Attributes:
        format: of this state, where it is kept.
        lazy: feeds of which we tell the peer by vectors only, because it pruned them; all others are eager.
        pruned: feeds that we pruned: they come by another link.
        theirs: what the peer holds, as it said last; THEIRS_MAX feeds at most.
        met: whether the peer has said anything of this RP yet.
        awaited: what the peer held and we lacked when the timer was started: by feed, the last sequence.
        ask_at: when to ask for that, unless it has come by then; None: nothing is lacking.
        asked: how often we asked since the last run came from it.
        grafting: whether the next message asks for runs.
        deaf: feeds that the peer does not take (it does not admit their origin, or waits for what is missing before):
            until when they are not sent, and how often that was so.
        shut_until: until when nothing of the RP is sent, because the peer refused it.
        refusals: of the RP as a whole, in a row.
        heard_at: when the peer spoke of the RP last.
        patience_s: how long runs that its vectors announce are waited for, before jitter: twice the longest that such runs
            were seen to be lacking before they came by themselves, and doubled when a graft turned out to be too early,
            because the runs came by another link all the same. By and by it shrinks again.
        grafted: feeds that a timer grafted, of which it has not been seen since that they come by another link all the same.
        presumed: what the peer must hold because runs came through it, beyond what it said itself.
        ask_presumed_at: when to ask for that, unless it has said so by then; None: nothing is presumed.
        awaited_at: when the timer was started for what is awaited.
        late_s: how long after that some of it was last seen to be lacking that no timer had grafted.
        confirm_at: when to ask the peer once more, because what it said when we met may have been too little: if we lost our
            data, something that we had sent before could still be on its way to it. It believes ever since that we hold
            that, and with nothing new to tell neither would find out. None: it has said so since.
        unsendable: feeds that the peer lacks some of of which we cannot send anything: until when that is taken for granted,
            how often it was found, and up to which sequence.
        met_at: when `met` became true.
        presumed_by: for each feed of `presumed`, the peer that brought the run whose path names this one.
        paths_doubted_until: until when paths that this peer states presume nothing of others.
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
    heard_at: float = 0.0
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


class Came(NamedTuple):
    """What came of the runs of one message, as feed keys.

    Attributes:
        new: brought something.
        known: were here already.
        redundant: of these, had come by a link that still brings the feed (`feeds` says so): this link is one too many.
        holes: something before them is missing here.
        refused: not admitted, or not true.
    """

    new: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    redundant: frozenset[str] = frozenset()
    holes: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()


class Heard(NamedTuple):
    """What follows from a message: the link, and the feeds to graft and to prune by the answer.

    `mistaken`: peers that brought runs whose paths name this one, which does not hold them.
    """

    link: Link
    graft: frozenset[str]
    prune: frozenset[str]
    mistaken: frozenset[str] = frozenset()


class Due(NamedTuple):
    """What follows from the time: the link, whether to ask the peer now, and whether it asked in vain for too long."""

    link: Link
    ask: bool
    futile: bool


class Plan(Enum):
    """What to send on a link."""

    NOTHING = 0
    VECTOR = 1
    RUNS = 2


NEW = Link()
NOTHING_CAME = Came()


def said(link: Link, have: Vector) -> Link:
    """The link when a message with the peer's vector begins: what is in it, the peer is not sent while we work on it."""
    if not link.met or vectors.covers(link.theirs, have):
        return link  # one that is not met is sent nothing anyway, and `heard` takes its first vector as it is
    return msgspec.structs.replace(link, theirs=_bounded(vectors.merged(link.theirs, have), have, link.awaited))


def heard(
    link: Link,
    have: Vector,
    *,
    ours: Vector,
    now: float,
    jitter: float,
    came: Came = NOTHING_CAME,
    graft: Iterable[str] = (),
    prune: Iterable[str] = (),
    answers: bool = False,
    shown: bool = True,
) -> Heard:
    """Take in what a peer said of the RP.

    Args:
        have: the peer's vector, as it said it.
        ours: our own, with the runs of this message taken in.
        came: what became of these runs.
        graft, prune: the feeds that the peer wants by this link from now on, and those that it gets by another.
        answers: it answers a request of ours.
        shown: False for a request that claims more of our own feed than we sealed, without the seal: its vector does not make
            the link met, so that the peer is asked, and its answer does.

    Requests and answers of both sides cross each other, so a vector that shows less than known before is an older one. It
    says that the peer lost something only of feeds that the peer grafts, or that it was just asked for; and where the link is
    in doubt (`doubted`), only an answer does.

    What is kept of it is bounded, whatever it says: beyond THEIRS_MAX feeds it is forgotten of those that are neither here
    nor in `have`, which no honest peer reaches. Those that are waited for go last, so that who claims ever others is still
    asked for them, and found out.
    """
    grafted = frozenset(graft)
    anew = not link.met and (answers or (shown and not link.theirs))
    theirs = dict(have) if anew else vectors.merged(link.theirs, have)
    asked_for = link.awaited if answers and link.grafting else ()
    theirs.update({feed: have.get(feed, 0) for feed in (*grafted, *asked_for) if feed in theirs})
    theirs = _bounded(theirs, ours, have, link.awaited)
    lazy = (link.lazy | frozenset(prune)) - grafted
    # What comes though it was pruned is pruned again: the answer that said so was lost, or is still on its way.
    again = link.pruned & (came.new | came.known)
    pruned = (link.pruned | came.redundant) - came.holes
    awaited = {feed: min(last, theirs.get(feed, 0)) for feed, last in link.awaited.items()}
    ask_at, asked = link.ask_at, link.asked
    awaited_at, late_s = link.awaited_at, link.late_s
    if ask_at is not None and vectors.lacking(ours, awaited).keys() - link.grafted:
        late_s = min(now - awaited_at, LATE_S_MAX)
    patience_s = max(_patience_s(link, ours, came) * 0.5 ** (max(0.0, now - link.heard_at) / PATIENCE_HALF_S), GRAFT_S)
    if came.new:
        asked = 0
    if ask_at is not None and vectors.covers(ours, awaited):
        ask_at, asked = None, 0
    if ask_at is None:
        awaited = _ahead(theirs, ours)
        ask_at = now + patience_s * (1 + jitter) if awaited else None
        awaited_at, late_s = now, 0.0
    if came.refused and not came.new and ask_at is not None:
        ask_at, asked = now + GRAFT_S_MAX * (1 + jitter), 0  # it has what it claims; we do not want it, not yet
    deaf = {feed: until for feed, until in link.deaf.items() if feed not in grafted}
    unsendable = {
        feed: left for feed, left in link.unsendable.items() if feed not in grafted and theirs.get(feed, 0) < left[2]
    }
    # What it was asked about it has said by its answer, and what it grafts it lacks, whatever runs seemed to show.
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
        heard_at=now,
        patience_s=patience_s,
        grafted=(link.grafted - came.known) & (theirs.keys() | ours.keys()),
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
    return Heard(changed, came.holes, (again | came.redundant) - came.holes, frozenset(filter(None, mistaken)))


def _bounded(theirs: dict[str, int], *first: Iterable[str]) -> dict[str, int]:
    """THEIRS_MAX feeds of a vector: those of `first` before the others."""
    if len(theirs) <= THEIRS_MAX:
        return theirs
    wanted = dict.fromkeys(feed for feeds in (*first, sorted(theirs)) for feed in feeds if feed in theirs)
    return {feed: theirs[feed] for feed in list(wanted)[:THEIRS_MAX]}


def _patience_s(link: Link, ours: Vector, came: Came) -> float:
    """How long to wait from now on: longer if what a timer asked for was here by another link before it came by this one,
    and long enough for what came by itself at last."""
    if link.grafted & came.known:
        return min(2 * link.patience_s, PATIENCE_S_MAX)
    if link.awaited and not link.asked and vectors.covers(ours, link.awaited):
        return min(max(link.patience_s, PATIENCE_MARGIN * link.late_s), PATIENCE_S_MAX)
    return link.patience_s


def early(carrier: Link, feed_key: str) -> Link:
    """The link by which a run had come, when a copy of it comes by another: if a timer had grafted it, that was too early."""
    if feed_key not in carrier.grafted:
        return carrier
    patience_s = min(2 * carrier.patience_s, PATIENCE_S_MAX)
    return msgspec.structs.replace(carrier, grafted=carrier.grafted - {feed_key}, patience_s=patience_s)


def feeds(carrier: Link, feed_key: str) -> bool:
    """Whether the peer of this link, by which a run had come, may be relied on to bring the feed: we did not prune it there."""
    return feed_key not in carrier.pruned


def told(before: Link, after: Link, sent: Mapping[str, int], *, now: float, refused: bool = False) -> Link:
    """The link after the peer answered: feeds that were sent and not taken at all are put off.

    Args:
        before, after: the link as it was when we sent, and after `heard` of the answer.
        sent: the last sequence of each feed that went out.
        refused: the peer refused the RP as a whole.
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
    """The link when nothing of these feeds up to these sequences can be sent, though the peer lacks it: it is left out for a
    while, longer each time, and what follows it goes. It has left the history, or came through as many domains as it may.
    """
    left = dict(link.unsendable)
    for feed, last in upto.items():
        until, times, before = left.get(feed, (0.0, 0, 0))
        if now >= until:
            until, times = now + min(DEAF_S * 2 ** min(times, 10), DEAF_S_MAX), times + 1
        left[feed] = (until, times, max(last, before))
    return msgspec.structs.replace(link, unsendable=left)


def assumed(link: Link, before: Link, sent: Mapping[str, int]) -> Link:
    """The link as it will be if a request that is under way is taken whole: the next one is built by it meanwhile.

    Args:
        link: as it is now.
        before: as it was when that request was built: what was asked then is not asked again.
        sent: the last sequence of each feed that went out.
    """
    return msgspec.structs.replace(
        link,
        theirs=vectors.merged(link.theirs, sent),
        grafting=link.grafting and not before.grafting,
        ask_presumed_at=None if before.ask_presumed_at is not None else link.ask_presumed_at,
        confirm_at=None if before.confirm_at is not None else link.confirm_at,
    )


def as_assumed(link: Link, before: Link, sent: Mapping[str, int], *, now: float) -> bool:
    """Whether what was built by an assumed link may still be sent, given the link after the peer's answer.

    Args:
        before: as it was assumed.
        sent: the last sequence of each feed that is to go out.
    """
    taken = link.met and now >= link.shut_until and vectors.covers(link.theirs, before.theirs)
    return taken and link.lazy.isdisjoint(sent)


def carried(link: Link, feed_key: str, last: int, *, now: float, by: str = "") -> Link:
    """The link when a run passed through this peer that came by another: it is presumed to hold the feed up to there.

    Presumed only, for a while: it may have lost its data since, and then have nothing to say that would show it. And a path is
    the word of who brought the run (`by`), which may have made it up so that this peer is sent nothing.
    """
    if holds(link, feed_key) >= last:
        return link
    presumed = {**link.presumed, feed_key: last}
    presumed_by = {**link.presumed_by, feed_key: by}
    at = link.ask_presumed_at if link.ask_presumed_at is not None else now + PRESUMED_S
    return msgspec.structs.replace(link, presumed=presumed, presumed_by=presumed_by, ask_presumed_at=at)


def paths_doubted(link: Link, *, now: float) -> Link:
    """The link of a peer whose paths named another that does not hold the runs: they presume nothing for PATHS_DOUBTED_S."""
    return msgspec.structs.replace(link, paths_doubted_until=now + PATHS_DOUBTED_S)


def holds(link: Link, feed_key: str) -> int:
    """Up to where the peer holds a feed, by what it said and by what came through it."""
    return max(link.theirs.get(feed_key, 0), link.presumed.get(feed_key, 0))


def doubted(link: Link, since: float) -> Link:
    """The link when something is missing here: unless the peer was heard since then, it is asked what it holds."""
    return link if link.heard_at >= since or not link.met else msgspec.structs.replace(link, met=False)


def silent(link: Link, feed_key: str, gap: Gap, since: float, lacks: int) -> bool:
    """Whether the peer, heard since then, cannot fill the gap.

    It holds nothing of it, or its own runs leave as much out: two that lost the same would wait for each other otherwise.

    Args:
        since: when the gap was noticed.
        lacks: up to which sequence its own runs left out what is missing here; 0 for none.
    """
    return link.heard_at >= since and (holds(link, feed_key) < gap.first or lacks >= gap.last)


def due(link: Link, *, ours: Vector, now: float, jitter: float, gone: Vector | None = None) -> Due:
    """Look at the link's timer. When it has ended and the peer still has more, the link is grafted and the peer asked.

    What we did not prune here the peer sends anyway, and sends again when it is asked: that is left more time.

    Args:
        gone: by feed, up to which sequence its origin states that it keeps nothing (a floor). Others may keep it longer, so
            it is asked for as ever; who then sends nothing has none of it either, and is neither asked on nor doubted.
    """
    if link.ask_at is None or now < link.ask_at:
        return Due(link, False, False)
    if vectors.covers(ours, link.awaited):
        awaited = _ahead(link.theirs, ours)
        patience_s = _patience_s(link, ours, NOTHING_CAME)
        ask_at = now + patience_s * (1 + jitter) if awaited else None
        changed = msgspec.structs.replace(
            link, awaited=awaited, ask_at=ask_at, asked=0, patience_s=patience_s, awaited_at=now, late_s=0.0
        )
        return Due(changed, False, False)
    eager_at = link.awaited_at + EAGER_PATIENCE * link.patience_s
    lacking = frozenset(vectors.lacking(ours, link.awaited))
    wanted = lacking if link.asked or now >= eager_at else lacking & link.pruned
    if not wanted:
        return Due(msgspec.structs.replace(link, ask_at=eager_at + link.patience_s * jitter), False, False)
    asked = link.asked + 1
    if asked >= GRAFTS_FUTILE and gone and vectors.covers(vectors.merged(ours, gone), link.awaited):
        return Due(msgspec.structs.replace(link, ask_at=None), False, False)
    grafted = msgspec.structs.replace(
        link,
        pruned=link.pruned - wanted,
        asked=asked,
        ask_at=now + min(link.patience_s * 2**asked, GRAFT_S_MAX) * (1 + jitter),
        grafting=True,
        grafted=link.grafted | wanted,
        late_s=0.0,
    )
    return Due(grafted, True, asked >= GRAFTS_FUTILE)


def asked_at_once(link: Link, feed_key: str, last: int, *, now: float) -> Link:
    """The link when its peer is to be asked with the next message for what it claims of a feed, before any timer."""
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
    """The feeds to ask for: those that a timer grafted and of which what was awaited has not come."""
    return link.grafted.intersection(vectors.lacking(ours, link.awaited))


def _ahead(theirs: Vector, ours: Vector) -> dict[str, int]:
    return {feed: last for feed, (_, last) in vectors.lacking(ours, theirs).items()}


def plan(link: Link, ours: Vector, *, now: float) -> Plan:
    """What to send, given what is here. A peer that never said what it holds is told our vector first."""
    if now < link.shut_until:
        return Plan.NOTHING
    if not link.met:
        return Plan.VECTOR
    if not vectors.covers(wanting(link, now=now), ours):
        return Plan.RUNS
    if asks(link, now=now) or any(ours.get(feed, 0) > holds(link, feed) for feed in link.lazy):
        return Plan.VECTOR
    return Plan.NOTHING


def asks(link: Link, *, now: float) -> bool:
    """Whether the peer is to be asked something, so that a message to it is not put off for company."""
    presumed_for_long = link.ask_presumed_at is not None and now >= link.ask_presumed_at
    return (
        link.grafting or not link.met or presumed_for_long or (link.confirm_at is not None and now >= link.confirm_at)
    )


def wanting(link: Link, *, now: float) -> dict[str, int]:
    """The vector after which runs are sent: what the peer holds, and as if it held all there can be of lazy feeds and of those
    put off, whatever comes into the log until the runs are read, and what cannot be sent."""
    wanted = vectors.merged(link.theirs, link.presumed)
    if link.unsendable:
        left = {feed: last for feed, (until, _, last) in link.unsendable.items() if now < until}
        wanted = vectors.merged(wanted, left)
    wanted.update(dict.fromkeys(link.lazy, SEQUENCE_MAX))
    wanted.update({feed: SEQUENCE_MAX for feed, (until, _) in link.deaf.items() if now < until})
    return wanted


def within(ours: Vector, feed_key: str, last: int) -> bool:
    """Whether a run belongs to a request that is built by our vector `ours`: it does not, if it came since that was read."""
    return last <= ours.get(feed_key, 0)


def again_at(link: Link) -> float | None:
    """When to look at the link again though nothing happened: a timer of it, or something that was put off; None for never."""
    times = [until for until, _ in link.deaf.values()]
    times += [until for until, _, _ in link.unsendable.values()]
    times += [at for at in (link.ask_presumed_at, link.confirm_at) if at is not None]
    if link.shut_until:
        times.append(link.shut_until)
    if link.ask_at is not None:
        times.append(link.ask_at)
    return max(min(times), link.shut_until) if times else None


def stored(link: Link) -> bytes:
    """The link as it is kept."""
    return _encode(link)


def read(data: bytes | None) -> Link:
    """A link that was kept; a new one for None, and for what cannot be read: nothing is lost by asking the peer again."""
    if data is None:
        return NEW
    try:
        link = _decode(data)
    except Undecodable:
        return NEW
    return link if link.format == FORMAT else NEW


_encode = msgspec.msgpack.Encoder().encode
_decode = msgpack_reader(Link)
