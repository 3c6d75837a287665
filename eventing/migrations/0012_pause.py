"""Rendezvous points at which an operator has paused publishing."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0011_shared_subscriptions")]

    operations: ClassVar = [
        migrations.AddField("rendezvouspoint", "paused_at", models.DateTimeField(null=True)),
        migrations.AddField("rendezvouspoint", "paused_by", models.CharField(blank=True, default="", max_length=512)),
        migrations.AddField(
            "rendezvouspoint", "paused_reason", models.CharField(blank=True, default="", max_length=255)
        ),
        migrations.AddConstraint(
            "rendezvouspoint",
            models.CheckConstraint(
                condition=Q(paused_at__isnull=False) | Q(paused_by="", paused_reason=""), name="rp_paused_or_not"
            ),
        ),
    ]
