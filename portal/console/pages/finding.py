"""Endpoint for the search of every page (Ctrl-K)."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from eventing.operations.selectors.finding import objects_found
from portal.console.pages.access import current_user, endpoint, principal_of


@endpoint
@require_GET
def find(request: HttpRequest) -> JsonResponse:
    """Answer the objects that match `?q=` and that the user may see (objects_found)."""
    principal = principal_of(current_user(request))
    return JsonResponse(objects_found(principal=principal, text=request.GET.get("q", "").strip()))
