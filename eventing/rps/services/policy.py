"""Explanations of policy decisions, for permitted principals."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eventing.access.rules import jwks
from eventing.access.rules.policy import compile_policy
from eventing.access.rules.tokens import Read, own_principal
from eventing.conf import config
from eventing.core.errors import Unauthenticated
from eventing.core.principals import Principal
from eventing.rps.rules.policy_explain import PolicyExplanationAnswer, explain
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require

_LASTS_S = 60  # lifetime of a hypothetical token, if its claims state none


def policy_explanation(
    *,
    reference: str,
    asker: Principal,
    operation: str,
    bearer: Callable[[], Principal],
    own: bool = False,
    draft: Sequence[Mapping[str, Any]] | None = None,
    now: float | None = None,
) -> PolicyExplanationAnswer:
    """Decide whether a bearer may do `operation` at the RP, and explain what decides.

    Args:
        reference: the RP's id or name.
        asker: the requesting principal; one that may administer the RP may ask about every bearer.
        bearer: returns the principal in question; called once the asker is permitted. Its refusal with Unauthenticated
            is the answer.
        own: whether the asker is the bearer. The RP's rules are hidden from a bearer that may neither describe nor
            administer it.
        draft: an unsaved policy that decides instead of the RP's own; only for those that may administer the RP.
        now: Unix time in seconds; None for the present.

    Raises NotFound, InvalidRequest, Gone, Forbidden, and the errors of `bearer` except Unauthenticated.
    """
    descriptor = descriptor_get(reference)
    if not own or draft is not None:
        require(descriptor, asker, "administer")
    if draft is not None:
        policy, authority = compile_policy(draft), descriptor.authority
        descriptor = replace(descriptor, policy=policy.seen_from(config().domain, authority) if authority else policy)
    try:
        principal = bearer()
    except Unauthenticated as error:
        return PolicyExplanationAnswer(False, "token", error.detail, [])
    explanation = explain(descriptor, principal, operation, now=time.time() if now is None else now)
    if own and not any(descriptor.allows(asker, reading) for reading in ("describe", "administer")):
        explanation.rules = []
    return explanation


def made_up(claims: Mapping[str, Any], *, now: float | None = None) -> Principal:
    """Make the principal of a hypothetical token with these claims, signed by its issuer (`iss`).

    The claims are checked as in a real token, but `sub`, `aud` and `exp` may be absent. Raises Unauthenticated.
    """
    domain, now = config().domain, time.time() if now is None else now
    audiences = (domain, config().base_url)
    token = Read({}, {"sub": "-", "aud": domain, "exp": now + _LASTS_S, **claims}, b"", b"")
    if claims.get("iss") == domain:
        principal = own_principal(token, {}, issuer=domain, audience=audiences, now=now)
    else:
        principal = jwks.principal_of(token, audience=audiences, now=now)
    return replace(principal, claims=claims)
