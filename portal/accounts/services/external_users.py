"""Local users of a provider's subjects: one user per issuer and subject, with the role that the claim maps to at each
login."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from eventing.access.selectors.console_users import role_of, user_principal
from eventing.audit.services import audit_record
from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden
from eventing.core.roles import parse_role_mapping, strongest
from eventing.sql.locking import lock_domain
from portal.accounts.models import ExternalIdentity
from portal.accounts.services.roles import NO_ROLE, role_store
from portal.accounts.services.sessions import sessions_end
from portal.accounts.services.users import EXTERNAL_PREFIX, USERS_MAX, tokens_revoke, weaker

VALUES_MAX = 1000
"""Most values of the role claim that are looked at; directories list hundreds of groups."""


def external_user(claims: Mapping[str, Any]) -> User:
    """Return the user of verified `claims`, created at the first login. The role is set at each login: a user who has
    lost it at the provider loses it here, with sessions and tokens. Raises Forbidden without a mapped role, or when
    deactivated here.
    """
    role = mapped_role(claims.get(config().oidc_role_claim))
    with transaction.atomic():
        lock_domain()
        found = (
            ExternalIdentity.objects.select_related("user").filter(issuer=claims["iss"], subject=claims["sub"]).first()
        )
        if found is not None or role:
            user = found.user if found is not None else _made(claims)
            _update(user, claims, role)
    if not role:
        raise Forbidden("Your account at the identity provider has no role here; ask an administrator of this domain.")
    if not user.is_active:
        raise Forbidden("Your user is deactivated here; ask an administrator of this domain.")
    return user


def mapped_role(value: Any) -> str:
    """Return the strongest role that the claim's value, or one of its values, maps to; empty for none."""
    mapping = parse_role_mapping(config().oidc_roles)
    values = value[:VALUES_MAX] if isinstance(value, list) else [value]
    return strongest({mapping[item] for item in values if isinstance(item, str) and item in mapping})


def external_name(issuer: str, subject: str) -> str:
    """Return the user's name: derived from issuer and subject, so that it is unique whatever names the provider
    allows."""
    digest = hashlib.sha256(f"{issuer}\x00{subject}".encode()).digest()
    return EXTERNAL_PREFIX + base64.b32encode(digest).decode().lower()[:20]


def _made(claims: Mapping[str, Any]) -> User:
    if User.objects.count() >= USERS_MAX:
        raise Conflict(f"A console has at most {USERS_MAX} users.")
    user = User.objects.create_user(external_name(claims["iss"], claims["sub"]))
    ExternalIdentity.objects.create(user=user, issuer=claims["iss"], subject=claims["sub"])
    return user


def _update(user: User, claims: Mapping[str, Any], role: str) -> None:
    """Store the provider's current claims; the e-mail address is informative and decides nothing."""
    user.email = _text(claims.get("email"), 254)
    user.first_name = _text(claims.get("name") or claims.get("preferred_username"), 150)
    user.save(update_fields=["email", "first_name"])
    before = role_of(user)
    if before == role:
        return
    role_store(user, role)
    who = user_principal(user, expires_at=0, role=NO_ROLE)
    if weaker(role, before):
        sessions_end(user)
        tokens_revoke(user, by=None, reason="role changed at the identity provider")
    details = {"role": [before, role], "by": "identity provider"}
    audit_record(action="user.role", principal=who, on=("user", user.get_username()), details=details)


def _text(value: Any, chars: int) -> str:
    return value.replace("\x00", "")[:chars] if isinstance(value, str) else ""
