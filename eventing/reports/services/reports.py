"""Writes of report runs: request, claim, progress, end, cancellation, supersession, purge. Their life:
reports/rules/runs.py.

Each change is one transaction with its administrative event on domain.admin. A runner passes its attempt with every
call; one that has lost its run (its lease expired, or the run was cancelled) gets False.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.audit.services import DOMAIN
from eventing.conf import config
from eventing.core.errors import Conflict, InvalidRequest, QuotaExceeded
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.reports.models import ReportRun
from eventing.reports.rules import runs as core
from eventing.reports.rules.runs import Extent, ReportPeriod, ReportRunState, RunTransition
from eventing.reports.selectors.report_output import reports_place
from eventing.reports.selectors.reports import report_data, report_get
from eventing.rest.idempotency_records import IdempotencyClaim, claim_fulfil
from eventing.sql.locking import lock_domain

logger = logging.getLogger(__name__)

PURGED_AT_ONCE = 500
NO_ANSWER = "The process that made the report ended without a result; it may have been killed, or its machine ran out of memory."

_KINDS: Mapping[ReportRunState, str] = {
    ReportRunState.QUEUED: events.REPORT_QUEUED,
    ReportRunState.RUNNING: events.REPORT_RUNNING,
    ReportRunState.DONE: events.REPORT_DONE,
    ReportRunState.FAILED: events.REPORT_FAILED,
    ReportRunState.SUPERSEDED: events.REPORT_SUPERSEDED,
}

# Requests


def report_request(
    *,
    principal: Principal,
    job: str,
    begin: datetime | None = None,
    end: datetime | None = None,
    claim: IdempotencyClaim | None = None,
    now: datetime | None = None,
) -> ReportRun:
    """Queue a run of `job`.

    Args:
        begin: of the period; None for a day before the end.
        end: of the period, exclusive; None for now.
        claim: records the Idempotency-Key in the same transaction.

    Raises Forbidden, InvalidRequest, Conflict (the same is queued or running), QuotaExceeded (too many are queued).
    """
    now = now or timezone.now()
    require_operator(principal)
    if job not in core.JOBS:
        raise InvalidRequest(f"job must be one of {', '.join(core.JOBS)}.")
    if config().reports == "off":
        raise Conflict("Reports are off in this domain (HERALD_REPORTS).")
    period = core.period_asked(begin, end, now)
    with change(now) as outbox:
        lock_domain()
        if ReportRun.objects.filter(state=ReportRunState.QUEUED).count() >= core.OPEN_MAX:
            raise QuotaExceeded(f"{core.OPEN_MAX} reports are queued already, which is the most. Wait, or cancel some.")
        same = _open(job, period)
        if same is not None:
            raise Conflict(f"This report is {same.state} already: run {same.id}.", run=str(same.id))
        row = _queue(outbox, job, period, ReportRun.Cadence.ASKED, principal.identity, Extent(), now)
        if claim is not None:
            claim_fulfil(claim, str(row.id))
        outbox.act("report.run", principal, "report", str(row.id), job=job, period=period.name)
    return row


def report_cancel(*, principal: Principal, reference: str, now: datetime | None = None) -> ReportRun:
    """End a run that is queued or running; its runner stops within seconds. Raises Forbidden, NotFound, Conflict."""
    now = now or timezone.now()
    require_operator(principal)
    report_get(reference)
    with change(now) as outbox:
        row = ReportRun.objects.select_for_update().get(id=int(reference))
        _end(
            row, core.acted(ReportRunState(row.state), RunTransition.CANCEL), now, f"Cancelled by {principal.identity}."
        )
        _announce(outbox, row)
        outbox.act("report.cancel", principal, "report", str(row.id), job=row.job)
    return row


# The schedule


def reports_due(*, extent: Callable[[ReportPeriod], Extent], now: datetime | None = None) -> int:
    """Queue the scheduled reports that are due: finished hours and days with records, and those with late records.

    Args:
        extent: returns the present segments of a period.

    Returns how many were queued. Concurrent calls queue each report once.
    """
    now = now or timezone.now()
    wanted = [one for one in core.due(now) if one.period.end > now - _kept(one.cadence)]  # others were made and removed
    known = _latest(wanted)
    queued = 0
    for one in wanted:
        last = known.get((one.job, one.period.begin, one.period.end))
        if last is not None and last.state in core.OPEN:
            continue
        there = extent(one.period)
        if there.segments < (2 if one.job == core.COMPACTION else 1):
            continue
        if last is None or there.later_than(Extent(last.segments, last.newest)):
            queued += _scheduled(one, there, now)
    return queued


def _latest(wanted: list[core.DueReport]) -> dict[tuple[str, datetime, datetime], ReportRun]:
    if not wanted:
        return {}
    begin = min(one.period.begin for one in wanted)
    rows = ReportRun.objects.filter(period_from__gte=begin).exclude(state=ReportRunState.SUPERSEDED).order_by("id")
    return {(row.job, row.period_from, row.period_to): row for row in rows}


def _scheduled(one: core.DueReport, there: Extent, now: datetime) -> int:
    try:
        with change(now) as outbox:
            _queue(outbox, one.job, one.period, one.cadence, DOMAIN, there, now)
    except IntegrityError:  # another scheduler queued it first
        return 0
    return 1


def _queue(
    outbox: Outbox, job: str, period: ReportPeriod, cadence: str, by: str, there: Extent, now: datetime
) -> ReportRun:
    row = ReportRun.objects.create(
        job=job,
        period_from=period.begin,
        period_to=period.end,
        cadence=cadence,
        by=by,
        segments=there.segments,
        newest=there.newest,
        next_try_at=now,
        queued_at=now,
        changed_at=now,
    )
    _announce(outbox, row)
    return row


def _open(job: str, period: ReportPeriod) -> ReportRun | None:
    rows = ReportRun.objects.filter(job=job, period_from=period.begin, period_to=period.end)
    return rows.filter(state__in=sorted(core.OPEN)).first()


# Runs


def report_claim(*, now: datetime | None = None) -> ReportRun | None:
    """Claim the next run, requested ones first; None if there is none, or one runs. Only one of several callers gets
    it.
    """
    now = now or timezone.now()
    try:
        with change(now) as outbox:
            if ReportRun.objects.filter(state=ReportRunState.RUNNING).exists():
                return None
            ready = ReportRun.objects.select_for_update().filter(state=ReportRunState.QUEUED, next_try_at__lte=now)
            ready = ready.order_by("id")
            row = ready.filter(cadence=ReportRun.Cadence.ASKED).first() or ready.first()
            if row is None:
                return None
            row.state = core.acted(ReportRunState(row.state), RunTransition.CLAIM)
            row.attempt += 1
            row.started_at, row.lease_until = now, now + core.START_LEASE
            row.stage, row.done, row.total = "start", 0, 0
            _save(row, now)
            _announce(outbox, row)
    except IntegrityError:  # another run has started since
        return None
    return row


def report_progress(
    *, run: int, attempt: int, stage: str = "", done: int = 0, total: int = 0, now: datetime | None = None
) -> bool:
    """Renew the lease of the run's attempt, and record its progress. Returns False if the run has been lost.

    Args:
        attempt: the fencing token from the claim.
        stage: the present stage; empty to renew the lease only.
        done, total: completed and all units of the stage; `total` 0 while not known.
    """
    now = now or timezone.now()
    mine = ReportRun.objects.filter(id=run, attempt=attempt, state=ReportRunState.RUNNING)
    if not stage:
        return bool(mine.update(lease_until=now + core.LEASE))
    with change(now) as outbox:
        row = mine.select_for_update().first()
        if row is None:
            return False
        row.lease_until = now + core.LEASE
        moved = (stage[: core.STAGE_CHARS_MAX], done, total)
        if moved != (row.stage, row.done, row.total):
            row.stage, row.done, row.total = moved
            _save(row, now)
            _announce(outbox, row)
        else:
            row.save(update_fields=["lease_until"])
    return True


def report_finish(
    *, run: int, attempt: int, output: str, summary: Mapping[str, Any], there: Extent, now: datetime | None = None
) -> bool:
    """Complete the run; earlier runs of the same period are superseded. Returns False if the run has been lost.

    Args:
        attempt: the fencing token from the claim.
        output: name of its folder.
        summary: headline, input and duration, for lists.
        there: the segments that were read.
    """
    now = now or timezone.now()
    with change(now) as outbox:
        row = (
            ReportRun.objects.select_for_update().filter(id=run, attempt=attempt, state=ReportRunState.RUNNING).first()
        )
        if row is None:
            return False
        row.output, row.summary = output, dict(summary)
        row.segments, row.newest = there.segments, there.newest
        _end(row, core.acted(ReportRunState.RUNNING, RunTransition.FINISH), now)
        earlier = ReportRun.objects.select_for_update().filter(
            job=row.job, period_from=row.period_from, period_to=row.period_to, state=ReportRunState.DONE
        )
        for old in earlier.exclude(id=row.id).order_by("id"):
            old.output = ""
            _end(
                old, core.acted(ReportRunState(old.state), RunTransition.SUPERSEDE), old.ended_at or now, changed_at=now
            )
            _announce(outbox, old)
        _announce(outbox, row)
    return True


def report_fail(*, run: int, attempt: int, reason: str, passing: bool = True, now: datetime | None = None) -> bool:
    """Fail the attempt. Returns False if the run has been lost.

    Args:
        attempt: the fencing token from the claim.
        reason: one sentence for operators.
        passing: whether to retry it after a pause, ATTEMPTS_MAX times in all.
    """
    now = now or timezone.now()
    with change(now) as outbox:
        row = (
            ReportRun.objects.select_for_update().filter(id=run, attempt=attempt, state=ReportRunState.RUNNING).first()
        )
        if row is None:
            return False
        _failed(outbox, row, reason, passing, now)
    return True


def report_release(*, run: int, attempt: int, now: datetime | None = None) -> bool:
    """Release the run as the domain stops; the next start begins it anew. False: the run has been lost."""
    now = now or timezone.now()
    with change(now, patient=False) as outbox:  # Redis may be stopping, too
        row = (
            ReportRun.objects.select_for_update().filter(id=run, attempt=attempt, state=ReportRunState.RUNNING).first()
        )
        if row is None:
            return False
        _requeue(row, core.acted(ReportRunState.RUNNING, RunTransition.RELEASE), now, now)
        _announce(outbox, row)
    return True


def reports_recover(*, now: datetime | None = None) -> int:
    """Take runs from runners whose leases have expired. Returns how many."""
    now = now or timezone.now()
    with change(now) as outbox:
        lost = list(ReportRun.objects.select_for_update().filter(state=ReportRunState.RUNNING, lease_until__lt=now))
        for row in lost:
            _failed(outbox, row, NO_ANSWER, True, now)
    return len(lost)


def reports_purge(*, now: datetime | None = None) -> int:
    """Delete runs older than their retention, with their output; at most PURGED_AT_ONCE. Returns how many."""
    now = now or timezone.now()
    ended = ReportRun.objects.exclude(state__in=sorted(core.OPEN)).order_by("ended_at")
    is_hourly = {"cadence": ReportRun.Cadence.HOURLY}
    hourly = ended.filter(**is_hourly, ended_at__lt=now - _kept(ReportRun.Cadence.HOURLY))
    others = ended.exclude(**is_hourly).filter(ended_at__lt=now - _kept(ReportRun.Cadence.DAILY))
    old = [*hourly[:PURGED_AT_ONCE], *others[:PURGED_AT_ONCE]][:PURGED_AT_ONCE]
    removed = 0
    for row in old:
        same = ReportRun.objects.filter(job=row.job, period_from=row.period_from, period_to=row.period_to)
        if not same.exclude(id=row.id).exists():
            try:
                _folder_remove(ReportPeriod(row.period_from, row.period_to), row.job)
            except OSError as error:
                logger.warning("reports: run %d is kept, its folder cannot be removed: %s", row.id, error)
                continue
        row.delete()
        removed += 1
    return removed


# What they share


def _kept(cadence: str) -> timedelta:
    """Return the retention of runs of this cadence, from their end."""
    hourly = cadence == ReportRun.Cadence.HOURLY
    return timedelta(days=config().reports_hourly_days if hourly else config().reports_retention_days)


def _failed(outbox: Outbox, row: ReportRun, reason: str, passing: bool, now: datetime) -> None:
    row.failures += 1
    act, wait = core.after_failure(row.failures, passing)
    after = core.acted(ReportRunState(row.state), act)
    if act is RunTransition.RETRY:
        _requeue(row, after, now, now + wait, reason)
    else:
        _end(row, after, now, reason)
    _announce(outbox, row)


def _requeue(row: ReportRun, state: ReportRunState, now: datetime, next_try_at: datetime, reason: str = "") -> None:
    row.state, row.next_try_at, row.lease_until = state, next_try_at, None
    row.stage, row.done, row.total = "", 0, 0
    row.reason = reason[: core.REASON_CHARS_MAX]
    _save(row, now)


def _end(
    row: ReportRun, state: ReportRunState, ended_at: datetime, reason: str = "", *, changed_at: datetime | None = None
) -> None:
    row.state, row.ended_at, row.lease_until = state, ended_at, None
    row.stage, row.done, row.total = "", 0, 0
    row.reason = reason[: core.REASON_CHARS_MAX]
    _save(row, changed_at or ended_at)


def _save(row: ReportRun, now: datetime) -> None:
    row.changed_at = now
    row.save()


def _announce(outbox: Outbox, row: ReportRun) -> None:
    outbox.event(_KINDS[ReportRunState(row.state)], DOMAIN_ADMIN, {"run": report_data(row)})


def _folder_remove(period: ReportPeriod, job: str) -> None:
    """Delete the output of a job's runs for a period. Raises OSError."""
    place = reports_place()
    place.remove_folder(place.path(period.name, job))
    if not place.entries(place.path(period.name)):
        place.remove_folder(place.path(period.name))
