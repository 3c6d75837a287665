"""Domain documents: the newest one of each trusted domain, and of this domain."""

from __future__ import annotations

from django.db import models

from eventing.core.signing import Signed

NAME_CHARS_MAX = 253


class DomainDocument(models.Model):
    """A domain's document, as the statement that the domain signed (peering/rules/domain_documents.py).

    Attributes:
        name: the domain's name; this domain's own row holds the document that it issued last.
        serial: the document's serial.
        fingerprint: kid of the domain's first key, as it was trusted first.
        payload, kids, signature: the statement.
        received_at: when the document was accepted here.
    """

    name = models.CharField(primary_key=True, max_length=NAME_CHARS_MAX)
    serial = models.BigIntegerField()
    fingerprint = models.CharField(max_length=64)
    payload = models.BinaryField()
    kids = models.TextField()
    signature = models.BinaryField()
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name

    @property
    def statement(self) -> Signed:
        """Return the document as a statement to pass on."""
        return Signed(bytes(self.payload), self.kids, bytes(self.signature))
