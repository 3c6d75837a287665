"""Page Start here: create the first RP, publish from a program with a valid token, see the event arrive."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST

from eventing.access.services.tokens import token_create
from eventing.conf import config
from eventing.core.names import NAME_CHARS_MAX
from eventing.core.principals import Principal
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require
from portal.console.pages import words
from portal.console.pages.access import current_user, endpoint, page, principal_of
from portal.console.pages.creation import create_from
from portal.console.pages.forms import RendezvousPointForm

TOKEN_S = 600
"""Lifetime of the token in the examples: enough to try them, and short because it may stay in a shell's history."""

OPERATIONS = ("describe", "publish", "subscribe", "history")
EXAMPLE_NAME = "hello/world"


@page
@require_http_methods(["GET", "POST"])
def start(request: HttpRequest) -> HttpResponse:
    """Show the form that creates an RP, or with `?rp=` the examples for that RP and its first events."""
    principal = principal_of(current_user(request))
    reference = request.GET.get("rp", "")[: NAME_CHARS_MAX + 1]
    form = RendezvousPointForm(request.POST or None)
    made = create_from(request, form) if request.method == "POST" else None
    if made is not None:
        return redirect(f"{reverse('portal:start')}?{urlencode({'rp': made.id})}")
    context: dict[str, Any] = {
        "form": form,
        "name_prefix": f"/{config().domain}/",
        "may_create": principal.permits("administer"),
        "commands": words.commands(EXAMPLE_NAME),
    }
    if reference:
        row, _ = _seen(reference, principal, "describe")
        context |= {"rp": row, "label": words.label(row), "commands": words.commands(words.reference(row))}
    return render(request, "portal/start.html", context, status=400 if form.errors else 200)


@endpoint
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """A token of the user for publishing to and reading of the RP `?rp=` alone: {"token", "expires_at"}."""
    user = current_user(request)
    principal = principal_of(user)
    row, descriptor = _seen(request.GET.get("rp", "")[: NAME_CHARS_MAX + 1], principal, "subscribe")
    granted = [operation for operation in OPERATIONS if descriptor.allows(principal, operation)]
    issued = token_create(
        subject=user.get_username(),
        admin=principal.admin,
        lease_s=TOKEN_S,
        scopes=[{"rps": [row.id], "ops": granted}],
        principal=principal,
    )
    return JsonResponse({"token": issued.token, "expires_at": issued.expires_at.isoformat()})


def _seen(reference: str, principal: Principal, operation: str) -> tuple[RendezvousPoint, Descriptor]:
    row = rendezvous_point_get(reference)
    descriptor = descriptor_of(row)
    require(descriptor, principal, operation)
    return row, descriptor
