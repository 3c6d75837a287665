"""What moves about shared durable subscriptions, in the data plane: who delivers, and what is acknowledged of each feed.

Per subscription one hash: `s` the standing (overlay/takeover.py), `l` the line that it came by, and for each feed the sequence
acknowledged. Standings change by a pure function and are written only if they are as they were read; acknowledgements only
grow, whoever writes them. All of it ends by itself after the subscription: a lost hash is learnt again from other holders.
The subscriptions that something is due for are in one sorted set by time, so that the sweep's cost follows those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import redis.asyncio

from eventing.log import control
from eventing.log.scripts import script_of
from eventing.overlay.takeover import Standing
from eventing.store import keys

FEEDS_MAX = 130  # acknowledged of one subscription that are kept: twice what a vector has, for epochs that ended
KEPT_S = 86_400  # after the subscription's lease
_STANDING, _LINE = b"s", b"l"

# KEYS: hash   ARGV: standing as read (empty: none), standing, line (empty: as it is), seconds to keep it
_WRITE = script_of("""
if (redis.call('HGET', KEYS[1], 's') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 's', ARGV[2])
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'l', ARGV[3]) end
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
""")

# KEYS: hash   ARGV: feeds that may be kept, seconds to keep it, then feed and sequence of each. Returns how many grew.
_JOIN = script_of("""
local grew, room = 0, tonumber(ARGV[1]) + 2 - redis.call('HLEN', KEYS[1])
for at = 3, #ARGV, 2 do
  local held = redis.call('HGET', KEYS[1], ARGV[at])
  if (held and tonumber(held) < tonumber(ARGV[at + 1])) or (not held and room > 0) then
    if not held then room = room - 1 end
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    grew = grew + 1
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return grew
""")


class Kept(NamedTuple):
    """What is kept of one subscription. `raw` is the standing as it was read, empty for none; `line` is packed."""

    standing: Standing | None
    acked: dict[str, int]
    line: bytes
    raw: bytes


class Place(NamedTuple):
    """A subscription: id of the RP read, and its own."""

    rp: str
    id: str


class Change(NamedTuple):
    """A standing that shall be written; `before` as it was read, `line` empty to leave that as it is."""

    place: Place
    before: bytes
    standing: Standing
    line: bytes
    keep_s: int


def read_all(places: Sequence[Place]) -> list[Kept]:
    """What is kept of each, in one round trip."""
    pipeline = control.client().pipeline(transaction=False)
    for place in places:
        pipeline.hgetall(keys.shared_key(*place))
    return [_kept(found) for found in pipeline.execute()]


def write_all(changes: Sequence[Change]) -> list[bool]:
    """Write standings; False for one that somebody else changed meanwhile."""
    answers = control.call_all(
        _WRITE,
        [
            [1, keys.shared_key(*one.place), one.before, _packed(one.standing), one.line, max(1, one.keep_s)]
            for one in changes
        ],
    )
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer == 1 for answer in answers]


def join(place: Place, acked: Mapping[str, int], keep_s: int) -> int:
    """Add what is acknowledged; nothing goes back. Returns of how many feeds it was more than known."""
    return int(control.call(_JOIN, _join_args(place, acked, keep_s)))


async def standings(client: redis.asyncio.Redis, places: Sequence[Place]) -> list[Standing | None]:
    """The standings, in one round trip; for the gateway."""
    pipeline = client.pipeline(transaction=False)
    for place in places:
        pipeline.hget(keys.shared_key(*place), _STANDING)
    return [_unpacked(found) for found in await pipeline.execute()]


async def acknowledged(client: redis.asyncio.Redis, place: Place) -> dict[str, int]:
    """The vector of what is acknowledged; for the gateway."""
    found: Any = client.hgetall(keys.shared_key(*place))
    return _kept(await found).acked


async def acknowledge(
    client: redis.asyncio.Redis, place: Place, acked: Iterable[Mapping[str, int]], keep_s: int
) -> None:
    """Join each of these vectors, in one round trip, and have the other holders notified by the next sweep; for the gateway."""
    pipeline = client.pipeline(transaction=False)
    for vector in acked:
        pipeline.eval(_JOIN.text, *_join_args(place, vector, keep_s))
    pipeline.zadd(keys.SHARED_DUE_KEY, {place.id: 0})
    await pipeline.execute()


def due_set(when: Mapping[str, int]) -> None:
    """Have subscriptions looked at, at a time each (Unix milliseconds)."""
    if when:
        control.client().zadd(keys.SHARED_DUE_KEY, dict(when))


def due_add(ids: Iterable[str], at_ms: int) -> int:
    """Have those looked at that nothing is known to be due for. Returns how many those are."""
    wanted = dict.fromkeys(ids, at_ms)
    added: Any = control.client().zadd(keys.SHARED_DUE_KEY, dict(wanted), nx=True) if wanted else 0
    return int(added)


def due(now_ms: int, count_max: int) -> list[str]:
    """Ids of the subscriptions that something is due for, the longest due first."""
    found: Any = control.client().zrangebyscore(keys.SHARED_DUE_KEY, "-inf", now_ms, start=0, num=count_max)
    return [one.decode() for one in found]


def due_forget(ids: Sequence[str]) -> None:
    """Look at these no more."""
    if ids:
        control.client().zrem(keys.SHARED_DUE_KEY, *ids)


def turn_take(token: str, hold_ms: int) -> bool:
    """Take the turn to sweep, for at most `hold_ms`; False while another has it."""
    return bool(control.client().set(keys.SHARED_TURN_KEY, token, nx=True, px=hold_ms))


def turn_end(token: str) -> None:
    """Give the turn back, if it is still ours."""
    control.client().eval(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end", 1, keys.SHARED_TURN_KEY, token
    )


def _join_args(place: Place, acked: Mapping[str, int], keep_s: int) -> list[Any]:
    pairs = [value for feed in sorted(acked) for value in (feed, acked[feed])]
    return [1, keys.shared_key(*place), FEEDS_MAX, max(1, keep_s), *pairs]


def _packed(standing: Standing) -> str:
    return f"{standing.term} {standing.beat} {standing.until_ms} {standing.deliverer}"


def _unpacked(text: bytes | None) -> Standing | None:
    if not text:
        return None
    term, beat, until_ms, deliverer = text.decode().split(" ", 3)
    return Standing(int(term), deliverer, int(beat), int(until_ms))


def _kept(found: Mapping[bytes, bytes]) -> Kept:
    raw = found.get(_STANDING, b"")
    acked = {name.decode(): int(value) for name, value in found.items() if name not in (_STANDING, _LINE)}
    return Kept(_unpacked(raw), acked, found.get(_LINE, b""), raw)
