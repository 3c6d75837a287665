"""Gaps: missing sequences of a feed that cannot arrive any more, because they were trimmed where they could be sent
from.

An origin signs its low-water mark, the oldest sequence that it keeps; low-water marks are carried along with runs, and
kept here to be carried on. A gap up to the low-water mark is accepted at once. Any other is accepted only when no other
replica has filled it for a while (overlay/exchange.py: gap_accepted), and then held against the peer that sent the run
behind it.

Both are kept in a hash per RP, of FEEDS_MAX fields at most, whatever peers send: low-water marks of feeds that are
here, that have a run in the request, or that the sender states to hold; notes of gaps of ORIGIN_NOTES_MAX feeds of an
origin that are not here yet.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from eventing.core.decoding import msgpack_reader
from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.signing import Signed
from eventing.log import scripts
from eventing.overlay.exchange import GAP_PATIENCE_S_MAX
from eventing.store.client import client, run_script, run_script_all
from eventing.store.keys import floors_key, gaps_key

# bound: recorded gaps in feeds of one origin that are not held here; a run behind another gap waits for the missing events
ORIGIN_NOTES_MAX = 4
NOTE_S_MAX = 2 * GAP_PATIENCE_S_MAX  # an older note is of a feed that did not arrive again: it would have been accepted
KEPT_S = 7 * 86_400  # a low-water mark is sent again whenever needed; an unused one is deleted after this time
_encode = msgspec.msgpack.Encoder().encode

KeptLowWaterMark = tuple[int, Signed]  # the oldest sequence that an origin keeps of a feed, and its statement
_kept_low_water_mark = msgpack_reader(tuple[int, Signed])


def low_water_marks_keep(rps: Mapping[str, tuple[Mapping[str, KeptLowWaterMark], Collection[str]]]) -> None:
    """Keep verified low-water marks: for each RP, those by feed key, and the feeds whose marks are obsolete. One round
    trip.
    """
    arguments = [
        _keep_args(
            floors_key(rp), {feed: _encode(low_water_mark) for feed, low_water_mark in low_water_marks.items()}, gone
        )
        for rp, (low_water_marks, gone) in rps.items()
        if low_water_marks
    ]
    for answer in run_script_all(scripts.FIELDS_KEEP, arguments):
        if isinstance(answer, Exception):
            raise answer


def low_water_marks_of(rp: str) -> dict[str, KeptLowWaterMark]:
    """Return per feed key the oldest sequence that the origin keeps, and its statement."""
    return low_water_marks_all([rp])[rp]


def low_water_marks_all(rps: Sequence[str]) -> dict[str, dict[str, KeptLowWaterMark]]:
    """Return `low_water_marks_of` several RPs in one round trip."""
    if not rps:
        return {}
    pipeline = client().pipeline(transaction=False)
    for rp in rps:
        pipeline.hgetall(floors_key(rp))
    return {
        rp: {feed.decode(): _kept_low_water_mark(data) for feed, data in kept.items()}
        for rp, kept in zip(rps, pipeline.execute(), strict=True)
    }


def gone(rp: str) -> dict[str, int]:
    """Return per feed key the sequence up to which the origin keeps nothing any more."""
    return {feed: first - 1 for feed, (first, _) in low_water_marks_of(rp).items()}


class MissingEvents(NamedTuple):
    """A gap of a feed here.

    Attributes:
        held: the last sequence before it.
        since: when it was noticed, Unix seconds.
        lacking: by peer, the sequence up to which its own runs left it out.
        origin: the origin of the feed.
    """

    held: int
    since: float
    lacking: dict[str, int]
    origin: str = ""


_missing = msgpack_reader(MissingEvents)


def missing(
    rp: str, feed_key: str, held: int, *, carrier: str, last: int, origin: str, foreign: Mapping[str, int]
) -> MissingEvents:
    """Record that the carrier's run left out what follows `held` up to `last`; return what is known of the gap. The
    first note starts the time.

    Concurrent notes may overwrite each other: the run arrives again. Without room for a note no time passes: the run
    waits for what is missing.

    Args:
        origin: the origin of the feed.
        foreign: the last sequence held of each feed.
    """
    now = time.time()
    data: Any = client().hget(gaps_key(rp), feed_key)
    known = _missing(data) if data is not None else None
    gone: list[str] = []
    if known is None:
        notes = _notes(rp)
        gone = [feed for feed, note in notes.items() if _over(note, foreign.get(feed, 0), now)]
        coming = sum(note.origin == origin for feed, note in notes.items() if feed not in foreign and feed not in gone)
        if feed_key not in foreign and coming >= ORIGIN_NOTES_MAX:
            return MissingEvents(held, now, {}, origin)
    if known is None or known.held != held:
        known = MissingEvents(held, now, {}, origin)
    if known.lacking.get(carrier) != last:
        known = known._replace(lacking={**known.lacking, carrier: last})
        run_script(scripts.FIELDS_KEEP, _keep_args(gaps_key(rp), {feed_key: _encode(known)}, gone))
    return known


def filled(rp: str, feed_key: str) -> None:
    """Delete the note of the feed's gap, which was given up."""
    client().hdel(gaps_key(rp), feed_key)


def _notes(rp: str) -> dict[str, MissingEvents]:
    kept: Mapping[Any, Any] = client().hgetall(gaps_key(rp))
    return {feed.decode(): _missing(data) for feed, data in kept.items()}


def _over(note: MissingEvents, held: int, now: float) -> bool:
    """Return True if the missing events have arrived, or the note is too old."""
    return note.held != held or now - note.since > NOTE_S_MAX


def _keep_args(key: str, fields: Mapping[str, bytes], gone: Collection[str]) -> list[Any]:
    pairs = [part for pair in sorted(fields.items()) for part in pair]
    return [1, key, FEEDS_MAX, KEPT_S, len(gone), *sorted(gone), *pairs]
