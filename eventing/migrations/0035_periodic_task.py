"""Leases of the periodic tasks."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0034_proofs_of_two_homes")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="PeriodicTask",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("holder", models.CharField(db_default="", max_length=100)),
                ("fence", models.BigIntegerField(db_default=0)),
                ("due_at", models.FloatField(db_default=0.0)),
                ("lease_until", models.FloatField(db_default=0.0)),
            ],
        ),
    ]
