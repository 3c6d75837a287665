"""Holding back: nothing of the own feed is sealed at a shared RP before its peers have said what they hold.

This domain may have been put back from a copy, SQL and Redis together: then its numbers go on where the copy ended, on
other events than those that the world has under them, and nothing here shows it. A second seal for a place would be proof
of equivocation against us. So at the start all shared RPs are held. One is released when every peer that shares it has
said its vector, or after HOLD_S where some cannot be reached.

A peer that says to hold more of our feed than we have sealed has the RP held, whenever it says so: it may have been out of
reach since the start, or share the RP since then only. It is asked for that as for any feed (core/federation/links.py), and
its answer, our own seal, begins a new epoch (services/federation/sealing.py: own_seal_seen). A peer that cannot show it claims
in vain, and holds us up for HOLD_S_MAX from its first claim; what it claims later is not waited for, until CLAIM_KEPT_S after
that or the next start.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from eventing.conf import config
from eventing.core.events.feeds import Feed
from eventing.federation.runs import watermarks
from eventing.log import control, federated
from eventing.log.federated import Head
from eventing.log.keys import SEALING_CLAIMS_KEY, SEALING_HELD_KEY
from eventing.services.federation.sealing import held_back

HOLD_S = 10.0  # for peers that have not said anything since the start
HOLD_S_MAX = 40.0  # for a peer's claim: asked for four times, it has had 10 to 20 s to show what it says to hold
CLAIM_KEPT_S = 86_400.0  # after its first claim at an RP, no other of that peer is waited for there
LOOK_S = 0.25  # between two looks at what is held


def begin() -> None:
    """At a start, claims count anew: those that are known may be older than the copy that this domain was put back from.

    Not so what is younger than HOLD_S_MAX, here and in `hold`: starts that follow each other closely do not add up.
    """
    now = time.time()
    control.client().zremrangebyscore(SEALING_CLAIMS_KEY, "-inf", now - HOLD_S_MAX)
    control.client().zremrangebyscore(SEALING_CLAIMS_KEY, f"({now}", "+inf")


def hold(rps: Sequence[str]) -> None:
    """Hold back the own feeds of these RPs from now on."""
    now = time.time()
    known = held_back(rps)
    anew = [rp for rp in rps if not 0 <= now - known.get(rp, 0.0) < HOLD_S_MAX]
    if anew:
        control.client().zadd(SEALING_HELD_KEY, dict.fromkeys(anew, now))


def claimed(peer: str, rps: Sequence[str]) -> None:
    """The peer says to hold more of our feed at these RPs than is sealed: hold them back, unless it has had its time."""
    if not rps:
        return
    now = time.time()
    control.client().zremrangebyscore(SEALING_CLAIMS_KEY, "-inf", now - CLAIM_KEPT_S)
    claims = [f"{rp} {peer}" for rp in rps]
    control.client().zadd(SEALING_CLAIMS_KEY, dict.fromkeys(claims, now), nx=True)
    believed = [rp for rp, counts in zip(rps, _count(claims, now), strict=True) if counts]
    if believed:
        control.client().zadd(SEALING_HELD_KEY, dict.fromkeys(believed, now), nx=True)


def claims_of(have: Mapping[str, Mapping[str, int]], heads: Mapping[str, Head | None]) -> list[str]:
    """The RPs at which a peer with these vectors holds more of our feed than is sealed by these heads."""
    me = config().domain
    return [
        rp
        for rp, vector in have.items()
        if (head := heads[rp]) is not None and vector.get(Feed(me, head.epoch).key, 0) > head.sealed
    ]


def look(peer: str, links: Mapping[str, Collection[str]]) -> None:
    """Release those of the RPs that may be sealed now; `links` names the peers that share each. The others are looked at again soon."""
    since = held_back(list(links))
    if not since:
        return
    now = time.time()
    heads = dict(zip(since, federated.heads(list(since)), strict=True))
    waiting = {rp for rp in since if _must_wait(rp, heads[rp], links[rp], now, now - since[rp])}
    released = [rp for rp in since if rp not in waiting]
    if released:
        control.client().zrem(SEALING_HELD_KEY, *released)
    watermarks.look_again(peer, waiting, now + LOOK_S)


def _must_wait(rp: str, head: Head | None, peers: Collection[str], now: float, held_s: float) -> bool:
    if head is None:
        return False
    links = {peer: watermarks.links_read(peer, [rp])[rp] for peer in peers}
    claiming = [peer for peer, link in links.items() if claims_of({rp: link.theirs}, {rp: head})]
    if claiming and any(_count([f"{rp} {peer}" for peer in claiming], now)):
        return True
    return held_s < HOLD_S and not all(link.met for link in links.values())


def _count(claims: Sequence[str], now: float) -> list[bool]:
    """Whether these claims are waited for."""
    since: Any = control.client().zmscore(SEALING_CLAIMS_KEY, list(claims))
    return [at is not None and now - at < HOLD_S_MAX for at in since]
