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

    on_vector(link, have)   a message of the peer begins   -> the link, before anything of the message is in the log
    on_message(link, ...)   the message is processed       -> the link, and the answer's content
    due(link, ...)          its timer may have ended       -> the link, whether to ask
    plan(link, ours)        there is time to send          -> runs (`wanting` and `within` select them), a vector, or nothing
    on_sent(link, ...)      the peer answered a request    -> the link; feeds that it refuses are put off, longer each time

Sending and receiving run concurrently, in several processes, and neither is atomic. So their steps have an order:

    receiving   `on_vector` and `carried`, written; then the runs into the log; then `on_message`, written
    sending     our vector from the log; then the link; then the runs, `within` that vector only

Every run in the vector used for sending was then preceded, in the link, by the vector of its carrier; runs received
later are left for the next request, when the link includes their carrier. In any other order runs return to their
senders, and on pruned links: 0.6 redundant copies per event in the live domains, and in test_convergence.py, whose
machines take the same steps one by one.

A link (link_state.py) has five parts, each with its rules in a file of its own: the peer's vector (link_vector.py), what it is
presumed to hold beyond that (presumed_vector.py), the trees (feed_tree.py), the timer (graft_timer.py), pauses
(link_refusals.py). The rules here are for what is received, those of link_planning.py for what is sent; both give each part
what it needs of the others. stored_links.py has the stored form.

Time is an argument, in seconds of any clock that all callers share; so is randomness (`jitter`, 0 to 1). Timers are
data: late, repeated and lost ones are harmless, because the next vector starts them anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from eventing.core.events.vectors import Vector
from eventing.overlay.exchange import FeedGap
from eventing.overlay.feed_tree import (
    NOTHING_RECEIVED,
    ReceivedFeeds,
    reopened_by,
    tree_adopted,
    tree_demoted,
    tree_grafted,
    tree_on_message,
    tree_planned,
    tree_reopened,
)
from eventing.overlay.graft_timer import GRAFT_S_MAX, GRAFTS_FUTILE, timer_due, timer_on_message, timer_too_early
from eventing.overlay.link_refusals import refusals_on_message
from eventing.overlay.link_state import Link, holds
from eventing.overlay.link_vector import peer_doubted, peer_on_message, peer_on_vector
from eventing.overlay.presumed_vector import PATHS_DOUBTED_S, presumed_carried, presumed_on_message

_replace = msgspec.structs.replace


class MessageOutcome(NamedTuple):
    """Result of a message: the link, and the feeds to graft and to prune by the answer.

    `mistaken`: peers that brought runs whose paths name this one, which does not hold them. `reopened`: feeds for which the peer
    has reopened the link, because links fail where it is (reopening.py).
    """

    link: Link
    graft: frozenset[str]
    prune: frozenset[str]
    mistaken: frozenset[str] = frozenset()
    reopened: frozenset[str] = frozenset()


class LinkDue(NamedTuple):
    """Result of a timer: the link, whether to ask the peer now, and whether it was asked in vain for too long."""

    link: Link
    ask: bool
    futile: bool


def on_vector(link: Link, have: Vector) -> Link:
    """Update the link when a message with the peer's vector begins: events in that vector are not sent to the peer meanwhile."""
    peer = peer_on_vector(link.peer, have, link.timer.awaited)
    return link if peer is link.peer else _replace(link, peer=peer)


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
    """
    grafted, pruned, timer, before = frozenset(graft), frozenset(prune), link.timer, link.peer
    asked_for = timer.awaited if answers and timer.grafting else ()
    peer = peer_on_message(
        before,
        have,
        ours=ours,
        awaited=timer.awaited,
        lowered=(*grafted, *asked_for),
        answers=answers,
        shown=shown,
        now=now,
    )
    tree, pruning = tree_on_message(link.tree, received, grafted, pruned, peer.theirs, ours)
    timer = timer_on_message(
        timer,
        link.tree,
        peer.theirs,
        ours,
        received=received,
        answers=answers,
        idle_s=now - before.received_at,
        now=now,
        jitter=jitter,
    )
    presumed, mistaken = presumed_on_message(link.presumed, peer.theirs, grafted, answers=answers, now=now)
    refusals = refusals_on_message(link.refusals, peer.theirs, grafted)
    reopened = reopened_by(received, grafted)
    return MessageOutcome(Link(peer, tree, timer, presumed, refusals), received.holes, pruning, mistaken, reopened)


def adopted(link: Link, feed_key: str, like: str) -> Link:
    """Update the link when the first run of a feed is stored: the feed's tree begins as that of another feed.

    Args:
        like: the feed of the last new run before; all domains hold about the same.
    """
    tree = tree_adopted(link.tree, feed_key, like)
    return link if tree is link.tree else _replace(link, tree=tree)


def early(carrier: Link, feed_key: str) -> Link:
    """Update the link by which a run had arrived, when a copy arrives by another: if a timer had grafted it, the graft
    was too early."""
    tree = carrier.tree
    if feed_key not in tree.grafted:
        return carrier
    return _replace(
        carrier, tree=_replace(tree, grafted=tree.grafted - {feed_key}), timer=timer_too_early(carrier.timer)
    )


def demoted(link: Link, ours: Vector) -> Link:
    """Make a link lazy for all feeds, because the score of its peer is low (`scores.Demoted`).

    Announcements go on, and what no other link delivers is grafted by it: a low score costs no event.
    """
    return _replace(link, tree=tree_demoted(link.tree, frozenset((*ours, *link.theirs))))


def reopened(link: Link, ours: Vector) -> Link:
    """Reopen a link for the feeds of which the peer lacks something: their events are sent at once, not announced (reopening.py)."""
    tree = tree_reopened(link.tree, frozenset(feed for feed, last in ours.items() if last > holds(link, feed)))
    return link if tree is link.tree else _replace(link, tree=tree)


def planned(link: Link, feed_keys: frozenset[str]) -> Link:
    """Keep feeds eager on this link because a plan of routes needs it for them (feed_tree.py: `tree_planned`)."""
    tree = tree_planned(link.tree, feed_keys)
    return link if tree is link.tree else _replace(link, tree=tree)


def feeds(carrier: Link, feed_key: str) -> bool:
    """Return True if the peer of this link, by which a run had arrived, can be relied on for the feed: it is not pruned there."""
    return feed_key not in carrier.tree.pruned


def carried(link: Link, feed_key: str, last: int, *, now: float, by: str = "") -> Link:
    """Update the link when a run from another peer (`by`) has passed through this one, which is then presumed to hold
    the feed up to there."""
    if holds(link, feed_key) >= last:
        return link
    return _replace(link, presumed=presumed_carried(link.presumed, feed_key, last, by, now))


def paths_doubted(link: Link, *, now: float) -> Link:
    """Update the link of a peer whose paths named another that does not hold the runs: they presume nothing for PATHS_DOUBTED_S."""
    return _replace(link, presumed=_replace(link.presumed, paths_doubted_until=now + PATHS_DOUBTED_S))


def doubted(link: Link, since: float) -> Link:
    """Update the link when something is missing here: unless the peer sent a message since then, it is asked what it holds."""
    peer = peer_doubted(link.peer, since)
    return link if peer is link.peer else _replace(link, peer=peer)


def silent(link: Link, feed_key: str, gap: FeedGap, since: float, lacks: int) -> bool:
    """Return True if the peer has sent a message since then and cannot fill the gap.

    Either the peer holds none of the missing events, or its own runs leave out as many: two peers with the same loss
    would otherwise wait for each other.

    Args:
        since: when the gap was noticed.
        lacks: sequence up to which its own runs left out the events missing here; 0 for none.
    """
    return link.peer.received_at >= since and (holds(link, feed_key) < gap.first or lacks >= gap.last)


def due(
    link: Link,
    *,
    ours: Vector,
    now: float,
    jitter: float,
    gone: Vector | None = None,
    elsewhere: frozenset[str] = frozenset(),
) -> LinkDue:
    """Handle the link's timer. If it has ended and the peer still has more, the link is grafted and the peer is asked.

    Args:
        gone: by feed, the sequence up to which its origin keeps nothing (its low-water mark). Other domains may keep
            these events longer, so they are still asked for; a peer that then sends nothing does not hold them either,
            and is neither asked further nor doubted.
        elsewhere: feeds that another peer was asked for and has had no time to send: this one is asked if it does not.
    """
    if link.timer.ask_at is None or now < link.timer.ask_at:
        return LinkDue(link, False, False)
    timer, wanted = timer_due(
        link.timer, link.tree, link.theirs, ours, now=now, jitter=jitter, gone=gone, elsewhere=elsewhere
    )
    if wanted is None:
        return LinkDue(_replace(link, timer=timer), False, False)
    changed = _replace(link, timer=timer, tree=tree_grafted(link.tree, wanted))
    return LinkDue(changed, True, timer.asked >= GRAFTS_FUTILE)


def asked_at_once(link: Link, feed_key: str, last: int, *, now: float) -> Link:
    """Update the link when its peer is to be asked with the next message for its claim about a feed, before any timer."""
    timer = _replace(
        link.timer,
        awaited={**link.timer.awaited, feed_key: last},
        awaited_at=now,
        ask_at=now + GRAFT_S_MAX if link.timer.ask_at is None else link.timer.ask_at,
        grafting=True,
    )
    return _replace(link, timer=timer, tree=tree_grafted(link.tree, frozenset((feed_key,))))
