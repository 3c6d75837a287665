"""Endpoints for the console's scripts: validity of the session, and the ends of logs, from which scripts compute
rates."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET

from eventing.operations.selectors.console import EXTENTS_MAX, rendezvous_points_listed
from portal.console.pages.access import current_user, endpoint, principal_of


@endpoint
@require_GET
def session(request: HttpRequest) -> HttpResponse:
    """Answer 204 while the session is valid. Pages request it before they connect (portal/console/websocket.py):
    scripts do not see why a handshake is refused, and a handshake does not renew the cookie."""
    return HttpResponse(status=204)


@endpoint
@require_GET
def rates(request: HttpRequest) -> HttpResponse:
    """Answer the ends of the logs of `?ids=a,b`: {id: {"epoch", "offset" of the last event, "first", "bytes"}}."""
    ids = request.GET.get("ids", "").split(",", EXTENTS_MAX)[:EXTENTS_MAX]
    listed = rendezvous_points_listed(principal=principal_of(current_user(request)), ids=ids)
    return JsonResponse(
        {
            item.rp.id: {
                "epoch": item.log.epoch,
                "offset": item.log.next - 1,
                "first": item.log.first,
                "bytes": item.log.bytes,
            }
            for item in listed
            if item.log
        }
    )
