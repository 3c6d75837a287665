"""The metrics of Celery's tasks, and of the domain as SQL has it."""

from __future__ import annotations

import math
import time
from datetime import datetime
from typing import Any

from celery import signals
from django.utils import timezone

from eventing.conf import config
from eventing.operations.selectors.measures import domain_measures
from eventing.peering.rules.peers import State
from eventing.telemetry import metrics

_began: dict[str, float] = {}
_told: set[str] = set()


@signals.task_prerun.connect
def _task_begins(task_id: str = "", **_: Any) -> None:
    _began[task_id] = time.monotonic()


@signals.task_postrun.connect
def _task_ended(task_id: str = "", task: Any = None, state: str | None = None, **_: Any) -> None:
    began = _began.pop(task_id, None)
    if task is None:
        return
    name = str(task.name).rpartition(".")[2]
    metrics.TASKS.labels(name, "ok" if state == "SUCCESS" else "failed").inc()
    if began is not None:
        metrics.TASK_DURATION.labels(name).observe(time.monotonic() - began)


def domain_told() -> None:
    """Put what SQL knows of the domain into the metrics. One process does it: peers that are gone are forgotten there."""
    found, now = domain_measures(), timezone.now()
    metrics.RPS.set(found.held.rps)
    metrics.RPS_LIMIT.set(config().rps_max)
    metrics.HISTORY.set(found.held.history_bytes)
    metrics.HISTORY_LIMIT.set(config().history_quota_bytes)
    metrics.SUBSCRIPTIONS.set(found.held.subscriptions)
    metrics.OUTBOX.set(found.outbox)
    metrics.OUTBOX_AGE.set(_age_s(found.outbox_since, now))
    for state in State:
        metrics.PEERS.labels(state.value).set(found.peers.get(state.value, 0))
    waiting = sorted(found.forwarding.items(), key=lambda one: (-one[1].backlog, one[0]))
    told = set()
    for name, forwarding in waiting[: metrics.PEERS_MAX]:  # those that most waits for
        metrics.BACKLOG.labels(name).set(forwarding.backlog)
        metrics.BACKLOG_AGE.labels(name).set(_age_s(forwarding.oldest_at, now))
        metrics.FAILURES.labels(name).set(forwarding.failures)
        told.add(name)
    for gone in _told - told:
        for gauge in (metrics.BACKLOG, metrics.BACKLOG_AGE, metrics.FAILURES):
            gauge.labels(gone).set(math.nan)  # not told any more (telemetry/exposition.py)
    _told.update(told)
    metrics.MEASURED.set(time.time())


def _age_s(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())
