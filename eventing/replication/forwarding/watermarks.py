"""Watermarks: the links with a peer, one per RP (overlay/broadcast.py), as Redis keeps them. Their vectors say what it lacks.

Requests of the peer and our own to it change links at the same time, in several processes. Every change is a pure function
of the link, written only if the link is as it was read (one script for all links of a request), and made again otherwise.
What is lost here is asked of the peer again, at the cost of one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eventing.log import control
from eventing.log.scripts import script_of
from eventing.overlay import broadcast
from eventing.overlay.broadcast import Link

TRIES_MAX = 8  # of one change; others would have to win as often in the same milliseconds

# KEYS: links, again   ARGV: per change: RP, link as read (empty: none), link as it shall be, when to look again (ms; empty: never)
# Returns the positions (from 0) of those that had changed.
_WRITE = script_of("""
local missed = {}
for at = 1, #ARGV, 4 do
  local rp, before = ARGV[at], ARGV[at + 1]
  if (redis.call('HGET', KEYS[1], rp) or '') == before then
    redis.call('HSET', KEYS[1], rp, ARGV[at + 2])
    if ARGV[at + 3] == '' then redis.call('ZREM', KEYS[2], rp) else redis.call('ZADD', KEYS[2], ARGV[at + 3], rp) end
  else
    missed[#missed + 1] = (at - 1) / 4
  end
end
return missed
""")

Change = Callable[[str, Link], Link]


def links_read(peer: str, rps: Sequence[str]) -> dict[str, Link]:
    """The links with `peer` of these RPs; new ones where there are none."""
    return {rp: broadcast.read(data) for rp, data in _raw(peer, rps).items()}


def links_all(peer: str) -> dict[str, Link]:
    """All links with `peer` that are kept, by RP."""
    kept: Mapping[Any, Any] = control.client().hgetall(_key(peer, "links"))
    return {rp.decode(): broadcast.read(data) for rp, data in sorted(kept.items())}


def links_change(peer: str, rps: Iterable[str], change: Change) -> dict[str, Link]:
    """Change links: `change(rp, link)` is called again for those that somebody else changed meanwhile. Returns them as written."""
    done: dict[str, Link] = {}
    left = list(rps)
    for _ in range(TRIES_MAX):
        if not left:
            break
        before = _raw(peer, left)
        arguments: list[Any] = []
        changing: list[str] = []
        for rp in left:
            link = broadcast.read(before[rp])
            done[rp] = changed = change(rp, link)
            if changed is link or changed == link:
                continue
            again_at = broadcast.again_at(changed)
            when: Any = "" if again_at is None else int(again_at * 1000) + 1  # not before its time
            arguments += [rp, before[rp] or b"", broadcast.stored(changed), when]
            changing.append(rp)
        if not changing:
            break
        missed = control.call(_WRITE, [2, _key(peer, "links"), _key(peer, "again"), *arguments])
        left = [changing[position] for position in missed]
    return done


def links_due(peer: str, now: float, count_max: int) -> list[str]:
    """RPs whose links want to be looked at again by now; each is given once, and again when its link says so anew."""
    key = _key(peer, "again")
    found: Any = control.client().zrangebyscore(key, "-inf", int(now * 1000), start=0, num=count_max)
    if found:
        control.client().zrem(key, *found)
    return [rp.decode() for rp in found]


def look_again(peer: str, rps: Iterable[str], at: float) -> None:
    """Have the links with `peer` of these RPs looked at again at a time (Unix seconds), whatever else their timers say."""
    when = dict.fromkeys(rps, int(at * 1000))
    if when:
        control.client().zadd(_key(peer, "again"), when, lt=True)


def next_due(peer: str) -> float | None:
    """When the next link wants to be looked at, Unix seconds; None if none does."""
    found = control.client().zrange(_key(peer, "again"), 0, 0, withscores=True)
    return float(found[0][1]) / 1000 if found else None


def links_forget(peer: str, rps: Iterable[str]) -> None:
    """Drop the links with `peer` of RPs that are not shared with it any more."""
    gone = list(rps)
    if gone:
        pipeline = control.client().pipeline(transaction=False)
        pipeline.hdel(_key(peer, "links"), *gone)
        pipeline.zrem(_key(peer, "again"), *gone)
        pipeline.execute()


def links_drop(peer: str) -> None:
    """Forget all links with `peer`: what it holds is asked anew."""
    control.client().delete(_key(peer, "links"), _key(peer, "again"))


def _raw(peer: str, rps: Sequence[str]) -> dict[str, bytes | None]:
    if not rps:
        return {}
    found: Any = control.client().hmget(_key(peer, "links"), list(rps))
    return dict(zip(rps, found, strict=True))


def _key(peer: str, what: str) -> str:
    return f"herald:peer:{{{peer}}}:{what}"
