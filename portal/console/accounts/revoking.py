"""Revocation of a console user's tokens when the user loses rights."""

from __future__ import annotations

from django.contrib.auth.models import User

from eventing.access.services.revocations import revocation_create
from eventing.conf import config
from eventing.core.principals import Principal

DOMAIN = "domain"


def tokens_revoke(user: User, *, by: Principal | None, reason: str) -> None:
    """Revoke all tokens issued so far in the user's name; connections that use them, and the user's console
    connections, end.

    `by` is an administrator; None for the domain itself. Tokens issued later are valid: a user who is activated again
    needs no lifting of the revocation.
    """
    issuer = config().domain
    domain = Principal(issuer, DOMAIN, True, float("inf"), {"iss": issuer, "sub": DOMAIN, "admin": True})
    revocation_create(principal=by or domain, kind="subject", value=user.get_username(), reason=reason)
