"""Page of the overlay: its map, its directory, and one domain in detail. Its script loads the data; rights are decided here."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.access.rules.permission import require_overseer
from eventing.core.errors import NotFound
from eventing.membership.selectors.directory import domain_row
from portal.accounts.services.users import may_administer_users
from portal.console import overlay_history
from portal.console.pages.access import current_user, endpoint, page, principal_of


@page
@require_GET
def overlay(request: HttpRequest, name: str = "") -> HttpResponse:
    """All domains of the overlay, and with `name` that one open."""
    principal = principal_of(current_user(request))
    require_overseer(principal)
    if name and domain_row(name) is None:
        raise NotFound("The directory of the overlay has no such domain.")
    context = {"shown": name, "may_administrate": may_administer_users(principal)}
    return render(request, "portal/overlay.html", context)


@endpoint
@require_GET
def history(request: HttpRequest) -> HttpResponse:
    """Answer the last day of the overlay (OverlayHistory.read). For viewers, operators and administrators."""
    require_overseer(principal_of(current_user(request)))
    return JsonResponse(overlay_history.last_day())
