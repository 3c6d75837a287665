"""What a policy decides and why, for those who may know it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from eventing.access.rules import jwks
from eventing.access.rules.tokens import Read, own_principal
from eventing.conf import config
from eventing.core.errors import Unauthenticated
from eventing.core.principals import Principal
from eventing.rps.rules.policy_explain import Explanation, explain
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require

_LASTS_S = 60  # a made-up token's life, if its claims do not say


def policy_explanation(
    *,
    reference: str,
    asker: Principal,
    operation: str,
    bearer: Callable[[], Principal],
    own: bool = False,
    now: float | None = None,
) -> Explanation:
    """Whether a bearer may do `operation` at the RP, and what decides it.

    Args:
        reference: the RP's id or name.
        asker: who wants to know: whoever may administer the RP may ask about everybody.
        bearer: tells who it is about; called once the asker may ask. What it refuses with Unauthenticated is the answer.
        own: whether the asker is the bearer. Those who may neither describe nor administer the RP do not get to see
            its rules this way.
        now: Unix time in seconds; None for the present.

    Raises NotFound, InvalidRequest, Gone, Forbidden, and what `bearer` raises but for Unauthenticated.
    """
    descriptor = descriptor_get(reference)
    if not own:
        require(descriptor, asker, "administer")
    try:
        principal = bearer()
    except Unauthenticated as error:
        return Explanation(False, "token", error.detail)
    explanation = explain(descriptor, principal, operation, now=time.time() if now is None else now)
    if own and not any(descriptor.allows(asker, reading) for reading in ("describe", "administer")):
        return replace(explanation, rules=())
    return explanation


def made_up(claims: Mapping[str, Any], *, now: float | None = None) -> Principal:
    """Whom a token with these claims would speak for, had its issuer (`iss`) signed it.

    It is read as a real one; only what every token has may be left out: `sub`, `aud`, `exp`. Raises Unauthenticated.
    """
    domain, now = config().domain, time.time() if now is None else now
    audiences = (domain, config().base_url)
    token = Read({}, {"sub": "-", "aud": domain, "exp": now + _LASTS_S, **claims}, b"", b"")
    if claims.get("iss") == domain:
        principal = own_principal(token, {}, issuer=domain, audience=audiences, now=now)
    else:
        principal = jwks.principal_of(token, audience=audiences, now=now)
    return replace(principal, claims=claims)
