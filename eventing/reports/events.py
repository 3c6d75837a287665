"""Administrative events of report runs: queued, running, done (eventing/reports/rules/runs.py)."""

from __future__ import annotations

from eventing.core.shapes import closed_schema
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_DOMAIN, Effect, EventKind
from eventing.reports.selectors.reports import RUNS_IN_STATE
from eventing.reports.shapes import ReportRunData

_RUN = closed_schema(ReportRunData, "the run after the change")
_PUT: tuple[Effect, ...] = (
    {
        "in": DOMAIN,
        "op": "put",
        "at": ["reports", "$run.id"],
        "value": "$run",
        "newer": "changed_at",
        "most": RUNS_IN_STATE,
        "by": "queued_at",
    },
)


def _run(about: str) -> EventKind:
    return EventKind(about, ON_DOMAIN, {"run": _RUN}, effects=_PUT)


KINDS: dict[str, EventKind] = {
    events.REPORT_QUEUED: _run(
        "A report was requested, or is to be retried after a failure (`reason`) or a stop of the domain."
    ),
    events.REPORT_RUNNING: _run("A report is being made; reported at its begin and with its progress."),
    events.REPORT_DONE: _run("A report is ready; it is at /api/v1/reports/ID."),
    events.REPORT_FAILED: _run("A report could not be made, or was cancelled, for the stated `reason`."),
    events.REPORT_SUPERSEDED: _run("A newer run of the same report superseded this one."),
}
