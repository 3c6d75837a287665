"""Pages about deliveries: the list of all endpoints, and one endpoint. The scripts load and refresh the rest."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.core.ids import admin_id, is_admin
from eventing.core.roles import reads_only
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.subscriptions.push.selectors import endpoint_get
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.permission import require_managed
from portal.console.pages.access import current_user, page, principal_of
from portal.console.pages.lists import rights_of


@page
@require_GET
def deliveries(request: HttpRequest) -> HttpResponse:
    """All endpoints for who oversees the domain, else those of one's own subscriptions."""
    return render(request, "portal/deliveries.html", rights_of(principal_of(current_user(request))))


@page
@require_GET
def delivery(request: HttpRequest, subscription_id: str) -> HttpResponse:
    """Show one endpoint. Raises NotFound, Gone, Forbidden."""
    principal = principal_of(current_user(request))
    row = subscription_get(subscription_id)
    descriptor = descriptor_get(row.at)
    require_managed(row, descriptor, principal)
    endpoint_get(row.id)
    watched = row.at if is_admin(row.at) else admin_id(row.at)
    return render(
        request,
        "portal/delivery.html",
        {
            "subscription": row,
            "label": descriptor.name or row.at,
            "may_change": not reads_only(principal),
            "may_watch": not is_admin(row.at) and descriptor_get(watched).allows(principal, "subscribe"),
        },
    )
