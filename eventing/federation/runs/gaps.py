"""Gaps: what is missing of a feed and cannot come any more, because it left the history of who could send it.

An origin states its floor, the oldest sequence that it keeps, and signs it; floors are carried along with runs, and kept
here to be carried on. A gap up to the floor is accepted at once. Any other is accepted only when no other replica has filled
it for a while (core/federation/exchange.py: gap_accepted), and then held against whoever sent the run behind it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from eventing.core.federation import seals, signing
from eventing.core.federation.seals import BadSeal
from eventing.core.federation.signing import Signed
from eventing.log import control

KEPT_S = 7 * 86_400  # a floor is sent again whenever it is needed; one that nobody needed for so long is forgotten
_encode = msgspec.msgpack.Encoder().encode


class BadFloor(Exception):
    """A statement that is no floor of this RP, or not its origin's; the text is one sentence."""

    def __init__(self, text: str, origin: str, forged: bool) -> None:
        super().__init__(text)
        self.origin = origin
        self.forged = forged


def floor_checked(rp: str, statement: Signed, keys_of: Any) -> seals.Floor:
    """What a floor says. `keys_of(origin)` gives that domain's public keys. Raises BadFloor."""
    try:
        floor = seals.floor_read(statement)
    except BadSeal as error:
        raise BadFloor(str(error), "", False) from None
    if floor.rp != rp:
        raise BadFloor("A floor of another rendezvous point.", floor.origin, True)
    if not seals.signed_by(signing.FLOOR, statement, floor.stated_at_ms, keys_of(floor.origin)):
        raise BadFloor("A floor that its origin did not sign.", floor.origin, True)
    return floor


def floor_keep(rp: str, floor: seals.Floor, statement: Signed) -> None:
    """Keep a checked floor, unless a higher one of that feed is kept."""
    key = floor.feed.key
    held = _floor(_get(rp, "floors", key))
    if held is None or held[0] < floor.first:
        _write(_key(rp, "floors"), key, _encode((floor.first, statement)))


def floors_of(rp: str) -> dict[str, tuple[int, Signed]]:
    """Per feed key, the oldest sequence that the origin keeps, and its statement."""
    kept: Mapping[Any, Any] = control.client().hgetall(_key(rp, "floors"))
    found = {key.decode(): _floor(data) for key, data in kept.items()}
    return {key: floor for key, floor in found.items() if floor is not None}


class Missing(NamedTuple):
    """What a feed is missing here.

    Attributes:
        held: the last sequence before it.
        since: when it was noticed, Unix seconds.
        lacking: by peer, up to which sequence its own runs left it out.
    """

    held: int
    since: float
    lacking: dict[str, int]


def missing(rp: str, feed_key: str, held: int, *, carrier: str, last: int) -> Missing:
    """Note that the carrier's run left out what follows `held` up to `last`; what is known of it. The first note starts the time.

    Notes made at the same time may overwrite each other: the run comes again.
    """
    now = time.time()
    data = _get(rp, "gaps", feed_key)
    known = msgspec.msgpack.decode(data, type=Missing) if data is not None else None
    if known is None or known.held != held:
        known = Missing(held, now, {})
    if known.lacking.get(carrier) != last:
        known = known._replace(lacking={**known.lacking, carrier: last})
        _write(_key(rp, "gaps"), feed_key, _encode(known))
    return known


def filled(rp: str, feed_key: str) -> None:
    """What the feed was missing was given up."""
    control.client().hdel(_key(rp, "gaps"), feed_key)


def _floor(data: bytes | None) -> tuple[int, Signed] | None:
    if data is None:
        return None
    first, statement = msgspec.msgpack.decode(data, type=tuple[int, Signed])
    return first, statement


def _get(rp: str, what: str, name: str) -> bytes | None:
    found: Any = control.client().hget(_key(rp, what), name)
    return found if isinstance(found, bytes) else None


def _write(key: str, name: str, value: bytes) -> None:
    pipeline = control.client().pipeline(transaction=False)
    pipeline.hset(key, name, value)
    pipeline.expire(key, KEPT_S)
    pipeline.execute()


def _key(rp: str, what: str) -> str:
    return f"herald:{{{rp}}}:{what}"
