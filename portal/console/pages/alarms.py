"""Page of alarms: active ones, live, and past ones. Its script loads the rows from the REST interface."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.access.rules.permission import require_overseer
from eventing.operations.selectors.alarms import STATES
from portal.console.pages.access import current_user, page, principal_of
from portal.console.pages.lists import rights_of

_WORDS = {"open": "active", "cleared": "cleared", "all": "all"}


@page
@require_GET
def alarms(request: HttpRequest) -> HttpResponse:
    """Show alarms, newest first. For viewers, operators and administrators."""
    principal = principal_of(current_user(request))
    require_overseer(principal)
    states = [(state, _WORDS[state]) for state in STATES]
    return render(request, "portal/alarms.html", {**rights_of(principal), "states": states})
