"""Holding back: nothing of the own feed is sealed at a shared RP before its peers have stated their vectors.

This domain may have been put back from a copy, SQL and Redis together: then its sequences continue where the copy ended, for
other events than those that other domains hold under them, and nothing here shows it. A second seal for a place would be proof
of equivocation against this domain. So all shared RPs are held at the start. An RP is released when every peer that shares it
has stated its vector, or HOLD_S after the first of them where some cannot be reached.

A peer may claim more of the own feed than is sealed. Only the own seal proves that, and then a new epoch begins
(replication/services/sealing.py: own_seal_seen). Every request names the own feed, and the answer carries the seal (wire.py:
RpAnswer.newest). A claim without its seal stops nothing, except for HOLD_S_MAX where all of the following is true:

- the peer has stated no lesser vector since the start, or since it shares the RP: what a peer gets later comes with its seal;
- the claim is in a request, whose sender is asked for the seal next, or from software without `newest`, which is asked for
  the runs instead;
- the sequence can have been published since the newest seal in SQL, at the rate that the RP admits.

HOLD_S_MAX counts from the first such claim at the RP, whoever makes others, and once in CLAIM_KEPT_S or until the next start.
A claim that is not believed is not noted in the claimer's link either (`believed`). Decision 44 states the reasons.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from eventing.conf import config
from eventing.core.events.feeds import Feed
from eventing.core.events.vectors import Vector
from eventing.log import control, federated
from eventing.log.federated import Head
from eventing.overlay.broadcast import Link
from eventing.overlay.exchange import claim_credible
from eventing.replication.forwarding import watermarks
from eventing.replication.selectors.seals import sealed_until
from eventing.replication.services.sealing import held_back
from eventing.store.keys import SEALING_CLAIMS_KEY, SEALING_HELD_KEY

HOLD_S = 10.0  # for peers that have not said anything since the start
HOLD_S_MAX = (
    5.0  # for claims without a seal: several times two round trips, which older software needs to send the runs
)
CLAIM_KEPT_S = 86_400.0  # after the first claim at an RP, no other holds it back
LOOK_S = 0.25  # between two looks at what is held
EVENTS_PER_S_MIN = (
    100_000  # what an RP is taken to have admitted at least: HERALD_RP_EVENTS_PER_S may have been lowered
)
EVENTS_PER_S_UNLIMITED = 1_000_000  # and where it has no limit: more than one Redis appends


class Claim(NamedTuple):
    """A peer claims more of the own feed than is sealed.

    Attributes:
        feed_key: of the own feed.
        last: sequence up to which the peer claims to hold it.
        sealed: last sequence that is sealed here.
    """

    feed_key: str
    last: int
    sealed: int


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
    anew = [rp for rp in rps if not 0 <= now - known.get(rp, 0.0) < max(HOLD_S, HOLD_S_MAX)]
    if anew:
        control.client().zadd(SEALING_HELD_KEY, dict.fromkeys(anew, now))


def claims_of(have: Mapping[str, Vector], heads: Mapping[str, Head | None]) -> dict[str, Claim]:
    """By RP, what these vectors of a peer claim of the own feed beyond what is sealed by these heads."""
    me = config().domain
    found: dict[str, Claim] = {}
    for rp, vector in have.items():
        head = heads[rp]
        if head is not None:
            key = Feed(me, head.epoch).key
            if vector.get(key, 0) > head.sealed:
                found[rp] = Claim(key, vector[key], head.sealed)
    return found


def believed(have: Vector, claim: Claim | None) -> Vector:
    """The vector of a peer without the claim that it has not proved."""
    return have if claim is None else {**have, claim.feed_key: claim.sealed}


def credible(claims: Mapping[str, Claim]) -> dict[str, Claim]:
    """The claims that can be true, by the newest seal in SQL and the rate that an RP admits."""
    if not claims:
        return {}
    now = time.time()
    limit = config().rp_events_per_s
    per_s = max(limit, EVENTS_PER_S_MIN) if limit else EVENTS_PER_S_UNLIMITED
    known = sealed_until(list(claims))
    heads = dict(zip(claims, federated.heads(list(claims)), strict=True))
    found: dict[str, Claim] = {}
    for rp, claim in claims.items():
        head = heads[rp]
        last, at = known.get((rp, head.epoch if head is not None else ""), (0, None))
        if head is not None and claim_credible(
            claim.last, last=max(last, head.own), since_s=_since_s(at, now), per_s=per_s
        ):
            found[rp] = claim
    return found


def _since_s(at: datetime | None, now: float) -> float:
    return CLAIM_KEPT_S if at is None else now - at.timestamp() + config().rate_window_s


def claimed(peer: str, claims: Mapping[str, Claim]) -> None:
    """Hold back the RPs of a peer's claims, unless claims have held them back for HOLD_S_MAX already."""
    if not claims:
        return
    now = time.time()
    control.client().zremrangebyscore(SEALING_CLAIMS_KEY, "-inf", now - CLAIM_KEPT_S)
    names = [name for rp, claim in claims.items() for name in _names(rp, claim.feed_key, peer)]
    control.client().zadd(SEALING_CLAIMS_KEY, dict.fromkeys(names, now), nx=True)
    waiting = [rp for rp, claim in claims.items() if _waits(rp, claim.feed_key, [peer], now)]
    if waiting:
        control.client().zadd(SEALING_HELD_KEY, dict.fromkeys(waiting, now), nx=True)


def disproved(peer: str, claims: Mapping[str, Claim]) -> None:
    """Stop waiting for claims of a peer that was asked for their seals and has none."""
    over = {_names(rp, claim.feed_key, peer)[1]: time.time() - HOLD_S_MAX for rp, claim in claims.items()}
    if over:
        control.client().zadd(SEALING_CLAIMS_KEY, over, xx=True)


def look(peer: str, links: Mapping[str, Collection[str]]) -> None:
    """Release those of the RPs that may be sealed now; `links` names the peers that share each. The others are looked at again soon."""
    since = held_back(list(links))
    if not since:
        return
    now = time.time()
    heads = dict(zip(since, federated.heads(list(since)), strict=True))
    waiting = {rp for rp in since if _must_wait(rp, heads[rp], links[rp], now, since[rp])}
    released = [rp for rp in since if rp not in waiting]
    if released:
        control.client().zrem(SEALING_HELD_KEY, *released)
    watermarks.look_again(peer, waiting, now + LOOK_S)


def _must_wait(rp: str, head: Head | None, peers: Collection[str], now: float, since: float) -> bool:
    if head is None:
        return False
    if _waits(rp, Feed(config().domain, head.epoch).key, peers, now):
        return True
    links = [watermarks.links_read(peer, [rp])[rp] for peer in peers]
    return not all(link.met for link in links) and now - _counted_from(links, since) < HOLD_S


def _counted_from(links: Iterable[Link], since: float) -> float:
    """The time from which silent peers are waited for: where no peer could be reached for HOLD_S, that of the first vector."""
    first = min((link.met_at for link in links if link.met), default=since)
    return first if first - since > HOLD_S else since


def _waits(rp: str, feed_key: str, peers: Collection[str], now: float) -> bool:
    """Whether the RP is held for a claim of one of these peers: HOLD_S_MAX is not over for it, nor for all claims there."""
    names = [_names(rp, feed_key, "")[0], *(_names(rp, feed_key, peer)[1] for peer in peers)]
    found: Any = control.client().zmscore(SEALING_CLAIMS_KEY, names)
    first, *others = [at is not None and now - at < HOLD_S_MAX for at in found]
    return first and any(others)


def _names(rp: str, feed_key: str, peer: str) -> tuple[str, str]:
    """The members of SEALING_CLAIMS_KEY for the first claim about a feed, and for the first of one peer."""
    return f"{rp} {feed_key}", f"{rp} {feed_key} {peer}"
