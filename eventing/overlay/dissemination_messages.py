"""Parameters, messages, commands, events and timers of dissemination.py."""

from __future__ import annotations

from typing import Any

import msgspec

from eventing.overlay.machine import Id
from eventing.overlay.reopening import DOUBT_S
from eventing.overlay.replica_log import FeedRun


class DisseminationParameters(msgspec.Struct, frozen=True):
    """Periods and sizes.

    Attributes:
        spacing_s: least seconds between two requests to a peer (as forwarding: 0.05).
        lazy_s: seconds for which vectors on lazy links are gathered, for all links together.
        patient: vectors on lazy links wait by the rules of announcements.py instead, as in forwarding. Recorded runs are with `lazy_s`.
        answer_s: seconds after which a request without an answer has failed.
        doubt_s: seconds after which its link is in doubt (reopening.py); 0: never, and links are not reopened.
        retry_s: seconds until the next request to a peer that could not be reached.
        anti_entropy_s: seconds between two comparisons with one link's peer; 0: never.
        work_s: most seconds between two steps of one request, in which others may be taken; 0: none.
        request_events_max: events of one request.
    """

    spacing_s: float = 0.05
    lazy_s: float = 0.25
    patient: bool = False
    answer_s: float = 3.0
    doubt_s: float = DOUBT_S
    retry_s: float = 1.0
    anti_entropy_s: float = 10.0
    work_s: float = 0.0
    request_events_max: int = 1000


DEFAULTS = DisseminationParameters()


class LinkRequest(msgspec.Struct, frozen=True, array_like=True, tag="request", gc=False):
    """A request; `whole` if its vector is, and the answer's is to be."""

    number: int
    whole: bool
    have: dict[str, int]
    runs: tuple[FeedRun, ...]
    graft: frozenset[str]
    low_water_marks: dict[str, int]


class LinkAnswer(msgspec.Struct, frozen=True, array_like=True, tag="answer", gc=False):
    """The answer to a request."""

    number: int
    have: dict[str, int]
    graft: frozenset[str]
    prune: frozenset[str]


class Publish(msgspec.Struct, frozen=True, gc=False):
    """Command: publish an event."""

    event: Any


class RunReceived(msgspec.Struct, frozen=True, gc=False):
    """Event: a run from a peer; `new`, or a copy of what is held."""

    run: FeedRun
    new: bool


class Grafted(msgspec.Struct, frozen=True, gc=False):
    """Event: runs that were announced did not arrive in time and are asked for.

    Attributes:
        futile: for too long already.
        peer: the domain that announced them.
        again: it was asked for them before.
        eager: feeds that it should have sent unasked.
    """

    feeds: frozenset[str]
    futile: bool
    peer: Id
    again: bool
    eager: frozenset[str]


class GraftedEarly(msgspec.Struct, frozen=True, gc=False):
    """Event: a peer wants feeds again that it has just refused."""

    peer: Id
    feeds: frozenset[str]


class PeerDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: examine a link."""

    peer: Id


class StepDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: take the next step of something under way."""

    number: int


class LazyDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: the vectors on lazy links have been gathered."""


class FeedsCompareDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: compare vectors with a peer."""


class Overdue(msgspec.Struct, frozen=True, gc=False):
    """Timer: requests without an answer have failed."""


LAZY_DUE, COMPARE_DUE, OVERDUE = LazyDue(), FeedsCompareDue(), Overdue()


MESSAGES = frozenset({LinkRequest, LinkAnswer})
TIMERS = frozenset({PeerDue, StepDue, LazyDue, FeedsCompareDue, Overdue})
