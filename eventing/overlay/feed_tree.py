"""Part of a link: for each feed, whether its events pass this link (eager) or their announcements only (lazy). Pure.

J. Leitao, J. Pereira, L. Rodrigues: Epidemic Broadcast Trees (SRDS 2007), called "paper" here; a tree per feed
(docs/decisions/0021). Eager and lazy are symmetric: a domain that prunes a link announces only by it from then on, and one
that grafts a link sends by it again (iroh-gossip 0abface: asymmetric links never settled).
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import msgspec

from eventing.core.events.feeds import FEEDS_MAX

NONE: frozenset[str] = frozenset()


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

    new: frozenset[str] = NONE
    known: frozenset[str] = NONE
    redundant: frozenset[str] = NONE
    holes: frozenset[str] = NONE
    refused: frozenset[str] = NONE


NOTHING_RECEIVED = ReceivedFeeds()


class FeedTree(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The place of a link in the trees of all feeds.

    Attributes:
        lazy: feeds of which the peer is sent vectors only, because one side pruned them; all others are eager.
        pruned: feeds that this replica pruned: they arrive by another link.
        grafted: feeds that a timer grafted and that have not since arrived by another link.
        planned: feeds that a plan of routes keeps eager on this link, beside the trees: redundant copies are wanted, so no
            prune of either side makes them lazy. Only a low score does (`tree_demoted`).
        reopened: feeds that were lazy and are sent again because many links fail; the message with their events grafts them.
    """

    lazy: frozenset[str] = NONE
    pruned: frozenset[str] = NONE
    grafted: frozenset[str] = NONE
    planned: frozenset[str] = NONE
    reopened: frozenset[str] = NONE


NEW_TREE = FeedTree()


def tree_on_message(
    tree: FeedTree,
    received: ReceivedFeeds,
    graft: frozenset[str],
    prune: frozenset[str],
    theirs: Container[str],
    ours: Container[str],
) -> tuple[FeedTree, frozenset[str]]:
    """Update the tree after a message; return it with the feeds to prune by the answer.

    A feed that arrives although it was pruned is pruned again: the answer with the prune was lost, or is still on its way. But if the
    peer grafts it with the same message and its events are new here, the peer has reopened the link, and the feed passes it from now on.

    Args:
        graft, prune: feeds that the peer wants by this link from now on, and those that it receives by another.
        theirs, ours: feeds that either side holds; others are not remembered as grafted.
    """
    reopened = reopened_by(received, graft)
    again = (tree.pruned & (received.new | received.known)) - reopened if tree.pruned else NONE
    pruning = (again | received.redundant) - received.holes
    if tree.planned:
        pruning, prune = pruning - tree.planned, prune - tree.planned
    if not (pruning or graft or prune or received.holes or tree.grafted):
        return tree, NONE
    lazy = (((tree.lazy | prune) - graft) | pruning) - received.holes
    if len(lazy) > FEEDS_MAX:
        lazy = frozenset(sorted(lazy)[:FEEDS_MAX])
    pruned = (tree.pruned | (received.redundant - tree.planned)) - received.holes - reopened
    grafted = frozenset(feed for feed in tree.grafted - received.known if feed in theirs or feed in ours)
    return FeedTree(lazy, pruned, grafted, tree.planned, tree.reopened - pruning - prune), pruning


def reopened_by(received: ReceivedFeeds, graft: frozenset[str]) -> frozenset[str]:
    """Return the feeds by which a message shows that its sender has reopened links: it brings new events and grafts the feed."""
    return received.new & graft if graft else NONE


def tree_reopened(tree: FeedTree, feeds: frozenset[str]) -> FeedTree:
    """Make lazy feeds eager again on this side, because many links fail; the message with their events asks the peer to do so too."""
    some = tree.lazy & feeds
    if not some:
        return tree
    return FeedTree(tree.lazy - some, tree.pruned - some, tree.grafted, tree.planned, tree.reopened | some)


def tree_demoted(tree: FeedTree, feeds: frozenset[str]) -> FeedTree:
    """Make feeds lazy on this side because of the peer's score; a feed that arrives all the same is pruned by the answer."""
    return FeedTree(
        tree.lazy | feeds, tree.pruned | feeds, tree.grafted - feeds, tree.planned - feeds, tree.reopened - feeds
    )


def tree_planned(tree: FeedTree, planned: frozenset[str]) -> FeedTree:
    """Keep these feeds eager on this side, and no others that a plan kept before: these stay eager until they are pruned as
    redundant, so that a change of the plan loses nothing."""
    if planned == tree.planned:
        return tree
    return FeedTree(tree.lazy - planned, tree.pruned - planned, tree.grafted, planned, tree.reopened)


def tree_grafted(tree: FeedTree, wanted: frozenset[str]) -> FeedTree:
    """Make feeds eager again on this side; the next message asks the peer to do so too."""
    return FeedTree(tree.lazy - wanted, tree.pruned - wanted, tree.grafted | wanted, tree.planned, tree.reopened)


def tree_adopted(tree: FeedTree, feed_key: str, like: str) -> FeedTree:
    """Begin the tree of a new feed as that of another.

    Any tree reaches all, for every origin; a feed that began with all links eager would flood them with its first event.
    Prunes and grafts of its own fit the new tree to its origin.
    """
    lazy = tree.lazy | {feed_key} if like in tree.lazy and len(tree.lazy) < FEEDS_MAX else tree.lazy
    pruned = tree.pruned | {feed_key} if like in tree.pruned else tree.pruned
    if lazy is tree.lazy and pruned is tree.pruned:
        return tree
    return FeedTree(lazy, pruned, tree.grafted, tree.planned, tree.reopened)
