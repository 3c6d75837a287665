"""Sending side of a link: the choice of the next message, its runs, and the link after its answer. Pure; broadcast.py has the
laws, among them the order of these steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec

from eventing.core.events import vectors
from eventing.core.events.vectors import SEQUENCE_MAX, Vector
from eventing.overlay.link_refusals import (
    NOTHING_REFUSED,
    refusals_cover,
    refusals_on_sent,
    refusals_shut,
    refusals_unsendable,
)
from eventing.overlay.link_state import Link

_replace = msgspec.structs.replace


class LinkPlan(Enum):
    """Next message on a link."""

    NOTHING = 0
    VECTOR = 1
    RUNS = 2


def plan(link: Link, ours: Vector, *, now: float) -> LinkPlan:
    """Choose the next message, given the own vector. A peer that never sent a vector is first sent the own one."""
    if now < link.refusals.shut_until:
        return LinkPlan.NOTHING
    if not link.met:
        return LinkPlan.VECTOR
    lazy = False
    theirs, upto, tree, refusals = link.theirs, link.presumed.upto, link.tree.lazy, link.refusals
    for feed, last in ours.items():  # as `wanting` and `holds` say, in one pass
        if last > theirs.get(feed, 0) and last > upto.get(feed, 0):
            if feed in tree:
                lazy = True
            elif refusals is NOTHING_REFUSED or not refusals_cover(refusals, feed, last, now):
                return LinkPlan.RUNS
    return LinkPlan.VECTOR if lazy or asks(link, now=now) else LinkPlan.NOTHING


def asks(link: Link, *, now: float) -> bool:
    """Return True if the peer is to be asked something, so that a message to it is not delayed for batching."""
    peer, ask_at = link.peer, link.presumed.ask_at
    return (
        link.timer.grafting
        or not peer.met
        or (ask_at is not None and now >= ask_at)
        or (peer.confirm_at is not None and now >= peer.confirm_at)
    )


def wanting(link: Link, *, now: float) -> dict[str, int]:
    """Return the vector after which runs are sent: the peer's vector, with lazy, refused and unsendable feeds raised to
    their maximum, whatever is appended to the log until the runs are read."""
    wanted = vectors.merged(link.theirs, link.presumed.upto)
    refusals = link.refusals
    for feed, (until, _, last) in refusals.unsendable.items():
        if now < until and last > wanted.get(feed, 0):
            wanted[feed] = last
    if link.tree.lazy:
        wanted.update(dict.fromkeys(link.tree.lazy, SEQUENCE_MAX))
    for feed, (until, _) in refusals.deaf.items():
        if now < until:
            wanted[feed] = SEQUENCE_MAX
    return wanted


def within(ours: Vector, feed_key: str, last: int) -> bool:
    """Return True if a run belongs to a request built on the own vector `ours`, not if it was received after that was read."""
    return last <= ours.get(feed_key, 0)


def grafts(link: Link, ours: Vector) -> frozenset[str]:
    """Return the feeds to ask for: those that a timer grafted and whose awaited events have not arrived."""
    return link.tree.grafted.intersection(vectors.lacking(ours, link.timer.awaited))


def reopening(link: Link, sent: Iterable[str]) -> frozenset[str]:
    """Return the feeds to graft because their events are sent by a link that was reopened for them."""
    return link.tree.reopened.intersection(sent) if link.tree.reopened else link.tree.reopened


def on_sent(before: Link, after: Link, sent: Mapping[str, int], *, now: float, refused: bool = False) -> Link:
    """Update the link after the peer's answer: feeds that were sent and refused completely are put off.

    Args:
        before, after: the link when the request was sent, and after `on_message` of the answer.
        sent: last sequence of each feed sent.
        refused: whether the peer refused the RP as a whole.
    """
    refusals = (
        refusals_shut(after.refusals, now)
        if refused
        else refusals_on_sent(before.refusals, after.refusals, sent, before.theirs, after.theirs, now)
    )
    if after.tree.reopened and not before.tree.reopened.isdisjoint(sent):
        over = before.tree.reopened.intersection(sent)
        after = _replace(after, tree=_replace(after.tree, reopened=after.tree.reopened - over))
    return after if refusals is after.refusals else _replace(after, refusals=refusals)


def unsendable(link: Link, upto: Mapping[str, int], *, now: float) -> Link:
    """Update the link when nothing of these feeds up to these sequences can be sent, though the peer lacks it: the
    events have left the history, or have passed as many domains as allowed. They are left out for a while, longer each
    time, and later events are sent."""
    return _replace(link, refusals=refusals_unsendable(link.refusals, upto, now))


def assumed(link: Link, before: Link, sent: Mapping[str, int]) -> Link:
    """Predict the link after complete acceptance of the request in progress, as basis of the next request.

    Args:
        link: present link.
        before: link when that request was built: its questions are not repeated.
        sent: last sequence of each feed sent.
    """
    confirm_at = None if before.peer.confirm_at is not None else link.peer.confirm_at
    ask_at = None if before.presumed.ask_at is not None else link.presumed.ask_at
    return _replace(
        link,
        peer=_replace(link.peer, theirs=vectors.merged(link.theirs, sent), confirm_at=confirm_at),
        timer=_replace(link.timer, grafting=link.timer.grafting and not before.timer.grafting),
        presumed=_replace(link.presumed, ask_at=ask_at),
    )


def as_assumed(link: Link, before: Link, sent: Mapping[str, int], *, now: float) -> bool:
    """Return True if a request built on a predicted link may still be sent, given the link after the peer's answer.

    Args:
        before: the predicted link.
        sent: last sequence of each feed to be sent.
    """
    taken = link.met and now >= link.refusals.shut_until and vectors.covers(link.theirs, before.theirs)
    return taken and link.tree.lazy.isdisjoint(sent)
