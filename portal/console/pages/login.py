"""Login by password or one-time link, throttled and audited; logout; setting a password."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth import authenticate, logout, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from eventing.audit.services import REFUSED, audit_record
from eventing.conf import config
from portal.accounts.services.login_links import login_link_redeem
from portal.accounts.services.sessions import BY_LINK, address_of, log_in, session_rekeyed
from portal.accounts.services.throttling import Attempt, attempt_link, attempt_login
from portal.accounts.services.users import password_changed, user_named
from portal.console.pages import words
from portal.console.pages.access import current_user, page, principal_of

BACKEND = "django.contrib.auth.backends.ModelBackend"
NAME_CHARS_MAX = 150
PASSWORD_CHARS_MAX = 4096
"""Argon2 reads all of it; a longer one is no password but a load."""


class LoginForm(AuthenticationForm):
    """Form of name and password, checked only if the attempt is not throttled; `wait_s`: seconds for which it is
    throttled."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.wait_s = 0
        self.fields["password"].max_length = PASSWORD_CHARS_MAX  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Check the password, within what throttling allows. Whether the name exists changes neither answer nor time."""
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not name or not password or self.request is None or len(password) > PASSWORD_CHARS_MAX:
            raise self.get_invalid_login_error()
        attempt = attempt_login(account=name, address=address_of(self.request))
        if attempt.wait_s:
            self.wait_s = attempt.wait_s
            raise self.get_invalid_login_error()
        self.user_cache = authenticate(self.request, username=name, password=password)
        if self.user_cache is None:
            _record_failure(name, "The name or the password is wrong.", "password")
            raise self.get_invalid_login_error()
        attempt.succeeded()
        return self.cleaned_data


@method_decorator([never_cache, sensitive_post_parameters(), csrf_protect], name="dispatch")
class Login(LoginView):
    """The log-in page."""

    template_name = "portal/login.html"
    form_class = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the identity provider, if one is set, to the template's variables."""
        return super().get_context_data(**kwargs) | {"oidc": bool(config().oidc_issuer)}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Begin a session."""
        user = form.get_user()
        log_in(self.request, user, backend=BACKEND)
        audit_record(action="login", principal=principal_of(user), details={"by": "password"})
        return redirect(self.get_success_url())

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show that the credentials are wrong, or the time to wait."""
        wait_s = cast(LoginForm, form).wait_s
        if not wait_s:
            return super().form_invalid(form)
        return _wait_page(self.request, self.get_context_data(form=form), wait_s, self.template_name)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def login_once(request: HttpRequest, token: str) -> HttpResponse:
    """Log in by a one-time link. Only the button redeems it, so that previews and scanners of links do not use it
    up."""
    template = "portal/login_once.html"
    if request.method != "POST":
        return render(request, template)
    attempt = attempt_link(address=address_of(request))
    if attempt.wait_s:
        return _wait_page(request, {}, attempt.wait_s, template)
    user = login_link_redeem(token)
    if user is None:
        _record_failure("", "The link is unknown, used or expired.", "link")
        return render(request, template, {"spent": True}, status=410)
    _succeed(request, user, attempt)
    text = "You are logged in. <a href='{}'>Set a password</a> to log in without a link next time."
    if not user.has_usable_password():
        messages.info(request, format_html(text, reverse_lazy("portal:password")))
    return redirect("portal:overview")


@never_cache
@require_POST
def log_out(request: HttpRequest) -> HttpResponse:
    """End this session."""
    user = request.user
    logout(request)
    if isinstance(user, User):
        audit_record(action="logout", principal=principal_of(user))
    return redirect("portal:login")


@sensitive_post_parameters()
@page
def password(request: HttpRequest) -> HttpResponse:
    """Set or change a password; the old one is required unless there is none or the session began with a link."""
    user = current_user(request)
    if hasattr(user, "external_identity"):
        return render(request, "403.html", {"detail": "Your identity provider manages your password."}, status=403)
    needs_old = user.has_usable_password() and not request.session.get(BY_LINK)
    attempt = None
    if request.method == "POST" and needs_old:
        attempt = attempt_login(account=user.get_username(), address=address_of(request))
        if attempt.wait_s:
            form = _password_form(user, None, needs_old=needs_old)
            return _wait_page(request, {"form": form}, attempt.wait_s, "portal/password.html")
    form = _password_form(user, request.POST if request.method == "POST" else None, needs_old=needs_old)
    if form.is_bound and form.is_valid():
        if attempt:
            attempt.succeeded()
        form.save()
        before = request.session.session_key
        update_session_auth_hash(request, user)
        session_rekeyed(request, before)
        request.session.pop(BY_LINK, None)
        password_changed(user=user, by=principal_of(user), keep=request.session.session_key)
        messages.success(request, "The password is set. Your other sessions are ended.")
        return redirect("portal:account")
    if attempt and "old_password" not in form.errors:
        attempt.succeeded()  # the old one was right; the new one was not good enough
    return render(request, "portal/password.html", {"form": form})


def _succeed(request: HttpRequest, user: User, attempt: Attempt) -> None:
    attempt.succeeded()
    log_in(request, user, backend=BACKEND, by_link=True)
    audit_record(action="login", principal=principal_of(user), details={"by": "link"})


def _record_failure(name: str, reason: str, by: str) -> None:
    """Audit a failed login; the name is recorded only if a user has it, because people type passwords into the wrong
    field."""
    who = name if name and user_named(name) is not None else ""
    audit_record(action="login.failed", outcome=REFUSED, who=who, reason=reason, details={"by": by})


def _wait_page(request: HttpRequest, context: dict[str, Any], wait_s: int, template: str) -> HttpResponse:
    """Show the page again with the time of the next allowed attempt; the same for existing and unknown users."""
    response = render(request, template, context | {"wait": words.duration(wait_s)}, status=429)
    response["Retry-After"] = str(wait_s)
    return response


def _password_form(user: User, typed: Any, *, needs_old: bool) -> SetPasswordForm[User]:
    kind = PasswordChangeForm if needs_old else SetPasswordForm
    form = kind(user, typed)
    form.label_suffix = ""
    return form
