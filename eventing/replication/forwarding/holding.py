"""Holding back: nothing of the own feed is sealed at a shared RP before its peers have stated their vectors.

This domain may have been restored from a copy, SQL and Redis together: then its sequences continue where the copy
ended, for other events than those that other domains hold under them, and nothing here shows it. A second seal for a
place would be proof of equivocation against this domain. So all shared RPs are held back at the start. An RP is
released when every peer that shares it has stated its vector, or HOLD_S after the first of them if some cannot be
reached.

A peer may claim more of the own feed than is sealed. Only the own seal proves that, and then a new epoch begins
(replication/services/sealing.py: own_seal_seen). Every request names the own feed, and the answer contains the seal
(wire/messages.py: RpAnswer.newest). A claim without its seal stops nothing, except for HOLD_S_MAX if all of the
following is true:

- the peer has stated no lesser vector since the start, or since it shares the RP: what a peer gets later has its seal;
- the claim is in a request, whose sender is asked for the seal next, or from software without `newest`, which is asked
  for the runs instead;
- the sequence can have been published since the newest seal in SQL, at the rate that the RP admits.

HOLD_S_MAX counts from the first such claim at the RP, whatever other claims follow, and once in CLAIM_KEPT_S or until
the next start. A claim without proof is not recorded in the claimer's link either (`believed`). Decision 44 states the
reasons.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from eventing.conf import config
from eventing.core.events.feeds import Feed
from eventing.core.events.vectors import Vector
from eventing.log import federated, watermarks
from eventing.log.federated import LogHead
from eventing.overlay.exchange import claim_credible
from eventing.overlay.link_state import Link
from eventing.replication.selectors.seals import sealed_until
from eventing.store.sealing_holds import (
    claimed_at,
    claims_date,
    claims_forget,
    claims_note,
    held_since,
    hold_end,
    hold_note,
)

HOLD_S = 10.0  # bound: seconds after a start to wait for peers that cannot be reached; sealing starts without them
# bound: seconds from the first claim, without its seal, that a peer holds more of the domain's feed than was sealed; sealing continues
HOLD_S_MAX = (
    5.0  # for claims without a seal: several times the two round trips that older software needs to send the runs
)
CLAIM_KEPT_S = 86_400.0  # bound: seconds that such a claim is remembered; a later claim is waited for again
CHECK_S = 0.25  # seconds between two checks of held RPs
# bound: events per second since the newest seal; a higher claim is ignored
EVENTS_PER_S_MIN = 100_000  # least assumed rate of an RP: HERALD_RP_EVENTS_PER_S may have been lowered
EVENTS_PER_S_UNLIMITED = 1_000_000  # assumed rate without a limit: more than one Redis appends


class FeedClaim(NamedTuple):
    """A peer's claim to hold more of the own feed than is sealed.

    Attributes:
        feed_key: of the own feed.
        last: sequence up to which the peer claims to hold it.
        sealed: last sequence that is sealed here.
    """

    feed_key: str
    last: int
    sealed: int


def begin() -> None:
    """Reset the claims at a start: known ones may be older than the copy that this domain was restored from.

    Claims younger than HOLD_S_MAX are kept, here and in `hold`, so that starts in quick succession do not add up.
    """
    now = time.time()
    claims_forget(until=now - HOLD_S_MAX, after=now)


def hold(rps: Sequence[str]) -> None:
    """Hold back the own feeds of these RPs from now on."""
    now = time.time()
    known = held_since(rps)
    anew = [rp for rp in rps if not 0 <= now - known.get(rp, 0.0) < max(HOLD_S, HOLD_S_MAX)]
    hold_note(anew, now, anew=True)


def claims_of(have: Mapping[str, Vector], heads: Mapping[str, LogHead | None]) -> dict[str, FeedClaim]:
    """Return by RP the claims in a peer's vectors to hold more of the own feed than is sealed by these heads."""
    me = config().domain
    found: dict[str, FeedClaim] = {}
    for rp, vector in have.items():
        head = heads[rp]
        if head is not None:
            key = Feed(me, head.epoch).key
            if vector.get(key, 0) > head.sealed:
                found[rp] = FeedClaim(key, vector[key], head.sealed)
    return found


def believed(have: Vector, claim: FeedClaim | None) -> Vector:
    """Return the peer's vector without the unproved claim."""
    return have if claim is None else {**have, claim.feed_key: claim.sealed}


def credible(claims: Mapping[str, FeedClaim]) -> dict[str, FeedClaim]:
    """Return the claims that can be true, by the newest seal in SQL and the rate that an RP admits."""
    if not claims:
        return {}
    now = time.time()
    limit = config().rp_events_per_s
    per_s = max(limit, EVENTS_PER_S_MIN) if limit else EVENTS_PER_S_UNLIMITED
    known = sealed_until(list(claims))
    heads = dict(zip(claims, federated.heads(list(claims)), strict=True))
    found: dict[str, FeedClaim] = {}
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


def claimed(peer: str, claims: Mapping[str, FeedClaim]) -> None:
    """Hold back the RPs of a peer's claims, unless claims have held them back for HOLD_S_MAX already."""
    if not claims:
        return
    now = time.time()
    claims_forget(until=now - CLAIM_KEPT_S)
    names = [name for rp, claim in claims.items() for name in _names(rp, claim.feed_key, peer)]
    claims_note(names, now)
    waiting = [rp for rp, claim in claims.items() if _waits(rp, claim.feed_key, [peer], now)]
    hold_note(waiting, now, anew=False)


def disproved(peer: str, claims: Mapping[str, FeedClaim]) -> None:
    """Stop waiting for claims of a peer that was asked for their seals and has none."""
    over = {_names(rp, claim.feed_key, peer)[1]: time.time() - HOLD_S_MAX for rp, claim in claims.items()}
    claims_date(over)


def check(peer: str, links: Mapping[str, Collection[str]]) -> None:
    """Release those of the RPs that may be sealed now; `links` names the peers that share each. The others are checked
    again soon.
    """
    since = held_since(list(links))
    if not since:
        return
    now = time.time()
    heads = dict(zip(since, federated.heads(list(since)), strict=True))
    waiting = {rp for rp in since if _must_wait(rp, heads[rp], links[rp], now, since[rp])}
    hold_end([rp for rp in since if rp not in waiting])
    watermarks.check_again(peer, waiting, now + CHECK_S)


def _must_wait(rp: str, head: LogHead | None, peers: Collection[str], now: float, since: float) -> bool:
    if head is None:
        return False
    if _waits(rp, Feed(config().domain, head.epoch).key, peers, now):
        return True
    links = [watermarks.links_read(peer, [rp])[rp] for peer in peers]
    return not all(link.met for link in links) and now - _counted_from(links, since) < HOLD_S


def _counted_from(links: Iterable[Link], since: float) -> float:
    """Return the time from which silent peers are waited for: that of the first vector, or HOLD_S after the start if no
    peer could be reached.
    """
    first = min((link.peer.met_at for link in links if link.met), default=since)
    return first if first - since > HOLD_S else since


def _waits(rp: str, feed_key: str, peers: Collection[str], now: float) -> bool:
    """Return whether the RP is held back for a claim of one of these peers, within HOLD_S_MAX for that claim and for
    all claims there.
    """
    names = [_names(rp, feed_key, "")[0], *(_names(rp, feed_key, peer)[1] for peer in peers)]
    first, *others = [at is not None and now - at < HOLD_S_MAX for at in claimed_at(names)]
    return first and any(others)


def _names(rp: str, feed_key: str, peer: str) -> tuple[str, str]:
    """Return the names (store/sealing_holds.py) for the first claim about a feed, and for the first of one peer."""
    return f"{rp} {feed_key}", f"{rp} {feed_key} {peer}"
