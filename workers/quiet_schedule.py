"""Schedule of a small domain's periodic tasks: at their periods while something changes, else rarely (docs/decisions/0110). Pure.

| state | tasks |
|---|---|
| SQL changed within ACTIVE_S | each at its period |
| else | those with a shorter period each QUIET_S; leases are looked at when the next one is due |
| no other domain is known | those that exchange with others each ALONE_S, whatever changes; as soon as one is known, all of them at once |
"""

from __future__ import annotations

from collections.abc import Mapping

ACTIVE_S = 10.0
"""Seconds after a change of SQL in which tasks keep their periods: what a change leads to is done in several steps."""
QUIET_S = 20.0
"""Seconds between two runs of a task while SQL does not change: what only time brings about is this late at most."""
ALONE_S = 60.0

LEASES = frozenset({"workers.tasks.reap_leases", "workers.tasks.warn_leases"})
OF_FEDERATION = frozenset(
    {
        "workers.tasks.greet_peers",
        "workers.tasks.sweep_replicas",
        "workers.tasks.drain",
        "workers.tasks.sweep_peers",
        "workers.tasks.sweep_regions",
        "workers.tasks.elect_homes",
        "workers.tasks.plan_routes",
        "workers.tasks.sweep_subscriptions",
        "workers.tasks.keep_overlay",
        "workers.tasks.sample_overlay",
        "workers.tasks.balance_readers",
        "workers.tasks.plan_placement",
        "workers.tasks.carry_out_placement",
    }
)
"""Tasks that find nothing while no other domain is known. With others they keep their periods: messages arrive by Redis, too."""


class QuietSchedule:
    """The times of tasks. Times are monotonic seconds.

    Args:
        periods_s: the periods by name.
        now: the time.

    Attributes:
        alone: whether no other domain is known.
        lease_at: when the next lease is due; None for never.
    """

    def __init__(self, periods_s: Mapping[str, float], now: float) -> None:
        self._periods_s = dict(periods_s)
        self._began: dict[str, float] = {}
        self._active_until = now + ACTIVE_S
        self.alone = False
        self.lease_at: float | None = None

    def changed(self, now: float, *, alone: bool, lease_at: float | None) -> None:
        """Note that SQL changed, and its present contents."""
        self._active_until = now + ACTIVE_S
        if self.alone and not alone:
            for name in OF_FEDERATION:
                self._began.pop(name, None)
        self.alone, self.lease_at = alone, lease_at

    def began(self, name: str, now: float) -> None:
        """Note that a task was begun."""
        self._began[name] = now

    def due_at(self, name: str, now: float) -> float:
        """Return when a task is due."""
        period_s = self._periods_s[name]
        began = self._began.get(name)
        if began is None:
            return now
        if self.alone and name in OF_FEDERATION:
            return began + max(period_s, ALONE_S)
        if now < self._active_until or (name in OF_FEDERATION and not self.alone):
            return began + period_s
        due = began + max(period_s, QUIET_S)
        if name in LEASES and self.lease_at is not None:
            due = max(began + period_s, min(due, self.lease_at))
        return due

    def due(self, now: float) -> list[str]:
        """Return the tasks that are due, in the order of the periods given."""
        return [name for name in self._periods_s if self.due_at(name, now) <= now]

    def next_at(self, now: float) -> float:
        """Return when the next task is due."""
        return min((self.due_at(name, now) for name in self._periods_s), default=now + ALONE_S)
