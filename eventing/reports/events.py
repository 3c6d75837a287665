"""Runs of reports: queued, running, done (eventing/reports/rules/runs.py)."""

from __future__ import annotations

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_DOMAIN, Effect, Kind, count, moment, obj, or_null, text
from eventing.reports.rules.runs import JOBS, State
from eventing.reports.selectors.reports import RUNS_IN_STATE

_RUN = obj(
    {
        "id": text("of the run"),
        "job": text("what is made", of=JOBS),
        "from": moment("when the time that it is about begins"),
        "to": moment("when that ends"),
        "cadence": text("by the schedule, or asked for", of=("hourly", "daily", "asked")),
        "by": text("identity of who asked for it; domain for the schedule"),
        "state": text("how far it is", of=tuple(State)),
        "attempt": count("how often it was begun"),
        "stage": text("what it does now; empty unless it runs"),
        "done": count("how much of that is done"),
        "total": count("of so much; 0 while that is not known"),
        "reason": text("why it failed, last or for good; empty if it did not"),
        "queued_at": moment("when it was asked for"),
        "next_try_at": or_null(moment("not begun before; null unless it is queued")),
        "started_at": or_null(moment("when it was begun last")),
        "ended_at": or_null(moment("when it ended")),
        "changed_at": moment("of the last change of any of these"),
    },
    "the run after the change",
)
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


def _run(about: str) -> Kind:
    return Kind(about, ON_DOMAIN, {"run": _RUN}, effects=_PUT)


KINDS: dict[str, Kind] = {
    events.REPORT_QUEUED: _run(
        "A report was asked for, or is to be tried again after a failure (`reason`) or a stop of the domain."
    ),
    events.REPORT_RUNNING: _run("A report is being made; told when it begins and when its progress moves."),
    events.REPORT_DONE: _run("A report is ready; it is at /api/v1/reports/ID."),
    events.REPORT_FAILED: _run("A report could not be made, or was cancelled; `reason` says why."),
    events.REPORT_SUPERSEDED: _run("A newer run of the same report took this one's place."),
}
