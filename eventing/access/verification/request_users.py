"""The user of a Django request as a principal: the bearer of a token, or a user of the console."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eventing.access.selectors.console_users import user_principal
from eventing.core.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from rest_framework.request import Request


@dataclass(frozen=True, slots=True)
class ApiUser:
    """User in DRF's sense: the bearer of a verified token."""

    principal: Principal
    is_authenticated: ClassVar[bool] = True
    is_active: ClassVar[bool] = True


def principal_of(request: Request) -> Principal:
    """Return the principal of a request. A console user is a principal of this domain, with the rights of the role; the
    session is the lease."""
    user: Any = request.user
    if isinstance(user, ApiUser):
        return user.principal
    if not user or not user.is_authenticated:
        return ANONYMOUS
    return user_principal(user, expires_at=math.inf)
