"""Metrics of Celery's tasks, and of the domain's state in SQL."""

from __future__ import annotations

import math
import time
from datetime import datetime
from typing import Any

from celery import signals
from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.operations.selectors.measures import domain_measures
from eventing.peering.rules.peers import PeeringState
from eventing.telemetry import metrics


@per_process
def _began() -> dict[str, float]:
    """Return the start times of the running tasks, monotonic seconds, by id."""
    return {}


@per_process
def _labelled() -> set[str]:
    """Peers that the metrics of forwarding have labels of."""
    return set()


@signals.task_prerun.connect
def _task_begins(task_id: str = "", **_: Any) -> None:
    _began()[task_id] = time.monotonic()


@signals.task_postrun.connect
def _task_ended(task_id: str = "", task: Any = None, state: str | None = None, **_: Any) -> None:
    began = _began().pop(task_id, None)
    if task is None:
        return
    name = str(task.name).rpartition(".")[2]
    metrics.TASKS.labels(name, "ok" if state == "SUCCESS" else "failed").inc()
    if began is not None:
        metrics.TASK_DURATION.labels(name).observe(time.monotonic() - began)


def domain_measured() -> None:
    """Write the metrics of the domain's state in SQL. Run by one process only, which drops the metrics of removed
    peers.
    """
    found, now = domain_measures(), timezone.now()
    metrics.RPS.set(found.held.rps)
    metrics.RPS_LIMIT.set(config().rps_max)
    metrics.HISTORY.set(found.held.history_bytes)
    metrics.HISTORY_LIMIT.set(config().history_quota_bytes)
    metrics.SUBSCRIPTIONS.set(found.held.subscriptions)
    metrics.OUTBOX.set(found.outbox)
    metrics.OUTBOX_AGE.set(_age_s(found.outbox_since, now))
    for state in PeeringState:
        metrics.PEERS.labels(state.value).set(found.peers.get(state.value, 0))
    waiting = sorted(found.forwarding.items(), key=lambda one: (-one[1].backlog, one[0]))
    told = set()
    for name, forwarding in waiting[: metrics.PEERS_MAX]:  # the peers with most backlog
        metrics.BACKLOG.labels(name).set(forwarding.backlog)
        metrics.BACKLOG_AGE.labels(name).set(_age_s(forwarding.oldest_at, now))
        metrics.FAILURES.labels(name).set(forwarding.failures)
        told.add(name)
    labelled = _labelled()
    for gone in labelled - told:
        for gauge in (metrics.BACKLOG, metrics.BACKLOG_AGE, metrics.FAILURES):
            gauge.labels(gone).set(math.nan)  # no longer exposed (telemetry/exposition.py)
    labelled.update(told)
    metrics.MEASURED.set(time.time())


def _age_s(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())
