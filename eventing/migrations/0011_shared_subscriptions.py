"""Durable subscriptions that are recorded at several domains, of which one delivers."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0010_seals_and_evidence")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="subscription",
            name="keeper",
            field=models.CharField(blank=True, default="", max_length=253),
        ),
        migrations.CreateModel(
            name="SharedSubscription",
            fields=[
                ("id", models.CharField(max_length=30, primary_key=True, serialize=False)),
                ("rp", models.CharField(max_length=32)),
                ("keeper", models.CharField(max_length=253)),
                ("version", models.BigIntegerField()),
                ("statement", models.BinaryField()),
                ("ended", models.BooleanField(default=False)),
                ("told", models.JSONField(default=dict)),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=Q(("version__gte", 1)), name="shared_subscription_has_a_version")
                ],
                "indexes": [
                    models.Index(fields=["keeper"], name="shared_by_keeper"),
                    models.Index(fields=["expires_at"], name="shared_by_end"),
                ],
            },
        ),
    ]
