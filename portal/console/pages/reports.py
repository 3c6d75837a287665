"""Page of reports on access records: results, runs and requests. The script fills all but the frame."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.access.rules.permission import require_overseer
from eventing.core.roles import operates
from eventing.reports.rules.runs import COMPACTION, REPORTS
from portal.console.pages.access import current_user, page, principal_of


@dataclass(frozen=True, slots=True)
class ReportKind:
    """A kind of report with its title and description."""

    job: str
    title: str
    says: str


_WORDS = {
    "access": ("Access", "Usage by principal, refusals and anomalies."),
    "load": ("Load", "Rates, latencies, busiest rendezvous points and growth."),
    "placement": ("Placement", "Domains where another replica would save traffic."),
    "overlap": ("Overlap", "Rendezvous points with nearly the same subscribers."),
    "federation": ("Federation", "Delivery to peers: silences, backlogs and failures."),
    COMPACTION: ("Compaction", "Small segments of records merged without loss."),
}
KINDS = tuple(ReportKind(job, *_WORDS[job]) for job in (*REPORTS, COMPACTION))


@page
@require_GET
def reports(request: HttpRequest) -> HttpResponse:
    """Show the reports to viewers, operators and administrators; creating one needs the role operator."""
    principal = principal_of(current_user(request))
    require_overseer(principal)
    asked = request.GET.get("job", "")
    chosen = next((kind for kind in KINDS if kind.job == asked), KINDS[0])
    return render(request, "portal/reports.html", {"kinds": KINDS, "chosen": chosen, "may_run": operates(principal)})
