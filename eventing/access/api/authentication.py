"""Authentication of requests by token, and the permission class that requires one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission

from eventing.access.verification.request_users import ApiUser
from eventing.access.verification.verifier import verifier
from eventing.conf import config
from eventing.core.errors import Unauthenticated
from eventing.core.principals import ANONYMOUS

if TYPE_CHECKING:  # DRF's views import this module, named in its settings
    from rest_framework.request import Request
    from rest_framework.views import APIView


class TokenAuthentication(BaseAuthentication):
    """Authentication by a token in `Authorization: Bearer` or, where a header cannot be set, in `?access_token=`."""

    def authenticate(self, request: Request) -> tuple[ApiUser, str] | None:
        """Authenticate the bearer; None if no token was sent. Raises Unauthenticated for an invalid one."""
        token = _token(request)
        if token is None:
            return None
        return ApiUser(verifier().verify(token)), token

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401."""
        return f'Bearer realm="{config().domain}"'


class IsAuthenticated(BasePermission):
    """Requires a token or a session for everything but the schema, and for `open_methods` of a view if no policy admits anyone."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True if the client is authenticated, or need not be. Raises Unauthenticated."""
        if request.user and request.user.is_authenticated:
            return True
        return request.method in getattr(view, "open_methods", ()) and verifier().verify("") is ANONYMOUS


def _token(request: Request) -> str | None:
    header = request.META.get("HTTP_AUTHORIZATION")
    if header is None:
        return request.GET.get("access_token")
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("Send the token as `Authorization: Bearer TOKEN`.")
    return str(token.strip())
