"""Page of alarms: active ones, live, and past ones. Its script loads the rows from the REST interface."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.timezone import now
from django.views.decorators.http import require_GET

from eventing.access.rules.permission import require_overseer
from eventing.conf import config
from eventing.operations.selectors.alarms import STATES, alarms_counted
from portal.console.pages.access import current_user, endpoint, page, principal_of
from portal.console.pages.lists import rights_of

_WORDS = {"open": "active", "cleared": "cleared", "all": "all"}


@page
@require_GET
def alarms(request: HttpRequest) -> HttpResponse:
    """Show alarms, newest first. For viewers, operators and administrators."""
    principal = principal_of(current_user(request))
    require_overseer(principal)
    states = [(state, _WORDS[state]) for state in STATES]
    return render(
        request, "portal/alarms.html", {**rights_of(principal), "states": states, "mails": bool(config().smtp_host)}
    )


@endpoint
@require_GET
def counts(request: HttpRequest) -> HttpResponse:
    """Answer how many alarms are open and not muted (alarms_counted). For viewers, operators and administrators."""
    require_overseer(principal_of(current_user(request)))
    return JsonResponse(alarms_counted(now()))
