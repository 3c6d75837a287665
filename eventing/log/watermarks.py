"""Watermarks: the links with a peer, one per RP (overlay/broadcast.py), as kept in Redis. Their vectors show what the
peer lacks.

Requests of the peer and requests to it change links at the same time, in several processes. Every change is a pure
function of the link, written only if the link is still as it was read (one script for all links of a request), and
repeated otherwise. Lost state is requested from the peer again, at the cost of one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eventing.log import scripts
from eventing.overlay import link_state, stored_links
from eventing.overlay.link_state import Link
from eventing.store.client import client, run_script
from eventing.store.keys import peer_key

TRIES_MAX = 8  # attempts at one change; each fails only if another process changed it in the same milliseconds

Change = Callable[[str, Link], Link]
SeenLinks = dict[str, tuple[bytes | None, Link]]
"""Links by RP as one caller has read or written them last, with their stored form."""


def links_read(peer: str, rps: Sequence[str], seen: SeenLinks | None = None) -> dict[str, Link]:
    """Return the links with `peer` of these RPs; new ones where there are none.

    Args:
        seen: filled, for `links_change`.
    """
    read = {rp: (data, stored_links.read(data)) for rp, data in _raw(peer, rps).items()}
    if seen is not None:
        seen.update(read)
    return {rp: link for rp, (_, link) in read.items()}


def links_of_peers(rps: Mapping[str, Iterable[str]]) -> dict[str, dict[str, Link]]:
    """Return the links with several peers, each of its RPs, in one round trip."""
    wanted = {peer: list(some) for peer, some in rps.items()}
    pipeline = client().pipeline(transaction=False)
    for peer, some in wanted.items():
        pipeline.hmget(peer_key(peer, "links"), some)
    found = zip(wanted.items(), pipeline.execute(), strict=True)
    return {peer: dict(zip(some, map(stored_links.read, data), strict=True)) for (peer, some), data in found}


def links_all(peer: str) -> dict[str, Link]:
    """Return all stored links with `peer`, by RP."""
    kept: Mapping[Any, Any] = client().hgetall(peer_key(peer, "links"))
    return {rp.decode(): stored_links.read(data) for rp, data in sorted(kept.items())}


def links_change(peer: str, rps: Iterable[str], change: Change, seen: SeenLinks | None = None) -> dict[str, Link]:
    """Change links: `change(rp, link)` is called again for those that another process changed meanwhile. Returns them
    as written.

    Args:
        seen: links that need not be read, as they are seldom changed meanwhile; kept up to date for the next call.
    """
    done: dict[str, Link] = {}
    left = list(rps)
    held = {} if seen is None else seen
    for _ in range(TRIES_MAX):
        if not left:
            break
        for rp, data in _raw(peer, [rp for rp in left if rp not in held]).items():
            held[rp] = data, stored_links.read(data)
        arguments: list[Any] = []
        changing: list[str] = []
        for rp in left:
            before, link = held[rp]
            done[rp] = changed = change(rp, link)
            if changed is link or changed == link:
                continue
            again_at = link_state.again_at(changed)
            when: Any = "" if again_at is None else int(again_at * 1000) + 1  # not before its time
            after = stored_links.stored(changed)
            held[rp] = after, changed
            arguments += [rp, before or b"", after, when]
            changing.append(rp)
        if not changing:
            break
        missed = run_script(scripts.LINKS_WRITE, [2, peer_key(peer, "links"), peer_key(peer, "again"), *arguments])
        left = [changing[position] for position in missed]
        for rp in left:
            del held[rp]
    return done


def links_due(peer: str, now: float, count_max: int) -> list[str]:
    """Return RPs whose links' timers have expired; each is returned once, and again for a new timer."""
    key = peer_key(peer, "again")
    found: Any = client().zrangebyscore(key, "-inf", int(now * 1000), start=0, num=count_max)
    if found:
        client().zrem(key, *found)
    return [rp.decode() for rp in found]


def check_again(peer: str, rps: Iterable[str], at: float) -> None:
    """Set the timer of the links with `peer` of these RPs to a time (Unix seconds), whatever their own timers."""
    when = dict.fromkeys(rps, int(at * 1000))
    if when:
        client().zadd(peer_key(peer, "again"), when, lt=True)


def links_forget(peer: str, rps: Iterable[str]) -> None:
    """Delete the links with `peer` of RPs that are no longer shared with it."""
    gone = list(rps)
    if gone:
        pipeline = client().pipeline(transaction=False)
        pipeline.hdel(peer_key(peer, "links"), *gone)
        pipeline.zrem(peer_key(peer, "again"), *gone)
        pipeline.execute()


def links_drop(peer: str) -> None:
    """Delete all links with `peer`: its vectors are requested anew."""
    client().delete(peer_key(peer, "links"), peer_key(peer, "again"))


def _raw(peer: str, rps: Sequence[str]) -> dict[str, bytes | None]:
    if not rps:
        return {}
    found: Any = client().hmget(peer_key(peer, "links"), list(rps))
    return dict(zip(rps, found, strict=True))
