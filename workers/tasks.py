"""The periodic tasks: one service call each, safe to run twice and side by side."""

from __future__ import annotations

import logging
from collections.abc import Callable

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from redis.exceptions import RedisError

from eventing.log.control import workers_present
from eventing.records.retention import segments_purge
from eventing.services.audit import audit_purge
from eventing.services.histories import histories_trim, logs_sweep
from eventing.services.idempotency import idempotency_purge
from eventing.services.leases import leases_reap, leases_warn
from eventing.services.outbox import outbox_relay
from eventing.services.revocations import revocations_purge
from workers.schedule import TASK_S_HARD, TASK_S_SOFT

logger = logging.getLogger(__name__)


def periodic(function: Callable[[], None]) -> Callable[[], None]:
    """A task under the common time limits; sent by name by beat."""
    task: Callable[[], None] = shared_task(soft_time_limit=TASK_S_SOFT, time_limit=TASK_S_HARD)(function)
    return task


@periodic
def reap_leases() -> None:
    """Remove RPs and subscriptions whose lease has ended."""
    _run(leases_reap, "reaped")


@periodic
def warn_leases() -> None:
    """Report leases that end soon."""
    _run(leases_warn, "warned of")


@periodic
def relay_outbox() -> None:
    """Carry out what a crash or an outage left in the outbox."""
    _run(outbox_relay, "relayed")


@periodic
def trim_histories() -> None:
    """Trim histories by age."""
    _run(histories_trim, "trimmed")


@periodic
def sweep() -> None:
    """Remove logs without an RP, idempotency records that are a day old, and revocations that cover nothing any more."""
    _run(idempotency_purge, "forgot idempotency keys")
    _run(revocations_purge, "forgot revocations")
    _run(audit_purge, "removed old audit entries")
    _run(segments_purge, "removed old segments of access records")
    _run(logs_sweep, "swept logs")


def _run(service: Callable[[], int], done: str) -> None:
    """Call `service`; an outage of Redis or a time limit is a line in the log: the next run goes on where this one was."""
    try:
        workers_present()
        count = service()
    except RedisError as error:
        logger.warning("%s: Redis does not answer: %s", service.__name__, error)
    except SoftTimeLimitExceeded:
        logger.warning("%s: not finished within %d s; goes on next time", service.__name__, TASK_S_SOFT)
    else:
        if count:
            logger.info("%s %d", done, count)
