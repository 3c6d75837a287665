"""Getting in and out: by password, by a one-time link, and setting a password afterwards."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from portal.accounts import login_link_redeem
from portal.pages.access import current_user

BACKEND = "django.contrib.auth.backends.ModelBackend"
BY_LINK = "logged_in_by_link"
"""Session key: this session began with a link, so a new password may be set without the old one."""


@method_decorator(never_cache, name="dispatch")
class Login(LoginView):
    """The log-in page."""

    template_name = "portal/login.html"
    redirect_authenticated_user = True

    def get_form(self, form_class: Any = None) -> Any:
        form = super().get_form(form_class)
        form.label_suffix = ""
        return form


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def login_once(request: HttpRequest, token: str) -> HttpResponse:
    """A one-time link. Only the button redeems it: whatever merely looks at links (previews, scanners) spends nothing."""
    if request.method != "POST":
        return render(request, "portal/login_once.html")
    user = login_link_redeem(token)
    if user is None:
        return render(request, "portal/login_once.html", {"spent": True}, status=410)
    login(request, user, backend=BACKEND)
    request.session[BY_LINK] = True
    text = "You are logged in. <a href='{}'>Set a password</a>, and you need no link next time."
    if not user.has_usable_password():
        messages.info(request, format_html(text, reverse_lazy("portal:password")))
    return redirect("portal:rp-list")


@never_cache
@sensitive_post_parameters()
@login_required
def password(request: HttpRequest) -> HttpResponse:
    """Set a password, or change it; the old one is asked for unless there is none or the session began with a link."""
    user = current_user(request)
    form = _password_form(request, user)
    if request.method == "POST" and form.is_valid():
        form.save()
        update_session_auth_hash(request, user)
        request.session.pop(BY_LINK, None)
        messages.success(request, "The password is set. Your other sessions are logged out.")
        return redirect("portal:rp-list")
    return render(request, "portal/password.html", {"form": form})


def _password_form(request: HttpRequest, user: User) -> SetPasswordForm[User]:
    needs_old = user.has_usable_password() and not request.session.get(BY_LINK)
    kind = PasswordChangeForm if needs_old else SetPasswordForm
    form = kind(user, request.POST or None)
    form.label_suffix = ""
    return form
