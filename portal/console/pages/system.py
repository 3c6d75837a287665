"""Page of the domain's processes, stores, settings and findings of doctor."""

from __future__ import annotations

import os

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.access.rules.permission import require_overseer
from eventing.conf import config
from portal.console.pages.access import current_user, endpoint, page, principal_of
from portal.console.pages.lists import rights_of
from portal.supervisor.diagnosis import running
from portal.supervisor.diagnosis.checks import findings_within
from portal.supervisor.diagnosis.settings_table import settings_in_use

FINDINGS_WITHIN_S = 6.0
"""A check that takes longer (a Java that does not start, a store that hangs) is reported as such."""


@page
@require_GET
def system(request: HttpRequest) -> HttpResponse:
    """Show the page; settings are rendered here, the script loads the rest."""
    principal = principal_of(current_user(request))
    require_overseer(principal)
    settings = settings_in_use(config(), os.environ)
    context = {
        **rights_of(principal),
        "settings": settings,
        "chosen": sum(setting.origin == "environment" for setting in settings),
        "versions": running.versions(),
    }
    return render(request, "portal/system.html", context)


@endpoint
@require_GET
def state(request: HttpRequest) -> HttpResponse:
    """Answer the current state of processes, queues, Redis and the database (diagnosis/running.py)."""
    require_overseer(principal_of(current_user(request)))
    return JsonResponse(running.document(config()))


@endpoint
@require_GET
def findings(request: HttpRequest) -> HttpResponse:
    """Answer the findings of `manage.py doctor`, as seen by this gateway process: {"findings": [{subject, grade, says,
    do}]}."""
    require_overseer(principal_of(current_user(request)))
    found = findings_within(FINDINGS_WITHIN_S)
    return JsonResponse({"findings": [finding.as_dict() for finding in found]})
