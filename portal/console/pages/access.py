"""Decorators of views: authentication and error handling. A page shows an error page, an endpoint answers with a
problem document."""

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

from eventing.access.selectors.console_users import user_principal
from eventing.core.errors import ApplicationError, Forbidden, Unauthenticated, Unavailable
from eventing.core.principals import Principal
from eventing.store.errors import RedisError
from portal.accounts.services.users import may_administer_users

View = Callable[..., HttpResponseBase]
PRINCIPAL_S = 60.0
"""Lifetime of the principal of a page request; no page takes longer."""

_TEMPLATES = {400: "400.html", 403: "403.html", 503: "503.html"}


def current_user(request: HttpRequest) -> User:
    """The logged-in user of a request that a decorator below has let through."""
    return cast(User, request.user)


def principal_of(user: User) -> Principal:
    """Return the principal of a console user for services: the same subject and rights as on the console's
    WebSocket."""
    return user_principal(user, expires_at=now().timestamp() + PRINCIPAL_S)


def page(view: View) -> View:
    """Decorate a page for logged-in users; errors of services become error pages."""

    @never_cache
    @login_required
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except ApplicationError as error:
            return error_page(request, error)
        except RedisError:
            return error_page(request, Unavailable("Redis does not respond."))

    return wrapped


def administrator_page(view: View) -> View:
    """Decorate a page for administrators of the domain."""

    @page
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not may_administer_users(principal_of(current_user(request))):
            raise Forbidden("Only administrators of this domain may use this page.")
        return view(request, *args, **kwargs)

    return wrapped


def error_page(request: HttpRequest, error: ApplicationError) -> HttpResponse:
    """Return the page for an error; deleted objects and objects that never existed look the same."""
    status = 404 if error.status in (404, 410) else error.status
    template = _TEMPLATES.get(status, "404.html" if status == 404 else "400.html")
    return render(request, template, {"detail": error.detail}, status=status)


def endpoint(view: View) -> View:
    """Decorate an endpoint for scripts: JSON answers, errors as problem documents, never a redirect to the login
    page."""

    @never_cache
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            if not request.user.is_authenticated:
                raise Unauthenticated("Your session has ended; log in again.")
            return view(request, *args, **kwargs)
        except ApplicationError as error:
            return problem(error)
        except RedisError:
            return problem(Unavailable("The data plane does not respond; try again."))

    return wrapped


def problem(error: ApplicationError) -> HttpResponse:
    """Return the problem document of an error."""
    return JsonResponse(error.document(), status=error.status, content_type="application/problem+json")
