"""Samples of the progress of readers and replicas at watched RPs: changes since the last sample, as events. Done by the
leader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventing.core.ids import admin_id
from eventing.operations.samples import progress
from eventing.operations.samples.publishing import Sampled
from eventing.outbox import administrative_events as events
from eventing.replication.events import REPLICAS_MAX
from eventing.sql.threads import in_database
from eventing.subscriptions.events import LAGS_MAX

RPS_MAX = 100  # bound: RPs whose lags are sampled per second; the RPs take turns
"""RPs sampled in a turn, fewer if they have many subscriptions (progress.CURSORS_MAX); beyond that they take turns."""


class ProgressSamples:
    """The samples of one gateway, with its last values.

    Args:
        gateway: its id.
    """

    def __init__(self, gateway: str) -> None:
        self._gateway = gateway
        self._lags: dict[str, dict[str, progress.Lag]] = {}
        self._replicas: dict[str, dict[str, dict[str, Any]]] = {}
        self._at = 0

    async def sample(self, rps: Sequence[str]) -> list[Sampled]:
        """Return the changes at these RPs, or at some of them. Raises redis.RedisError and HeraldError."""
        self._lags = {rp: known for rp, known in self._lags.items() if rp in rps}
        self._replicas = {rp: known for rp, known in self._replicas.items() if rp in rps}
        if not rps:
            return []
        self._at = self._at if self._at < len(rps) else 0
        count, lags, replicas = await in_database(_lags_and_progress)(rps[self._at : self._at + RPS_MAX])
        self._at += count
        sampled = [one for rp, found in lags.items() if (one := self._lagged(rp, found)) is not None]
        return sampled + [one for rp, found in replicas.items() if (one := self._progressed(rp, found)) is not None]

    def _lagged(self, rp: str, found: dict[str, progress.Lag]) -> Sampled | None:
        known = self._lags.setdefault(rp, {})
        moved = [(name, lag) for name, lag in found.items() if known.get(name) != lag]
        moved.sort(key=lambda pair: (-pair[1]["events"], pair[0]))
        for name in known.keys() - found.keys():
            del known[name]
        known.update(moved[:LAGS_MAX])
        if not moved:
            return None
        shown = [{"subscription": name, **lag} for name, lag in moved[:LAGS_MAX]]
        return Sampled(admin_id(rp), events.SUBSCRIPTION_LAGGED, {"gateway": self._gateway, "lags": shown})

    def _progressed(self, rp: str, found: dict[str, dict[str, Any]]) -> Sampled | None:
        known, self._replicas[rp] = self._replicas.get(rp, {}), found
        moved = [{"domain": domain, **row} for domain, row in sorted(found.items()) if known.get(domain) != row]
        if not moved:
            return None
        data = {"gateway": self._gateway, "replicas": moved[:REPLICAS_MAX]}
        return Sampled(admin_id(rp), events.REPLICA_PROGRESSED, data)


def _lags_and_progress(
    rps: Sequence[str],
) -> tuple[int, dict[str, dict[str, progress.Lag]], dict[str, dict[str, dict[str, Any]]]]:
    """Return how many of the RPs were read, and their lags and replicas."""
    count = progress.affordable(rps)
    some = rps[:count]
    return count, progress.lags(some), progress.replicas(some)
