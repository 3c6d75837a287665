"""Sponsorships that this domain granted: each number of a day once."""

from __future__ import annotations

from django.db import models


class GrantedSponsorship(models.Model):
    """A sponsorship.

    Attributes:
        newcomer: the domain that it admits.
        key: member `x` of the newcomer's identity key.
        day: days since 1970.
        number: of that day.
        signature: by this domain's identity key.
    """

    newcomer = models.CharField(primary_key=True, max_length=253)
    key = models.CharField(max_length=64)
    day = models.IntegerField()
    number = models.IntegerField()
    signature = models.BinaryField()
    granted_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "number"], name="sponsorship_number_is_used_once")]

    def __str__(self) -> str:
        return f"{self.newcomer} {self.day}/{self.number}"
