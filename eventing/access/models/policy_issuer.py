"""Which foreign issuers the policies of this domain name: only their keys are ever fetched."""

from __future__ import annotations

from django.db import models

from eventing.access.rules.policy_issuers import ADDRESS_CHARS_MAX


class PolicyIssuer(models.Model):
    """One issuer that the policy of one RP names; written with the policy, gone with its RP.

    `jwks` is where that policy has the keys from; empty for the issuer's own discovery. A policy that admits anyone has
    a row with the issuer `anyone`, so that domains that never open anything need not look for who could be let in.
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
