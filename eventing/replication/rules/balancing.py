"""Choice of the readers that a domain above its bounded share moves away. Pure.

A domain above LOAD_FACTOR times its fair share moves readers until it is back at the fair share: that distance is the hysteresis. One step
redirects the measured excess, and from then on, for HELD_S after the last time above the bound, so many of the readers that begin that the
domain's share of them is its fair share; none while it is above. A reader that was redirected and has not left yet is leaving: it is moved
already, so that slow clients do not make the next step move others in their place. Domains above their bounds at the same time divide the
room of the others by their excess. The next step waits until most of the last one had its effect (STEP_S). While readers become more, shares
are those expected at the next step, as many more as since the last one: or else the domains with most room now would get all that begin until
then.

Loads are those of the domains themselves, asked while `wants_loads`. A load that only the overlay states is up to minutes old: such room counts
where no fresh one is left, then half of it, in a smaller step, and the next step is later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eventing.replication.rules.ranking import WEIGHT_MAX, ReplicaServer, excess, fair_shares, rooms

SESSIONS_MIN = 100  # bound: sessions of a domain below which it moves nobody; it serves them
READERS_MIN = 5  # bound: readers that a move is worth; fewer stay
STEP_S = 5.5
"""Seconds from one step to the next: redirects over SPREAD_S, and the time in which clients connect."""
SPREAD_S = 3.0
HELD_S = 60.0
"""Seconds after the last time above the bound for which readers that begin are redirected."""
STALE_STEP = 0.25  # bound: share of an RP's readers in one step where a load is not fresh; the next step takes more
STALE_STEP_S = 90.0
"""Seconds between two steps where a load is not fresh; a domain states a change in the overlay at most once a minute."""


class RpReaders(NamedTuple):
    """An RP's readers here, and the domains that serve it, this one included.

    Attributes:
        leaving: of the readers, those whose redirect is still valid.
    """

    rp: str
    readers: int
    servers: Sequence[ReplicaServer]
    leaving: int = 0


class BalancingMove(NamedTuple):
    """The last step for an RP.

    Attributes:
        began, until: when it began, and until when its redirects last.
        readers: of all domains, as known then.
    """

    began: float
    until: float
    readers: int


class BalancingStep(NamedTuple):
    """A step: shares of the readers that are there and not leaving, and of those that begin; rooms by address; the rest as of a
    BalancingMove.
    """

    share: float
    new_share: float
    rooms: tuple[tuple[str, int], ...]
    until: float
    readers: int


def wants_loads(servers: Sequence[ReplicaServer], own: str, before: BalancingMove | None) -> bool:
    """Return whether the others are asked for their loads: this domain seems above its bound, a step is under way, or a load is unknown."""
    mine = _sessions(servers, own)
    unknown = any(one.sessions is None for one in servers)
    return mine >= SESSIONS_MIN and (before is not None or unknown or excess(servers, own) > 0)


def balancing_steps(
    rps: Sequence[RpReaders], own: str, under_way: Mapping[str, BalancingMove], now: float
) -> dict[str, BalancingStep]:
    """Return the next step of each RP that is due for one.

    Args:
        rps: those whose readers may move, in any order.
        own: the name of this domain.
        under_way: the last step of RPs that have one.
    """
    found: dict[str, BalancingStep] = {}
    moved = float(sum(one.leaving for one in rps))
    for one in sorted(rps, key=lambda each: (-each.readers, each.rp)):
        step = _step(one, own, under_way.get(one.rp), now, moved)
        if step is not None:
            found[one.rp] = step
            moved += step.share * _staying(one)
    return found


def _step(rp: RpReaders, own: str, before: BalancingMove | None, now: float, moved: float) -> BalancingStep | None:
    if before is not None and before.until <= now:
        before = None
    readers = sum(one.sessions or 0 for one in rp.servers)
    growth = float(min(max(0, readers - before.readers), readers)) if before is not None else 0.0
    mine = excess(rp.servers, own) if _sessions(rp.servers, own) >= SESSIONS_MIN else 0.0
    if before is None and not mine:
        return None
    room = _room(rp.servers, own, growth, fresh=True)
    fresh = sum(room.values()) >= READERS_MIN
    room = room if fresh else _room(rp.servers, own, growth, fresh=False)
    if not room or (before is not None and now - before.began < (STEP_S if fresh else STALE_STEP_S)):
        return None
    moving = 0.0
    if mine:
        all_above = sum(excess(rp.servers, one.domain) for one in rp.servers)
        moving = min(
            mine - moved,
            sum(room.values()) * mine / all_above - rp.leaving,
            _staying(rp) * (1.0 if fresh else STALE_STEP),
        )
    share = moving / _staying(rp) if moving >= READERS_MIN else 0.0
    if before is None and not share:
        return None
    most = max(room.values())
    weights = tuple((url, max(1, round(WEIGHT_MAX * left / most))) for url, left in sorted(room.items()))
    until = now + max(HELD_S, STEP_S if fresh else STALE_STEP_S) if mine or before is None else before.until
    return BalancingStep(min(1.0, share), _new_share(rp.servers, own, moved), weights, until, readers)


def _staying(rp: RpReaders) -> int:
    return max(0, rp.readers - rp.leaving)


def _room(servers: Sequence[ReplicaServer], own: str, growth: float, *, fresh: bool) -> dict[str, float]:
    """Return the room of other domains by address: of those with a fresh load, or half of all room."""
    return {
        one.url: left if fresh else left / 2
        for one, left in zip(servers, rooms(servers, growth), strict=True)
        if one.domain != own and one.url and left > 0 and (one.fresh or not fresh)
    }


def _new_share(servers: Sequence[ReplicaServer], own: str, moved: float) -> float:
    """Return the share of the readers that begin which go elsewhere: all above the fair share, else those beyond the share of this domain."""
    capacity = sum(one.capacity for one in servers)
    for one, fair in zip(servers, fair_shares(servers), strict=True):
        if one.domain == own:
            return 1.0 if (one.sessions or 0) - moved > fair else 1.0 - one.capacity / capacity
    return 0.0


def _sessions(servers: Sequence[ReplicaServer], own: str) -> int:
    return next((server.sessions or 0 for server in servers if server.domain == own), 0)
