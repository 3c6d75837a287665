"""Holding back: after a start, nothing of the own feed is sealed at a shared RP before its peers have said what they hold.

This domain may have been put back from a copy, SQL and Redis together: then its numbers go on where the copy ended, on
other events than those that the world has under them, and nothing here shows it. A second seal for a place would be proof
of equivocation against us. So at the start all shared RPs are held. One is released when every peer that shares it has
said its vector, or after HOLD_S where some cannot be reached; while a peer says to hold more of our feed than we have
sealed, it is asked for that as for any feed (core/federation/links.py), and its answer, our own seal, begins a new epoch
(services/federation/sealing.py: own_seal_seen). A peer that cannot show it claims in vain, and holds us up HOLD_S_MAX at most.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from eventing.conf import config
from eventing.core.events.feeds import Feed
from eventing.federation.runs import watermarks
from eventing.log import control, federated
from eventing.log.federated import Head
from eventing.log.keys import SEALING_HELD_KEY
from eventing.services.federation.sealing import held_back

HOLD_S = 10.0  # for peers that have not said anything since the start
HOLD_S_MAX = 40.0  # for a claim: asked for four times, a peer has had 10 to 20 s to show what it says to hold
LOOK_S = 0.25  # between two looks at what is held


def hold(rps: Collection[str]) -> None:
    """Hold back the own feeds of these RPs from now on."""
    if rps:
        now = time.time()
        control.client().zadd(SEALING_HELD_KEY, dict.fromkeys(rps, now), nx=True)


def look(peer: str, links: Mapping[str, Collection[str]]) -> None:
    """Release those of the RPs that may be sealed now; `links` names the peers that share each. The others are looked at again soon."""
    since = held_back(list(links))
    if not since:
        return
    now = time.time()
    heads = dict(zip(since, federated.heads(list(since)), strict=True))
    waiting = {rp for rp in since if _must_wait(rp, heads[rp], links[rp], now - since[rp])}
    released = [rp for rp in since if rp not in waiting]
    if released:
        control.client().zrem(SEALING_HELD_KEY, *released)
    watermarks.look_again(peer, waiting, now + LOOK_S)


def _must_wait(rp: str, head: Head | None, peers: Collection[str], held_s: float) -> bool:
    if head is None or held_s > HOLD_S_MAX:
        return False
    own = Feed(config().domain, head.epoch).key
    links = [watermarks.links_read(peer, [rp])[rp] for peer in peers]
    if any(link.theirs.get(own, 0) > head.sealed for link in links):
        return True
    return held_s < HOLD_S and not all(link.met for link in links)
