"""When which task runs, as data. A task that waited as long as its period is dropped: the next one does its work."""

from __future__ import annotations

from typing import Any

TASK_S_SOFT = 50  # a task is asked to end then; what it has committed stays, the rest is left to the next
TASK_S_HARD = 60  # its process is killed then
VISIBILITY_TIMEOUT_S = 300  # a task that was not acknowledged by then is handed out again; above TASK_S_HARD

PERIODS_S: dict[str, float] = {
    "workers.tasks.reap_leases": 2,
    "workers.tasks.warn_leases": 5,
    "workers.tasks.relay_outbox": 5,
    "workers.tasks.trim_histories": 30,
    "workers.tasks.sweep": 300,
}

BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    task.rpartition(".")[2]: {"task": task, "schedule": period_s, "options": {"expires": period_s}}
    for task, period_s in PERIODS_S.items()
}
