"""Page of the user's account: role, password and sessions."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from portal.accounts.services.sessions import PREVIOUS, sessions_of
from portal.accounts.services.users import sessions_end_all
from portal.console.pages.access import current_user, page, principal_of
from portal.console.pages.words import agent


@page
@require_GET
def account(request: HttpRequest) -> HttpResponse:
    """Show the user's account and sessions."""
    user = current_user(request)
    own = request.session.session_key
    sessions = [{"row": row, "agent": agent(row.agent), "here": row.session_key == own} for row in sessions_of(user)]
    external = getattr(user, "external_identity", None)
    shown = {"sessions": sessions, "external": external, "previous": request.session.get(PREVIOUS)}
    return render(request, "portal/account.html", shown)


@page
@require_POST
def log_out_everywhere(request: HttpRequest) -> HttpResponse:
    """End all sessions, this one too."""
    user = current_user(request)
    sessions_end_all(user=user, by=principal_of(user))
    logout(request)
    messages.success(request, "You are logged out everywhere.")
    return redirect("portal:login")
