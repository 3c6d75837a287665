"""The edges of a view: who asks, and how an error looks. A page shows an error page, an endpoint answers a problem document."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.timezone import now
from django.views.decorators.cache import never_cache
from redis.exceptions import RedisError

from eventing.access.verification.console_users import user_principal
from eventing.core.errors import Forbidden, HeraldError, Unauthenticated, Unavailable
from eventing.core.principals import Principal
from portal.console.accounts.users import may_administer_users

View = Callable[..., HttpResponseBase]
PRINCIPAL_S = 60.0
"""How long a principal lives that a page makes for itself; no page takes longer."""

_TEMPLATES = {400: "400.html", 403: "403.html", 503: "503.html"}


def current_user(request: HttpRequest) -> User:
    """The logged-in user of a request that a decorator below has let through."""
    return cast(User, request.user)


def principal_of(user: User) -> Principal:
    """Who a console user is to the services: the same subject and rights as in the token that the console gets."""
    return user_principal(user, expires_at=now().timestamp() + PRINCIPAL_S)


def page(view: View) -> View:
    """A page for logged-in users; refusals of the services become error pages of the same look."""

    @never_cache
    @login_required
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except HeraldError as error:
            return error_page(request, error)
        except RedisError:
            return error_page(request, Unavailable("Redis does not answer."))

    return wrapped


def administrator_page(view: View) -> View:
    """A page for administrators of the domain."""

    @page
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not may_administer_users(principal_of(current_user(request))):
            raise Forbidden("Only an administrator of this domain may see and change this.")
        return view(request, *args, **kwargs)

    return wrapped


def error_page(request: HttpRequest, error: HeraldError) -> HttpResponse:
    """The page for an error; what is gone and what never was look the same."""
    status = 404 if error.status in (404, 410) else error.status
    template = _TEMPLATES.get(status, "404.html" if status == 404 else "400.html")
    return render(request, template, {"detail": error.detail}, status=status)


def endpoint(view: View) -> View:
    """What a page's script asks: answers JSON, errors as problem documents, never a redirect to the login page."""

    @never_cache
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            if not request.user.is_authenticated:
                raise Unauthenticated("Your session has ended; log in again.")
            return view(request, *args, **kwargs)
        except HeraldError as error:
            return _problem(error)
        except RedisError:
            return _problem(Unavailable("The data plane does not answer; try again."))

    return wrapped


def _problem(error: HeraldError) -> HttpResponse:
    return JsonResponse(error.document(), status=error.status, content_type="application/problem+json")
