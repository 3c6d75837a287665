"""Intakes: addresses at which other systems' webhooks become events of a rendezvous point."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

FORMATS = ("plain", "cloudevents", "standard-webhooks", "github", "stripe", "grafana", "alertmanager")


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0019_acquaintances")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Intake",
            fields=[
                ("asked_s", models.BigIntegerField(null=True)),
                ("granted_s", models.BigIntegerField()),
                ("warn_at", models.DateTimeField()),
                ("warned_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField()),
                ("id", models.CharField(max_length=29, primary_key=True, serialize=False)),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("owner", models.CharField(max_length=512)),
                ("version", models.BigIntegerField(default=1)),
                ("format", models.CharField(max_length=32)),
                ("title", models.CharField(blank=True, default="", max_length=255)),
                ("source", models.CharField(max_length=255)),
                ("secret", models.BinaryField(null=True)),
                ("previous", models.BinaryField(null=True)),
                ("previous_until", models.DateTimeField(null=True)),
                ("timestamp_header", models.CharField(blank=True, default="", max_length=64)),
                ("created_at", models.DateTimeField()),
                (
                    "rp",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="intakes",
                        to="eventing.rendezvouspoint",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["expires_at", "id"], name="intake_by_end"),
                    models.Index(fields=["warn_at"], condition=Q(warned_at=None), name="intake_to_warn"),
                    models.Index(fields=["rp", "id"], name="intake_of_rp"),
                ],
                "constraints": [
                    models.CheckConstraint(condition=Q(granted_s__gte=1), name="intake_lease_lasts"),
                    models.CheckConstraint(condition=Q(warn_at__lte=F("expires_at")), name="intake_warned_before_end"),
                    models.CheckConstraint(condition=Q(format__in=FORMATS), name="intake_format_is_known"),
                    models.CheckConstraint(
                        condition=Q(previous=None, previous_until=None)
                        | Q(previous__isnull=False, previous_until__isnull=False),
                        name="intake_previous_secret_ends",
                    ),
                ],
            },
        ),
    ]
