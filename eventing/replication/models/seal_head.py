"""The newest seal of each of the domain's own feeds, kept outside the data plane as proof of what has left the domain."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from eventing.core.merkle import HASH_BYTES


class SealHead(models.Model):
    """Newest seal of the feed of one RP in one epoch. Written before the run that it covers leaves the domain.

    Rows of one RP are ordered by `id`: the newest is the epoch in use; an older epoch must never return. `statement` is
    the seal (MessagePack of core/signing.py: Signed), `digest` the name by which the next seal refers to it, `leaves`
    its run's leaf hashes: with them a seal that a crash kept out of the log is stored there later.
    """

    id = models.BigAutoField(primary_key=True)
    rp = models.CharField(max_length=64)
    epoch = models.CharField(max_length=26)
    last = models.BigIntegerField()
    digest = models.BinaryField(max_length=HASH_BYTES)
    statement = models.BinaryField()
    leaves = models.BinaryField()
    sealed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rp", "epoch"], name="seal_head_is_one"),
            models.CheckConstraint(condition=Q(last__gte=1), name="seal_head_covers_something"),
        ]

    def __str__(self) -> str:
        return f"{self.rp} {self.epoch}:{self.last}"
