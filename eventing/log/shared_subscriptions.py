"""State of shared durable subscriptions in the data plane: the delivering holder, and the acknowledged sequence of each
feed.

Each subscription has one hash: `s` the standing (overlay/takeover.py), `l` the line that carried it, and for each feed
the acknowledged sequence. Standings are computed by a pure function and written only if unchanged since they were read;
acknowledgements only grow, whichever process writes them. The hash expires some time after the subscription; a lost
hash is restored from other holders. One sorted set orders the subscriptions with something due by time, so that the
sweep's cost follows their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import redis.asyncio

from eventing.log import scripts
from eventing.overlay.takeover import HolderStanding
from eventing.store import keys
from eventing.store.client import client as own_client
from eventing.store.client import run_script, run_script_all
from eventing.store.lease import LeaderLease

FEEDS_MAX = 130  # acknowledged feeds stored per subscription: twice those of a vector, for ended epochs
KEPT_S = 86_400  # seconds after the subscription's lease
_STANDING, _LINE = b"s", b"l"


class Kept(NamedTuple):
    """Stored state of one subscription. `raw` is the standing as read, empty for none; `line` is packed."""

    standing: HolderStanding | None
    acked: dict[str, int]
    line: bytes
    raw: bytes


class SubscriptionKey(NamedTuple):
    """A subscription: id of its RP, and its own id."""

    rp: str
    id: str


class StandingChange(NamedTuple):
    """A standing to be written; `before` as it was read, `line` empty to leave the stored line."""

    place: SubscriptionKey
    before: bytes
    standing: HolderStanding
    line: bytes
    keep_s: int


def read_all(places: Sequence[SubscriptionKey]) -> list[Kept]:
    """Read the state of each, in one round trip."""
    pipeline = own_client().pipeline(transaction=False)
    for place in places:
        pipeline.hgetall(keys.shared_key(*place))
    return [_kept(found) for found in pipeline.execute()]


def write_all(changes: Sequence[StandingChange]) -> list[bool]:
    """Write standings; False for one that another process changed in the meantime."""
    answers = run_script_all(
        scripts.SHARED_WRITE,
        [
            [1, keys.shared_key(*one.place), one.before, _packed(one.standing), one.line, max(1, one.keep_s)]
            for one in changes
        ],
    )
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer == 1 for answer in answers]


def join(place: SubscriptionKey, acked: Mapping[str, int], keep_s: int) -> int:
    """Join the acknowledged vector with `acked`, and keep it for `keep_s` from now. Returns the number of feeds that grew."""
    return int(run_script(scripts.SHARED_JOIN, _join_args(place, acked, keep_s)))


async def standings(client: redis.asyncio.Redis, places: Sequence[SubscriptionKey]) -> list[HolderStanding | None]:
    """Read standings, in one round trip; for the gateway."""
    pipeline = client.pipeline(transaction=False)
    for place in places:
        pipeline.hget(keys.shared_key(*place), _STANDING)
    return [_unpacked(found) for found in await pipeline.execute()]


async def acknowledged(client: redis.asyncio.Redis, place: SubscriptionKey) -> dict[str, int]:
    """Read the vector of acknowledged sequences; for the gateway."""
    found: Any = client.hgetall(keys.shared_key(*place))
    return _kept(await found).acked


async def kept_of(client: redis.asyncio.Redis, places: Sequence[SubscriptionKey]) -> list[Kept]:
    """Read the state of each, in one round trip; for the deliverer."""
    pipeline = client.pipeline(transaction=False)
    for place in places:
        pipeline.hgetall(keys.shared_key(*place))
    return [_kept(found) for found in await pipeline.execute()]


async def acknowledge(
    client: redis.asyncio.Redis, place: SubscriptionKey, acked: Iterable[Mapping[str, int]], keep_s: int
) -> None:
    """Join each of these vectors, and keep the result for `keep_s`, in one round trip; the next sweep notifies the
    other holders."""
    pipeline = client.pipeline(transaction=False)
    for vector in acked:
        pipeline.eval(scripts.SHARED_JOIN.text, *_join_args(place, vector, keep_s))
    pipeline.zadd(keys.SHARED_DUE_KEY, {place.id: 0})
    await pipeline.execute()


def due_set(when: Mapping[str, int]) -> None:
    """Schedule subscriptions, each at a time (Unix milliseconds)."""
    if when:
        own_client().zadd(keys.SHARED_DUE_KEY, dict(when))


def due_add(ids: Iterable[str], at_ms: int) -> int:
    """Schedule the subscriptions that are not yet scheduled. Returns their number."""
    wanted = dict.fromkeys(ids, at_ms)
    added: Any = own_client().zadd(keys.SHARED_DUE_KEY, dict(wanted), nx=True) if wanted else 0
    return int(added)


def due(now_ms: int, count_max: int) -> list[str]:
    """Return ids of the subscriptions that are due, the longest due first."""
    found: Any = own_client().zrangebyscore(keys.SHARED_DUE_KEY, "-inf", now_ms, start=0, num=count_max)
    return [one.decode() for one in found]


def due_forget(ids: Sequence[str]) -> None:
    """Remove subscriptions from the schedule."""
    if ids:
        own_client().zrem(keys.SHARED_DUE_KEY, *ids)


def sweep_lease(owner: str, duration_ms: int) -> LeaderLease:
    """Make the lease of the sweep, for one process of the domain at a time."""
    return LeaderLease(keys.SHARED_TURN_KEY, owner, duration_ms)


def indexed() -> bool:
    """Return True if `index_begin` has recently returned True."""
    return bool(own_client().exists(keys.SHARED_INDEXED_KEY))


def index_begin(kept_s: int) -> bool:
    """Return True if the schedule must be compared with all held subscriptions now; once in `kept_s`."""
    return bool(own_client().set(keys.SHARED_INDEXED_KEY, "1", nx=True, ex=kept_s))


def _join_args(place: SubscriptionKey, acked: Mapping[str, int], keep_s: int) -> list[Any]:
    pairs = [value for feed in sorted(acked) for value in (feed, acked[feed])]
    return [1, keys.shared_key(*place), FEEDS_MAX, max(1, keep_s), *pairs]


def _packed(standing: HolderStanding) -> str:
    return f"{standing.term} {standing.beat} {standing.until_ms} {standing.deliverer}"


def _unpacked(text: bytes | None) -> HolderStanding | None:
    if not text:
        return None
    term, beat, until_ms, deliverer = text.decode().split(" ", 3)
    return HolderStanding(int(term), deliverer, int(beat), int(until_ms))


def _kept(found: Mapping[bytes, bytes]) -> Kept:
    raw = found.get(_STANDING, b"")
    acked = {name.decode(): int(value) for name, value in found.items() if name not in (_STANDING, _LINE)}
    return Kept(_unpacked(raw), acked, found.get(_LINE, b""), raw)
