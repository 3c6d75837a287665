"""Tables of the subject."""

from __future__ import annotations

from eventing.access.models.domain_key import DomainKey
from eventing.access.models.policy_issuer import PolicyIssuer
from eventing.access.models.revocation import Revocation

__all__ = [
    "DomainKey",
    "PolicyIssuer",
    "Revocation",
]
