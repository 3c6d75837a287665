"""Proofs of equivocation, kept permanently, and the position up to which each peer has received them."""

from __future__ import annotations

from django.db import models


class Evidence(models.Model):
    """Two seals that one origin signed for one place. `digest` covers both in either order, so each proof is kept once.

    Ids grow in the order of arrival; a peer has received the proofs up to its EvidenceSpread. `carrier` is the peer
    that delivered the proof, empty if this domain found it.
    """

    id = models.BigAutoField(primary_key=True)
    digest = models.CharField(max_length=64, unique=True)
    origin = models.CharField(max_length=253)
    rp = models.CharField(max_length=64)
    epoch = models.CharField(max_length=26)
    one = models.BinaryField()
    other = models.BinaryField()
    carrier = models.CharField(max_length=253, blank=True, default="")
    found_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["origin", "id"], name="evidence_by_origin")]

    def __str__(self) -> str:
        return f"{self.origin} {self.rp} {self.digest[:16]}"


class EvidenceSpread(models.Model):
    """The id up to which a peer has received the evidence."""

    peer = models.CharField(primary_key=True, max_length=253)
    through = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.peer} {self.through}"
