"""The schedule of tasks and the process of each, as data. When each is run next, and by which host, is in SQL (eventing/periodic)."""

from __future__ import annotations

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
    "workers.tasks.elect_homes",
    "workers.tasks.plan_routes",
    "workers.tasks.sweep_subscriptions",
    "workers.tasks.measure_domain",
    "workers.tasks.keep_overlay",
    "workers.tasks.balance_readers",
)
"""Tasks that the forwarder runs by itself, each on a thread of its own (workers/in_process_scheduler.py), so that no peer can block
them.
"""


ON_DEMAND = frozenset({FORWARD})
"""Tasks that are sent when there is work for them (eventing/replication/forwarding/wakeups.py)."""

PERIODS_S: dict[str, float] = {
    "workers.tasks.reap_leases": 2,
    "workers.tasks.warn_leases": 5,
    "workers.tasks.notify_of_alarms": 3,
    "workers.tasks.relay_outbox": 5,
    "workers.tasks.greet_peers": 5,
    "workers.tasks.sweep_replicas": 2,
    "workers.tasks.drain": 2,
    "workers.tasks.sweep_peers": 1,
    "workers.tasks.sweep_regions": 1,
    "workers.tasks.elect_homes": 1,
    "workers.tasks.plan_routes": 1,
    "workers.tasks.sweep_subscriptions": 1,
    "workers.tasks.measure_domain": 5,
    "workers.tasks.keep_overlay": 5,
    "workers.tasks.sample_overlay": 60,
    "workers.tasks.balance_readers": 3,
    "workers.tasks.start_reports": 3,
    "workers.tasks.plan_reports": 60,
    "workers.tasks.plan_placement": 2,
    "workers.tasks.carry_out_placement": 2,
    "workers.tasks.trim_histories": 30,
    "workers.tasks.sweep": 300,
}

LEASED_S = {name: period_s for name, period_s in PERIODS_S.items() if name not in FORWARDERS_PERIODIC}
"""Periods of the tasks of the domain, of which one run at a time is valid, whatever the number of hosts (workers/leased_scheduler.py). The forwarder's are of
each host.
"""
