"""The place of one event, by offset, cursor or feed and sequence, and what this domain knows of its path."""

from __future__ import annotations

from dataclasses import dataclass

from eventing.conf import config
from eventing.core.decoding import msgpack_reader
from eventing.core.errors import InvalidCursor, NotFound
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.ids import is_admin
from eventing.core.seals.seals import seal_read
from eventing.core.signing import Signed
from eventing.log import control, federated
from eventing.log.federated import LogHead
from eventing.log.ranges import LogEntry, range_after
from eventing.log.scripts import OWN
from eventing.replication.joining.presenters import own_vector

_signed = msgpack_reader(Signed)


@dataclass(frozen=True, slots=True)
class KnownPath:
    """Knowledge of the path of an event that this domain has.

    Attributes:
        feed, sequence: the event's place in its feed.
        origin: of the feed; None after its seal has left the history.
        held: this domain received the event.
        path: the domains that carried it here, the origin first, as they stated; empty for an own event, and where it is unknown.
        offset, stored_ms: of the event here; None after it has left the history.
    """

    feed: str
    sequence: int
    origin: str | None
    held: bool
    path: tuple[str, ...]
    offset: int | None
    stored_ms: int | None


def path_at(rp: str, place: Cursor | int) -> KnownPath:
    """Return the path of the event at a place of this domain's log.

    Args:
        place: the event's cursor, or its offset in the present epoch.

    Raises InvalidCursor for a cursor of another epoch, NotFound for an event that is not held, and redis.RedisError.
    """
    head = _head(rp)
    if isinstance(place, Cursor):
        place = control.continued(rp, place, now := head.present)
        if place.epoch != now:
            raise InvalidCursor(f"The log's epoch is {now} now; use a cursor of an event in it.", epoch=now)
    offset = place.offset if isinstance(place, Cursor) else place
    entry = _entry(rp, offset)
    if entry is None:
        raise NotFound(f"The event at offset {offset} is not in the history: {head.first} to {head.next - 1} are.")
    own = own_key(head)
    return _known(rp, own if entry.feed_key == OWN else entry.feed_key, entry.sequence, own, True, entry)


def path_of(rp: str, feed: str, sequence: int) -> KnownPath:
    """Return the path of the event `sequence` of a feed; `held` is false for one that is not here yet.

    Raises NotFound for an RP without events, and redis.RedisError.
    """
    head = _head(rp)
    own, vector = own_key(head), own_vector(rp)
    if sequence > vector.get(feed, 0):
        return KnownPath(feed, sequence, config().domain if feed == own else None, False, (), None, None)
    offset = federated.first_lacking(rp, {**vector, feed: sequence - 1}, own)
    entry = _entry(rp, offset)
    found = entry is not None and entry.sequence == sequence and entry.feed_key == (OWN if feed == own else feed)
    return _known(rp, feed, sequence, own, True, entry if found else None)


def own_key(head: LogHead) -> str:
    """Return the key of this domain's own feed."""
    return Feed(config().domain, head.epoch).key


def _head(rp: str) -> LogHead:
    if is_admin(rp):
        raise NotFound("Events of administrative rendezvous points are not sent to other domains.")
    (head,) = federated.heads([rp])
    if head is None:
        raise NotFound("There is no event at this place.")
    return head


def _entry(rp: str, offset: int) -> LogEntry | None:
    entries = range_after(rp, offset - 1, 1).entries
    return entries[0] if entries and entries[0].offset == offset else None


def _known(rp: str, feed: str, sequence: int, own: str, held: bool, entry: LogEntry | None) -> KnownPath:
    seal = federated.seal_of(rp, feed, sequence)
    origin = config().domain if feed == own else None if seal is None else seal_read(_signed(seal.seal)).origin
    return KnownPath(
        feed,
        sequence,
        origin,
        held,
        () if seal is None else seal.path,
        None if entry is None else entry.offset,
        None if entry is None else entry.stored_ms,
    )
