"""This domain's membership of an overlay: one row, present from joining to leaving."""

from __future__ import annotations

from django.db import models


class OverlayMembership(models.Model):
    """The membership.

    Attributes:
        id: 1.
        sponsor: the domain that sponsored this one; empty for a founder.
        grant: the sponsorship with its signature (rules/records.py: SponsorshipGrant), as MessagePack; empty for a founder.
        version: of the newest record that this domain issued; the next one is greater, also if the clock was set back.
        known: names of the last good links, asked first after a start.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    sponsor = models.CharField(max_length=253, blank=True, default="")
    grant = models.BinaryField()
    version = models.BigIntegerField(default=0)
    known = models.JSONField(default=list)
    joined_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="overlay_membership_is_one")]

    def __str__(self) -> str:
        return self.sponsor or "founder"
