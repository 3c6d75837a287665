"""Users of the console as principals: the same subject and rights for pages, REST with a session, and the console's token."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, User

from eventing.conf import config
from eventing.core.principals import Principal
from eventing.core.roles import ADMINISTRATOR, scopes_of, strongest


def role_of(user: AbstractBaseUser) -> str:
    """Role of the user, one of core.roles.ROLES; empty for none. A superuser is an administrator, whatever the groups."""
    if not isinstance(user, User):
        return ""
    if user.is_superuser:
        return ADMINISTRATOR
    return strongest(set(user.groups.values_list("name", flat=True)) - {ADMINISTRATOR})


def user_principal(user: User, *, expires_at: float, role: str | None = None) -> Principal:
    """Make the principal of a console user.

    Args:
        expires_at: Unix time in seconds; infinity where the session is the lease.
        role: the role, if already known; None to look it up.
    """
    role = role_of(user) if role is None else role
    domain, subject = config().domain, user.get_username()
    claims = {"iss": domain, "sub": subject, **({"admin": True} if role else {})}
    return Principal(domain, subject, bool(role), expires_at, claims, scopes_of(role))
