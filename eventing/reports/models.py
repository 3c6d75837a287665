"""Runs of reports."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from eventing.reports.rules.runs import JOBS, REASON_CHARS_MAX, STAGE_CHARS_MAX, ReportRunState

BY_CHARS_MAX = 767  # an identity: ISSUER|JWKS#SUBJECT
OUTPUT_CHARS_MAX = 255


class ReportRun(models.Model):
    """A run of a job over a period; its states are defined in reports/rules/runs.py.

    Attributes:
        job: the kind of report.
        period_from, period_to: the period, its end exclusive.
        cadence: `hourly` or `daily` by the schedule, `asked` on request.
        by: identity that requested it; `domain` for the schedule.
        attempt: claims so far; a runner that names an older one has lost the run.
        failures: failed attempts; one that the domain's stop cut short does not count.
        next_try_at: earliest next claim.
        lease_until: while it runs, the end of the runner's lease.
        stage, done, total: the present stage, its completed and all units; `total` 0 while not known.
        reason: of the last or final failure; empty if none.
        segments, newest: the segments of the period when they were read (reports/rules/runs.py, Extent).
        output: its folder below that of the reports, JOB's run; empty until it is done, and when it is superseded.
        summary: of the report: {"headline", "input", "took_s"}, bounded.
        changed_at: time of the last change of any of these.
    """

    class Cadence(models.TextChoices):
        """Origin of a run: the schedule, or a request."""

        HOURLY = "hourly"
        DAILY = "daily"
        ASKED = "asked"

    id = models.BigAutoField(primary_key=True)
    job = models.CharField(max_length=16, choices=[(job, job) for job in JOBS])
    period_from = models.DateTimeField()
    period_to = models.DateTimeField()
    cadence = models.CharField(max_length=8, choices=Cadence.choices)
    by = models.CharField(max_length=BY_CHARS_MAX)
    state = models.CharField(
        max_length=16, choices=[(one.value, one.value) for one in ReportRunState], default=ReportRunState.QUEUED.value
    )
    attempt = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    stage = models.CharField(max_length=STAGE_CHARS_MAX, blank=True, default="")
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)
    reason = models.CharField(max_length=REASON_CHARS_MAX, blank=True, default="")
    segments = models.PositiveIntegerField(default=0)
    newest = models.FloatField(default=0.0)
    output = models.CharField(max_length=OUTPUT_CHARS_MAX, blank=True, default="")
    summary = models.JSONField(default=dict)
    queued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["job", "period_from", "period_to"],
                condition=Q(state__in=["queued", "running"]),
                name="report_is_open_once",
            ),
            models.UniqueConstraint(fields=["state"], condition=Q(state="running"), name="report_runs_alone"),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done", "failed", "superseded"]),
                name="report_state_is_known",
            ),
            models.CheckConstraint(condition=Q(period_from__lt=F("period_to")), name="report_period_lasts"),
            models.CheckConstraint(
                condition=Q(state="running", lease_until__isnull=False, started_at__isnull=False)
                | (~Q(state="running") & Q(lease_until=None)),
                name="report_is_leased_while_it_runs",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running"], ended_at=None)
                | (~Q(state__in=["queued", "running"]) & Q(ended_at__isnull=False)),
                name="report_ends_or_is_open",
            ),
        ]
        indexes = [
            models.Index(fields=["job", "-id"], name="report_by_job"),
            models.Index(fields=["job", "period_from", "period_to"], name="report_by_period"),
            models.Index(fields=["next_try_at"], condition=Q(state="queued"), name="report_to_claim"),
            models.Index(fields=["ended_at"], name="report_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.job} {self.period_from:%Y-%m-%dT%H:%MZ} to {self.period_to:%Y-%m-%dT%H:%MZ}: {self.state}"
