"""The directory as it survives a restart: the newest record of each domain, and the keys of those that have expired."""

from __future__ import annotations

from django.db import models


class DirectoryDomain(models.Model):
    """A domain of the directory.

    Attributes:
        fingerprint: of its identity key: the only one that is accepted for this name while the row exists.
        record: as its domain signed it (rules/records.py: record_bytes).
        url: where it is called; empty if it only calls out.
        sponsor: empty for a founder.
        held: whether the record is in the directory; False once it has expired.
        admitted_at: when this domain first held a record of it.
        convicted_at: when it was proved to have signed contradictory statements; None if it was not.
    """

    name = models.CharField(primary_key=True, max_length=253)
    fingerprint = models.CharField(max_length=64)
    record = models.BinaryField()
    version = models.BigIntegerField()
    url = models.CharField(max_length=255, blank=True)
    zone = models.CharField(max_length=32, blank=True)
    capacity = models.SmallIntegerField()
    sponsor = models.CharField(max_length=253, blank=True)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    held = models.BooleanField(default=True)
    admitted_at = models.DateTimeField()
    convicted_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["zone", "name"], name="directory_by_zone"),
            models.Index(fields=["held", "expires_at"], name="directory_by_end"),
            models.Index(fields=["sponsor", "name"], name="directory_by_sponsor"),
        ]

    def __str__(self) -> str:
        return self.name
