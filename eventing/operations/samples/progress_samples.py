"""How far readers and replicas come, while somebody looks: what moved since the last look, as events. The leader's part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventing.core.ids import admin_id
from eventing.operations.samples import progress
from eventing.operations.samples.publishing import Told
from eventing.outbox import administrative_events as events
from eventing.replication.events import REPLICAS_MAX
from eventing.sql.threads import in_database
from eventing.subscriptions.events import LAGS_MAX

RPS_MAX = 100
"""RPs looked at in a turn, fewer where they have many subscriptions (progress.CURSORS_MAX); with more of them they take turns."""


class Following:
    """Of one gateway, which remembers what it told.

    Args:
        gateway: its id.
    """

    def __init__(self, gateway: str) -> None:
        self._gateway = gateway
        self._lags: dict[str, dict[str, progress.Lag]] = {}
        self._replicas: dict[str, dict[str, dict[str, Any]]] = {}
        self._at = 0

    async def look(self, rps: Sequence[str]) -> list[Told]:
        """What moved at these RPs, or some of them. Raises redis' errors and HeraldError."""
        self._lags = {rp: known for rp, known in self._lags.items() if rp in rps}
        self._replicas = {rp: known for rp, known in self._replicas.items() if rp in rps}
        if not rps:
            return []
        self._at = self._at if self._at < len(rps) else 0
        looked, lags, replicas = await in_database(_look)(rps[self._at : self._at + RPS_MAX])
        self._at += looked
        told = [one for rp, found in lags.items() if (one := self._lagged(rp, found)) is not None]
        return told + [one for rp, found in replicas.items() if (one := self._progressed(rp, found)) is not None]

    def _lagged(self, rp: str, found: dict[str, progress.Lag]) -> Told | None:
        known = self._lags.setdefault(rp, {})
        moved = [(name, lag) for name, lag in found.items() if known.get(name) != lag]
        moved.sort(key=lambda pair: (-pair[1]["events"], pair[0]))
        for name in known.keys() - found.keys():
            del known[name]
        known.update(moved[:LAGS_MAX])
        if not moved:
            return None
        shown = [{"subscription": name, **lag} for name, lag in moved[:LAGS_MAX]]
        return Told(admin_id(rp), events.SUBSCRIPTION_LAGGED, {"gateway": self._gateway, "lags": shown})

    def _progressed(self, rp: str, found: dict[str, dict[str, Any]]) -> Told | None:
        known, self._replicas[rp] = self._replicas.get(rp, {}), found
        moved = [{"domain": domain, **row} for domain, row in sorted(found.items()) if known.get(domain) != row]
        if not moved:
            return None
        data = {"gateway": self._gateway, "replicas": moved[:REPLICAS_MAX]}
        return Told(admin_id(rp), events.REPLICA_PROGRESSED, data)


def _look(rps: Sequence[str]) -> tuple[int, dict[str, dict[str, progress.Lag]], dict[str, dict[str, dict[str, Any]]]]:
    """How many of them were looked at, and what there is to see."""
    looked = progress.affordable(rps)
    some = rps[:looked]
    return looked, progress.lags(some), progress.replicas(some)
