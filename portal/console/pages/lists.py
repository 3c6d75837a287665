"""Pages that show a list of the REST interface: each a template, and the script of the same name, which loads the
rows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.access.rules.permission import require_overseer
from eventing.access.rules.revocations import KINDS as REVOCATION_KINDS
from eventing.audit.api.audit import OUTCOMES
from eventing.core.principals import OPERATIONS, Principal
from eventing.core.roles import operates, oversees
from eventing.operations.placement.rules.decisions import STATES
from eventing.operations.selectors.leases import KINDS as LEASE_KINDS
from portal.console.pages.access import current_user, page, principal_of
from portal.console.pages.words import UNITS_S


def rights_of(principal: Principal) -> dict[str, bool]:
    """Return what a page may offer; the REST interface checks again. `live`: whether the page may follow the domain's
    events."""
    return {
        "live": oversees(principal),
        "operates": operates(principal),
        "administers": principal.admin and not principal.narrowed,
    }


@page
@require_GET
def subscriptions(request: HttpRequest) -> HttpResponse:
    """Durable subscriptions: all for who oversees the domain, else one's own."""
    return render(request, "portal/subscriptions.html", rights_of(principal_of(current_user(request))))


@page
@require_GET
def self_administration(request: HttpRequest) -> HttpResponse:
    """Show what the domain decides by itself: replicas, routes, homes."""
    return _for_overseers(request, "portal/self_administration.html", states=STATES)


@page
@require_GET
def leases(request: HttpRequest) -> HttpResponse:
    """All leases, the soonest to end first."""
    return _for_overseers(request, "portal/leases.html", kinds=LEASE_KINDS)


@page
@require_GET
def sessions(request: HttpRequest) -> HttpResponse:
    """Live sessions of all gateways, the slowest first."""
    return _for_overseers(request, "portal/sessions.html")


@page
@require_GET
def keys(request: HttpRequest) -> HttpResponse:
    """Signing keys, new tokens, revocations."""
    return _for_overseers(request, "portal/keys.html", kinds=REVOCATION_KINDS, operations=OPERATIONS, units=UNITS_S)


@page
@require_GET
def audit(request: HttpRequest) -> HttpResponse:
    """Show the audit."""
    return _for_overseers(request, "portal/audit.html", outcomes=OUTCOMES)


def _for_overseers(request: HttpRequest, template: str, **context: Any) -> HttpResponse:
    principal = principal_of(current_user(request))
    require_overseer(principal)
    return render(request, template, {**rights_of(principal), **context})
