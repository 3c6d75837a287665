"""Tokens of a console user's name end with the right that they were given by."""

from __future__ import annotations

from django.contrib.auth.models import User

from eventing.access.services.revocations import revocation_create
from eventing.conf import config
from eventing.core.principals import Principal

DOMAIN = "domain"


def tokens_revoke(user: User, *, by: Principal | None, reason: str) -> None:
    """Revoke what tokens were issued until now in the user's name, the console's own included: connections with them end.

    `by` is an administrator; None for the domain itself. Tokens issued later are good: a user who comes back needs no lifting.
    """
    issuer = config().domain
    domain = Principal(issuer, DOMAIN, True, float("inf"), {"iss": issuer, "sub": DOMAIN, "admin": True})
    revocation_create(principal=by or domain, kind="subject", value=user.get_username(), reason=reason)
