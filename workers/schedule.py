"""The schedule of tasks and the process of each, as data. A task that waited for its period is dropped: the next one
does its work.
"""

from __future__ import annotations

from typing import Any

# Committed work stays.
TASK_S_SOFT = 50  # bound: seconds of a task; the task is asked to end; the rest is left to the next task
TASK_S_HARD = 60  # bound: seconds of a task; its process is killed
VISIBILITY_TIMEOUT_S = 300  # a task that is not acknowledged by then is delivered again; above TASK_S_HARD

FORWARD = "workers.tasks.forward"
FORWARD_QUEUE = "forward"
"""The queue of the forwarder, a process of its own (docs/decisions/0024). All other tasks are the worker's."""

FORWARDERS_PERIODIC = (
    "workers.tasks.sweep_peers",
    "workers.tasks.sweep_regions",
    "workers.tasks.sweep_subscriptions",
    "workers.tasks.measure_domain",
    "workers.tasks.keep_overlay",
)
"""Tasks that the forwarder runs by itself, each on a thread of its own (workers/in_process_scheduler.py), so that no peer can block
them.
"""


def forwarders_periodic(workers: int) -> tuple[str, ...]:
    """Return the tasks that the forwarder runs by itself; without workers all (docs/decisions/0073).

    Args:
        workers: processes of the worker (HERALD_WORKERS).
    """
    return FORWARDERS_PERIODIC if workers else tuple(PERIODS_S)


ON_DEMAND = frozenset({FORWARD})
"""Tasks that are sent when there is work for them (eventing/replication/forwarding/wakeups.py)."""

PERIODS_S: dict[str, float] = {
    "workers.tasks.reap_leases": 2,
    "workers.tasks.warn_leases": 5,
    "workers.tasks.relay_outbox": 5,
    "workers.tasks.greet_peers": 5,
    "workers.tasks.sweep_replicas": 2,
    "workers.tasks.sweep_peers": 1,
    "workers.tasks.sweep_regions": 1,
    "workers.tasks.sweep_subscriptions": 1,
    "workers.tasks.measure_domain": 5,
    "workers.tasks.keep_overlay": 5,
    "workers.tasks.sample_overlay": 60,
    "workers.tasks.start_reports": 3,
    "workers.tasks.plan_reports": 60,
    "workers.tasks.trim_histories": 30,
    "workers.tasks.sweep": 300,
}

BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    task.rpartition(".")[2]: {"task": task, "schedule": period_s, "options": {"expires": period_s}}
    for task, period_s in PERIODS_S.items()
    if task not in FORWARDERS_PERIODIC
}
