"""Gaps: what is missing of a feed and cannot come any more, because it left the history of who could send it.

An origin states its floor, the oldest sequence that it keeps, and signs it; floors are carried along with runs, and kept
here to be carried on. A gap up to the floor is accepted at once. Any other is accepted only when no other replica has filled
it for a while (overlay/exchange.py: gap_accepted), and then held against whoever sent the run behind it.

Both are kept in a hash per RP, of FEEDS_MAX fields at most, whoever sends what: floors of feeds that are here, come with them
or are said to be held by who sends them, notes of gaps of ORIGIN_NOTES_MAX feeds of an origin that are not here yet.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from eventing.core import signing
from eventing.core.decoding import msgpack_reader
from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.seals import seals
from eventing.core.seals.seals import BadSeal
from eventing.core.signing import Signed
from eventing.log import control
from eventing.log.scripts import script_of
from eventing.overlay.exchange import GAP_PATIENCE_S_MAX

ORIGIN_NOTES_MAX = 4  # feeds of one origin that are not held and of which it is noted what is missing
NOTE_S_MAX = (
    2 * GAP_PATIENCE_S_MAX
)  # a note that is older is of a feed that did not come again: it would have been taken
KEPT_S = 7 * 86_400  # a floor is sent again whenever it is needed; one that nobody needed for so long is forgotten
_encode = msgspec.msgpack.Encoder().encode

# KEYS: hash   ARGV: most fields, seconds to keep it, number D of fields to drop, D fields, then per field to write: name, value
_KEEP = script_of("""
local most, dropped = tonumber(ARGV[1]), tonumber(ARGV[3])
for at = 4, 3 + dropped do redis.call('HDEL', KEYS[1], ARGV[at]) end
for at = 4 + dropped, #ARGV, 2 do
  if redis.call('HEXISTS', KEYS[1], ARGV[at]) == 1 or redis.call('HLEN', KEYS[1]) < most then
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
""")

KeptFloor = tuple[int, Signed]  # the oldest sequence that an origin keeps of a feed, and its statement
_kept_floor = msgpack_reader(tuple[int, Signed])


class BadFloor(Exception):
    """A statement that is no floor of this RP, or not its origin's; the text is one sentence."""

    def __init__(self, text: str, origin: str, forged: bool) -> None:
        super().__init__(text)
        self.origin = origin
        self.forged = forged


def floor_read(rp: str, statement: Signed) -> seals.Floor:
    """What a floor says; who signed it is not looked at (`floor_signed`). Raises BadFloor."""
    try:
        floor = seals.floor_read(statement)
    except BadSeal as error:
        raise BadFloor(str(error), "", False) from None
    if floor.rp != rp:
        raise BadFloor("A floor of another rendezvous point.", floor.origin, True)
    return floor


def floor_signed(floor: seals.Floor, statement: Signed, keys_of: Any) -> None:
    """Verify who signed a floor. `keys_of(origin)` gives that domain's public keys. Raises BadFloor."""
    if not seals.signed_by(signing.FLOOR, statement, floor.stated_at_ms, keys_of(floor.origin)):
        raise BadFloor("A floor that its origin did not sign.", floor.origin, True)


def floors_keep(rps: Mapping[str, tuple[Mapping[str, KeptFloor], Collection[str]]]) -> None:
    """Keep checked floors: for each RP, those by feed key, and the feeds whose floors are of no use any more. One round trip."""
    arguments = [
        _keep_args(rp, "floors", {feed: _encode(floor) for feed, floor in floors.items()}, gone)
        for rp, (floors, gone) in rps.items()
        if floors
    ]
    for answer in control.call_all(_KEEP, arguments):
        if isinstance(answer, Exception):
            raise answer


def floors_of(rp: str) -> dict[str, KeptFloor]:
    """Per feed key, the oldest sequence that the origin keeps, and its statement."""
    return floors_all([rp])[rp]


def floors_all(rps: Sequence[str]) -> dict[str, dict[str, KeptFloor]]:
    """As `floors_of`, for several RPs in one round trip."""
    if not rps:
        return {}
    pipeline = control.client().pipeline(transaction=False)
    for rp in rps:
        pipeline.hgetall(_key(rp, "floors"))
    return {
        rp: {feed.decode(): _kept_floor(data) for feed, data in kept.items()}
        for rp, kept in zip(rps, pipeline.execute(), strict=True)
    }


def gone(rp: str) -> dict[str, int]:
    """Per feed key, up to which sequence the origin keeps nothing any more."""
    return {feed: first - 1 for feed, (first, _) in floors_of(rp).items()}


class Missing(NamedTuple):
    """What a feed is missing here.

    Attributes:
        held: the last sequence before it.
        since: when it was noticed, Unix seconds.
        lacking: by peer, up to which sequence its own runs left it out.
        origin: whose feed it is.
    """

    held: int
    since: float
    lacking: dict[str, int]
    origin: str = ""


_missing = msgpack_reader(Missing)


def missing(
    rp: str, feed_key: str, held: int, *, carrier: str, last: int, origin: str, foreign: Mapping[str, int]
) -> Missing:
    """Note that the carrier's run left out what follows `held` up to `last`; what is known of it. The first note starts the time.

    Notes made at the same time may overwrite each other: the run comes again. Where there is no room for a note, no time
    passes: the run waits for what is missing.

    Args:
        origin: whose feed it is.
        foreign: the last sequence held of each feed.
    """
    now = time.time()
    data: Any = control.client().hget(_key(rp, "gaps"), feed_key)
    known = _missing(data) if data is not None else None
    gone: list[str] = []
    if known is None:
        notes = _notes(rp)
        gone = [feed for feed, note in notes.items() if _over(note, foreign.get(feed, 0), now)]
        coming = sum(note.origin == origin for feed, note in notes.items() if feed not in foreign and feed not in gone)
        if feed_key not in foreign and coming >= ORIGIN_NOTES_MAX:
            return Missing(held, now, {}, origin)
    if known is None or known.held != held:
        known = Missing(held, now, {}, origin)
    if known.lacking.get(carrier) != last:
        known = known._replace(lacking={**known.lacking, carrier: last})
        control.call(_KEEP, _keep_args(rp, "gaps", {feed_key: _encode(known)}, gone))
    return known


def filled(rp: str, feed_key: str) -> None:
    """What the feed was missing was given up."""
    control.client().hdel(_key(rp, "gaps"), feed_key)


def _notes(rp: str) -> dict[str, Missing]:
    kept: Mapping[Any, Any] = control.client().hgetall(_key(rp, "gaps"))
    return {feed.decode(): _missing(data) for feed, data in kept.items()}


def _over(note: Missing, held: int, now: float) -> bool:
    """Whether what was missing has come meanwhile, or nobody has asked for it for long."""
    return note.held != held or now - note.since > NOTE_S_MAX


def _keep_args(rp: str, what: str, fields: Mapping[str, bytes], gone: Collection[str]) -> list[Any]:
    pairs = [part for pair in sorted(fields.items()) for part in pair]
    return [1, _key(rp, what), FEEDS_MAX, KEPT_S, len(gone), *sorted(gone), *pairs]


def _key(rp: str, what: str) -> str:
    return f"herald:{{{rp}}}:{what}"
