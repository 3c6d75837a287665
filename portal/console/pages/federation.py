"""Page of peers: the map, and one peer in detail. Its script loads the data; rights are decided here."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.access.rules.permission import require_overseer
from eventing.core.roles import operates
from eventing.peering.selectors.peers import peer_row
from portal.accounts.services.users import may_administer_users
from portal.console.pages.access import current_user, page, principal_of


@page
@require_GET
def federation(request: HttpRequest, name: str = "") -> HttpResponse:
    """All peers, and with `name` that one open."""
    principal = principal_of(current_user(request))
    require_overseer(principal)
    if name:
        peer_row(name)
    context = {"peer": name, "may_administrate": may_administer_users(principal), "may_operate": operates(principal)}
    return render(request, "portal/federation.html", context)
