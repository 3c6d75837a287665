"""Repeated sending to partners by this process, counted as rules/repeats.py states, and reported to administrators when it is too much.

The notes are in memory: after a start every partner states its vector anew, and what it is sent counts as new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from eventing.core.container import per_process
from eventing.log.federated_bulk import WantedRuns
from eventing.peering.models import Acquaintance
from eventing.peering.selectors.partners import Partner
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.replication.rules.repeats import Repeat, RepeatBudgets, SentRun
from eventing.rps.selectors.rendezvous_points import histories_bytes
from eventing.store import peer_state


class _Sent:
    """The notes of this process, held under `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.repeats = RepeatBudgets()


_sent = per_process(_Sent)


def runs_sent(partner: Partner, runs: Mapping[str, Sequence[SentRun]]) -> None:
    """Note the runs of a request, by RP, when it is sent. Raises redis.RedisError."""
    kept, name = _sent(), partner.name
    with kept.lock:
        again = {rp: kinds for rp, some in runs.items() if some and (kinds := kept.repeats.sent(name, rp, some))}
    if not again:
        return
    now, acquaintance = time.monotonic(), isinstance(partner, Acquaintance)
    lost = {rp: kinds[Repeat.LOST] for rp, kinds in again.items() if Repeat.LOST in kinds}
    charged = _beyond_copies(name, lost, now) if lost else {}
    with kept.lock:
        untaken = sum(kinds.get(Repeat.UNTAKEN, 0) for kinds in again.values())
        if untaken:
            kept.repeats.charge(name, Repeat.UNTAKEN, untaken, now, acquaintance=acquaintance)
        size = sum(charged.values())
        overdrawn = bool(size) and kept.repeats.charge(name, Repeat.LOST, size, now, acquaintance=acquaintance)
    if overdrawn:
        detail = (
            "It has events sent again that it had acknowledged, more often than a whole history once a day. They wait."
        )
        misbehaviour_note("false-loss", carrier=name, rp=max(charged, key=lambda rp: charged[rp]), detail=detail)


def runs_acknowledged(peer: str, have: Mapping[str, Mapping[str, int]]) -> None:
    """Note the vectors with which a partner answers a request, by RP."""
    kept = _sent()
    with kept.lock:
        for rp, vector in have.items():
            kept.repeats.acknowledged(peer, rp, vector)


def wanted_allowed(peer: str, wanted: Sequence[WantedRuns]) -> Sequence[WantedRuns]:
    """Return the requests for a partner's runs without those that may not be sent to it again at the moment."""
    kept, now = _sent(), time.monotonic()
    with kept.lock:
        kinds = kept.repeats.overdrawn(peer, now)
        if not kinds:
            return wanted
        allowed = [one._replace(vector=kept.repeats.without(kinds, peer, one.rp, one.vector)) for one in wanted]
    held = [one.rp for one, before in zip(allowed, wanted, strict=True) if one.vector is not before.vector]
    replayed = _replayed(peer, held)
    return [before if one.rp in replayed else one for one, before in zip(allowed, wanted, strict=True)]


def _replayed(peer: str, rps: Sequence[str]) -> frozenset[str]:
    """Return those of these RPs that an operator has sent again: what was sent of them is forgotten."""
    replayed = peer_state.replays_taken(peer, rps) if rps else []
    with _sent().lock:
        for rp in replayed:
            _sent().repeats.forget(peer, rp)
    return frozenset(replayed)


def _beyond_copies(peer: str, lost: Mapping[str, int], now: float) -> dict[str, int]:
    """Return the RPs with the bytes that are more than one copy of their histories."""
    kept, bytes_max = _sent(), histories_bytes(lost)
    with kept.lock:
        beyond = [
            rp for rp, size in lost.items() if not kept.repeats.is_copy(peer, rp, size, bytes_max.get(rp, 0), now)
        ]
    replayed = _replayed(peer, beyond)
    return {rp: lost[rp] for rp in beyond if rp not in replayed}
