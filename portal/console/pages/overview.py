"""First page of the console, with the endpoints of its script: the last hour of load, and labels of RPs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from eventing.core.errors import Forbidden, InvalidRequest
from eventing.core.roles import oversees
from eventing.operations.selectors.console import EXTENTS_MAX, rendezvous_points_seen
from eventing.operations.selectors.leases import leases_ending
from eventing.rps.models import DOMAIN_CHARS_MAX
from eventing.rps.selectors.rendezvous_points import rendezvous_points_page
from portal.console import load_history
from portal.console.pages import words
from portal.console.pages.access import current_user, endpoint, page, principal_of
from portal.console.pages.navigation import address_of


@dataclass(frozen=True, slots=True)
class Tile:
    """A number of the page, which the script fills by `name`. `leads_to`: url name of the page with more."""

    name: str
    title: str
    leads_to: str = ""
    meter: bool = False

    @property
    def address(self) -> str:
        """Address of the page with more; empty while there is no such page."""
        return address_of(self.leads_to) if self.leads_to else ""


TILES = (
    Tile("in", "Events in"),
    Tile("out", "Deliveries out"),
    Tile("sessions", "Sessions"),
    Tile("rps", "Rendezvous points", "rp-list"),
    Tile("subscriptions", "Durable subscriptions", "subscriptions"),
    Tile("peers", "Peers", "federation"),
    Tile("backlog", "Waiting for peers", "federation"),
    Tile("history", "History reserved", "quotas", meter=True),
)


ENDING_WITHIN = timedelta(days=1)


@page
@require_GET
def overview(request: HttpRequest) -> HttpResponse:
    """Show the domain at a glance, live. Users without a role are redirected to the RPs, an empty domain to Start
    here."""
    principal = principal_of(current_user(request))
    if not oversees(principal):
        return redirect("portal:rp-list")
    if not rendezvous_points_page(principal=principal, limit=1).items:
        return redirect("portal:start")
    context = {
        "tiles": TILES,
        "ending": leases_ending(within=ENDING_WITHIN),
        "may_create": principal.permits("administer"),
    }
    return render(request, "portal/overview.html", context)


@endpoint
@require_GET
def load(request: HttpRequest) -> HttpResponse:
    """Answer the load in `?range=` (RANGES), with `?peer=` the backlog of one peer in it (LoadHistory.document). For viewers,
    operators and administrators."""
    if not oversees(principal_of(current_user(request))):
        raise Forbidden("Only viewers, operators and administrators may see the domain's load.")
    return JsonResponse(load_history.load_of(range_of(request), request.GET.get("peer", "")[:DOMAIN_CHARS_MAX]))


def range_of(request: HttpRequest) -> str:
    """Return the range that a request asks for. Raises InvalidRequest."""
    name = request.GET.get("range") or load_history.RANGE_DEFAULT
    if name not in load_history.RANGES:
        raise InvalidRequest(f"range is one of {', '.join(load_history.RANGES)}.")
    return name


@endpoint
@require_GET
def ending(request: HttpRequest) -> HttpResponse:
    """Answer the number of leases that end within a day unless used or renewed: {"ending"}. For viewers, operators and
    administrators."""
    if not oversees(principal_of(current_user(request))):
        raise Forbidden("Only viewers, operators and administrators may see the domain's leases.")
    return JsonResponse({"ending": leases_ending(within=ENDING_WITHIN)})


@endpoint
@require_GET
def labels(request: HttpRequest) -> HttpResponse:
    """Answer labels of the RPs of `?ids=a,b`: {id: name, title or id}; RPs that the user may not see are left out."""
    ids = request.GET.get("ids", "").split(",", EXTENTS_MAX)[:EXTENTS_MAX]
    seen = rendezvous_points_seen(principal=principal_of(current_user(request)), ids=ids)
    found: dict[str, Any] = {rp.id: words.label(rp) for rp in seen}
    return JsonResponse(found)
