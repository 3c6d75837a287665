"""Storage of roles: an administrator is a superuser, other roles are groups of the role's name."""

from __future__ import annotations

from django.contrib.auth.models import Group, User

from eventing.access.selectors.console_users import role_of
from eventing.core.errors import InvalidRequest
from eventing.core.roles import ADMINISTRATOR, ROLES

NO_ROLE = ""
CHOICES = [
    (NO_ROLE, "none"),
    *((role, role) for role in ROLES),
]
ABOUT = (
    "A viewer sees everything and changes nothing. An operator also acts on all rendezvous points and subscriptions. An "
    "administrator does everything, users and keys included. Without a role policies decide, as for any token."
)


def role_store(user: User, role: str) -> None:
    """Give `user` exactly this role, of ROLES or NO_ROLE; no rule is checked here. Raises InvalidRequest for another."""
    if role not in (*ROLES, NO_ROLE):
        raise InvalidRequest(f"A role is {', '.join(ROLES)}, or empty.")
    user.is_superuser = role == ADMINISTRATOR
    user.save(update_fields=["is_superuser"])
    user.groups.remove(*Group.objects.filter(name__in=ROLES))
    if role:
        user.groups.add(Group.objects.get_or_create(name=role)[0])


__all__ = ["ABOUT", "CHOICES", "NO_ROLE", "role_of", "role_store"]
