"""Answers to creations that carried an Idempotency-Key, kept so that a repetition gets the same answer."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class IdempotencyRecord(models.Model):
    """One key of one principal; `digest` covers the request's method, path and body.

    Life of a record: claimed (`status` None, no other request may use the key until `claimed_until`) -> created
    (`resource` set, in the transaction of the creation) -> answered (`status`, `body`, `headers` set) -> removed after
    `expires_at`. A record left claimed by a crash may be taken over; one left created is answered from the resource.
    """

    principal = models.CharField(max_length=512)
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    claimed_until = models.DateTimeField()
    resource = models.CharField(max_length=32, blank=True, default="")
    status = models.SmallIntegerField(null=True)
    body = models.JSONField(null=True)
    headers = models.JSONField(default=dict)
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["principal", "key"], name="idempotency_key_is_used_once"),
            models.CheckConstraint(condition=Q(status=None) | ~Q(resource=""), name="idempotency_answer_has_resource"),
        ]
        indexes = [models.Index(fields=["expires_at"], name="idempotency_by_end")]

    def __str__(self) -> str:
        return f"{self.principal} {self.key}"
