"""Founders of the federation that this domain trusts: roots of sponsorship."""

from __future__ import annotations

from django.db import models


class OverlayFounder(models.Model):
    """A founder.

    Attributes:
        fingerprint: of its identity key.
        learned_from: the sponsor whose chain of records ended there; this domain's own name if it founded.
    """

    name = models.CharField(primary_key=True, max_length=253)
    fingerprint = models.CharField(max_length=64)
    learned_from = models.CharField(max_length=253)
    added_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
