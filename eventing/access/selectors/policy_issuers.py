"""Reads of the foreign issuers named by this domain's policies."""

from __future__ import annotations

from eventing.access.models import PolicyIssuer

SOURCES_MAX = 10_000  # distinct (issuer, jwks) of the domain; access/services/policy_issuers.py takes no more


def policy_sources() -> dict[str, tuple[str, ...]]:
    """Return for each issuer in some policy the sources of its keys: empty (its own discovery) first, then JWKS addresses."""
    found: dict[str, list[str]] = {}
    rows = PolicyIssuer.objects.order_by("issuer", "jwks").values_list("issuer", "jwks").distinct()
    for issuer, jwks in rows[: SOURCES_MAX + 1]:
        found.setdefault(issuer, []).append(jwks)
    return {issuer: tuple(sources) for issuer, sources in found.items()}


def policy_issuers_of(rp: str) -> set[tuple[str, str]]:
    """Return the stored issuers of one RP's policy: (issuer, jwks)."""
    return set(PolicyIssuer.objects.filter(rp=rp).values_list("issuer", "jwks"))
