"""The drain of this domain."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0028_electors")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="DomainDrain",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("by", models.CharField(blank=True, default="", max_length=512)),
                ("began_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("done_at", models.DateTimeField(null=True)),
                ("handed_over", models.BigIntegerField(default=0)),
                ("refusals", models.JSONField(default=dict)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=Q(id=1), name="domain_drain_is_one_row")],
            },
        ),
    ]
