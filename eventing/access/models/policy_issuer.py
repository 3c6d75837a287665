"""Foreign issuers named by this domain's policies: only their keys are ever fetched."""

from __future__ import annotations

from django.db import models

from eventing.access.rules.policy_issuers import ADDRESS_CHARS_MAX


class PolicyIssuer(models.Model):
    """An issuer that the policy of one RP names; written with the policy, removed with its RP.

    `jwks` is the address of the keys as the policy states it; empty for the issuer's own discovery. A policy that
    admits anyone has a row with the issuer `anyone`, so that domains without such policies need not check whether
    anonymous clients are admitted.
    """

    rp = models.ForeignKey(
        "eventing.RendezvousPoint", on_delete=models.CASCADE, related_name="policy_issuers", db_index=False
    )
    issuer = models.CharField(max_length=ADDRESS_CHARS_MAX)
    jwks = models.CharField(max_length=ADDRESS_CHARS_MAX, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rp", "issuer", "jwks"], name="policy_issuer_is_named_once")]
        indexes = [models.Index(fields=["issuer", "jwks"], name="policy_issuer_by_name")]

    def __str__(self) -> str:
        return f"{self.issuer} {self.jwks}".rstrip()
