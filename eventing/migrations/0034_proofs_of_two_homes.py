"""Proofs that an RP was handed over twice."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0033_drain_of_subscriptions")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="HomeProof",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("rp", models.CharField(max_length=26)),
                ("term", models.BigIntegerField()),
                ("kept", models.CharField(max_length=253)),
                ("other", models.CharField(max_length=253)),
                ("accused", models.JSONField(default=list)),
                ("detail", models.JSONField(default=list)),
                ("hand_overs", models.JSONField(default=list)),
                ("carrier", models.CharField(blank=True, default="", max_length=253)),
                ("found_at", models.DateTimeField()),
            ],
        ),
    ]
