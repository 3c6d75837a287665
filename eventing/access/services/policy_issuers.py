"""Record of the issuers that policies name, written in the transaction of the policy. Rows are removed with their RP."""

from __future__ import annotations

from typing import Any

from eventing.access.models import PolicyIssuer
from eventing.access.rules.policy import compile_policy
from eventing.access.rules.policy_issuers import ANYONE
from eventing.access.selectors.policy_issuers import SOURCES_MAX, policy_issuers_of, policy_sources
from eventing.core.errors import QuotaExceeded

SOURCES_OF_ISSUER_MAX = 8  # JWKS addresses of one issuer: each may have to be asked for a key that no other has


def policy_issuers_keep(rp: str, stated: list[Any]) -> bool:
    """Store the issuers of an RP's policy; return True if they changed. Call it under the domain's lock, once the RP is
    saved.

    Args:
        rp: id of the RP.
        stated: its policy, a valid one.

    After a change gateways should be notified (`Outbox.announce`): they read issuers from SQL only at a limited rate.

    Raises QuotaExceeded when the domain's policies would name too many issuers, or one with too many JWKS addresses.
    """
    policy = compile_policy(stated)
    wanted = set(policy.issuers)
    if any(rule.issuer == ANYONE for rule in policy.rules):
        wanted.add((ANYONE, ""))
    kept = policy_issuers_of(rp)
    for issuer, jwks in kept - wanted:
        PolicyIssuer.objects.filter(rp_id=rp, issuer=issuer, jwks=jwks).delete()
    fresh = wanted - kept
    if fresh - {(ANYONE, "")}:
        _require_room(fresh)
    PolicyIssuer.objects.bulk_create(PolicyIssuer(rp_id=rp, issuer=issuer, jwks=jwks) for issuer, jwks in sorted(fresh))
    return kept != wanted


def _require_room(fresh: set[tuple[str, str]]) -> None:
    sources = {issuer: set(found) for issuer, found in policy_sources().items()}
    for issuer, jwks in fresh:
        of_issuer = sources.setdefault(issuer, set())
        of_issuer.add(jwks)
        if len(of_issuer - {""}) > SOURCES_OF_ISSUER_MAX:
            raise QuotaExceeded(
                f"Policies of this domain name {SOURCES_OF_ISSUER_MAX} JWKS addresses for {issuer} already. Use one of those.",
                limit=SOURCES_OF_ISSUER_MAX,
            )
    if sum(map(len, sources.values())) > SOURCES_MAX:
        raise QuotaExceeded(f"Policies of this domain name at most {SOURCES_MAX} issuers.", limit=SOURCES_MAX)
