"""Reports: what the access records say, runs of them, and asking for one. All but the frame is the script's."""

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
class Report:
    """A kind of report as the page calls it."""

    job: str
    title: str
    says: str


_WORDS = {
    "access": ("Access", "Who used what, who was refused, what stands out."),
    "load": ("Load", "Rates, latencies, hot rendezvous points, growth."),
    "placement": ("Placement", "Where another replica would save traffic."),
    "overlap": ("Overlap", "Rendezvous points with nearly the same subscribers."),
    "federation": ("Federation", "How peers do: silences, backlogs, failures."),
    COMPACTION: ("Compaction", "Small segments of records joined; nothing is lost."),
}
KINDS = tuple(Report(job, *_WORDS[job]) for job in (*REPORTS, COMPACTION))


@page
@require_GET
def reports(request: HttpRequest) -> HttpResponse:
    """The reports. For who oversees the domain; making one is for operators."""
    principal = principal_of(current_user(request))
    require_overseer(principal)
    asked = request.GET.get("job", "")
    chosen = next((kind for kind in KINDS if kind.job == asked), KINDS[0])
    return render(request, "portal/reports.html", {"kinds": KINDS, "chosen": chosen, "may_run": operates(principal)})
