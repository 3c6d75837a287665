"""Readers move away from this domain while it has more than its bounded share of them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import msgspec
from django.utils import timezone

from eventing.conf import config
from eventing.core.decoding import Undecodable, json_reader
from eventing.replication.loads.asking import loads_asked
from eventing.replication.rules.balancing import SESSIONS_MIN, BalancingMove, RpReaders, balancing_steps, wants_loads
from eventing.replication.rules.ranking import ReplicaServer
from eventing.replication.rules.reader_moves import BY_BALANCING, BY_PLACEMENT
from eventing.replication.selectors.replica_servers import replica_servers
from eventing.replication.services.reader_moves import reader_moves, readers_spread
from eventing.store.load import gateway_loads
from eventing.store.presence import gateways_alive

RPS_MAX = 20  # bound: RPs whose readers are considered at once; the ones with most readers


class SampledHotRp(msgspec.Struct):
    """An RP in a gateway's sample (operations/samples/flow_samples.py)."""

    rp: str
    readings: int = 0
    leaving: int = 0


class ReaderSample(msgspec.Struct):
    """The members of a gateway's sample that balancing reads."""

    sessions: int = 0
    hot: list[SampledHotRp] = []


_read = json_reader(ReaderSample)


def readers_balance(*, now: datetime | None = None) -> int:
    """Begin moves of readers if this domain is above its bounded share; return how many. Blocks for a few seconds while it asks other
    domains for their loads. Raises redis.RedisError.
    """
    now = now or timezone.now()
    if not config().reader_balancing:
        return 0
    sessions, readers, leaving = readers_here(now)
    if sessions < SESSIONS_MIN:
        return 0
    moves = reader_moves(now=now)
    others = {move.rp for move in moves if move.by not in (BY_BALANCING, BY_PLACEMENT)}
    under_way = {
        move.rp: BalancingMove(move.began, move.until, move.readers) for move in moves if move.by == BY_BALANCING
    }
    own, rps = config().domain, []
    most = sorted(readers.items(), key=lambda item: (-item[1], item[0]))[:RPS_MAX]
    serving = replica_servers([rp for rp, _ in most if rp not in others])
    for rp, count in most:
        servers = [_own_fresh(one, own) for one in serving.get(rp, ())]
        if not servers:
            continue
        if wants_loads(servers, own, under_way.get(rp)):
            servers = loads_asked(rp, servers, own)
        rps.append(RpReaders(rp, count, servers, min(count, leaving[rp])))
    steps = balancing_steps(rps, own, under_way, now.timestamp())
    for rp, step in steps.items():
        reason = f"This domain has {sessions} sessions, more than its bounded share of the domains that serve {rp}."
        readers_spread(rp=rp, step=step, reason=reason, now=now)
    return len(steps)


def _own_fresh(server: ReplicaServer, own: str) -> ReplicaServer:
    return server._replace(fresh=True) if server.domain == own else server


def readers_here(now: datetime) -> tuple[int, Counter[str], Counter[str]]:
    """Return the sessions of all gateways, the readers of the RPs with most activity, and of the readers those that are leaving."""
    sessions, readers, leaving = 0, Counter[str](), Counter[str]()
    for row in gateway_loads(gateways_alive(now)).values():
        try:
            sample = _read(row)
        except Undecodable:
            continue
        sessions += sample.sessions
        for hot in sample.hot:
            readers[hot.rp] += hot.readings
            leaving[hot.rp] += hot.leaving
    return sessions, readers, leaving
