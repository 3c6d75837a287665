"""The console's users, for administrators. Each view reads the form, makes one call, and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from eventing.access.selectors.console_users import role_of
from eventing.core.errors import ApplicationError
from portal.accounts.services.login_links import INVITATION_S
from portal.accounts.services.roles import ABOUT, CHOICES
from portal.accounts.services.sessions import sessions_of
from portal.accounts.services.users import (
    sessions_end_all,
    user_activate,
    user_deactivate,
    user_get,
    user_invite,
    user_reset,
    user_role_change,
    users_listed,
)
from portal.console.pages import words
from portal.console.pages.access import administrator_page, current_user, principal_of
from portal.console.pages.forms import PlainForm


class RoleForm(PlainForm):
    """One of the roles."""

    role = forms.ChoiceField(label="Role", choices=CHOICES, required=False, help_text=ABOUT)


class UserForm(RoleForm):
    """A new user."""

    name = forms.CharField(
        label="Name",
        max_length=64,
        help_text="1 to 64 characters of a-z, 0-9 and . _ @ + -. The name is also the subject of the user's tokens.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )
    field_order = ("name", "role")


@administrator_page
@require_GET
def user_list(request: HttpRequest) -> HttpResponse:
    """List active and deactivated users."""
    rows = [{"user": user, "role": role_of(user), "label": _label(user)} for user in users_listed()]
    return render(request, "portal/user_list.html", {"rows": rows})


@administrator_page
@require_http_methods(["GET", "POST"])
def user_new(request: HttpRequest) -> HttpResponse:
    """Invite a user: the answer shows the link once."""
    form = UserForm(request.POST if request.method == "POST" else None, initial={"role": "viewer"})
    if form.is_bound and form.is_valid():
        try:
            made, url = user_invite(**form.cleaned_data, by=principal_of(current_user(request)))
        except ApplicationError as error:
            form.add_error("name" if "name" in error.detail or "user" in error.detail else None, error.detail)
        else:
            return _link_page(request, made, url)
    return render(request, "portal/user_new.html", {"form": form}, status=400 if form.errors else 200)


@administrator_page
@require_GET
def user(request: HttpRequest, user_id: int) -> HttpResponse:
    """Show one user with the possible actions."""
    return _user_page(request, user_get(user_id))


@administrator_page
@require_POST
def user_role(request: HttpRequest, user_id: int) -> HttpResponse:
    """Change the user's role."""
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "The role was not changed: choose one of those listed.")
        return redirect("portal:user", user_id)
    return _do(
        request,
        user_id,
        lambda by: user_role_change(user_id=user_id, role=form.cleaned_data["role"], by=by),
        "The role is changed and takes effect with the next page.",
    )


@administrator_page
@require_POST
def user_active(request: HttpRequest, user_id: int) -> HttpResponse:
    """Deactivate (`active=0`) or activate (`active=1`)."""
    if request.POST.get("active") == "1":
        return _do(request, user_id, lambda by: user_activate(user_id=user_id, by=by), "The user can log in again.")
    return _do(
        request,
        user_id,
        lambda by: user_deactivate(user_id=user_id, by=by),
        "The user is deactivated. Sessions are ended; login links and tokens are no longer valid.",
    )


@administrator_page
@require_POST
def user_link(request: HttpRequest, user_id: int) -> HttpResponse:
    """Take the password away and show a one-time link to set another."""
    try:
        found, url = user_reset(user_id=user_id, by=principal_of(current_user(request)))
    except ApplicationError as error:
        messages.error(request, error.detail)
        return redirect("portal:user", user_id)
    return _link_page(request, found, url)


@administrator_page
@require_POST
def user_log_out(request: HttpRequest, user_id: int) -> HttpResponse:
    """End the user's sessions."""
    return _do(
        request,
        user_id,
        lambda by: sessions_end_all(user=user_get(user_id), by=by),
        "All sessions of the user are ended.",
    )


def _do(request: HttpRequest, user_id: int, act: Callable[[Any], object], done: str) -> HttpResponse:
    try:
        act(principal_of(current_user(request)))
    except ApplicationError as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, done)
    return redirect("portal:user", user_id)


def _user_page(request: HttpRequest, found: User) -> HttpResponse:
    role = role_of(found)
    context = {
        "found": found,
        "found_role": role,
        "label": _label(found),
        "external": getattr(found, "external_identity", None),
        "sessions": len(sessions_of(found)),
        "form": RoleForm(initial={"role": role}),
        "myself": found.pk == current_user(request).pk,
    }
    return render(request, "portal/user.html", context)


def _link_page(request: HttpRequest, found: User, url: str) -> HttpResponse:
    """Show a link once, without storing it in a session, a message or an address."""
    context = {"found": found, "url": url, "valid": words.duration(INVITATION_S)}
    return render(request, "portal/user_link.html", context)


def _label(found: User) -> str:
    """Return the user's label: the full name from the identity provider, else the user name."""
    return (
        found.get_full_name() or found.get_username() if hasattr(found, "external_identity") else found.get_username()
    )
