"""Switches of the planner of routes."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0029_drain")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="RoutesSwitch",
            fields=[
                ("rp", models.CharField(max_length=26, primary_key=True, serialize=False)),
                ("mode", models.CharField(blank=True, default="", max_length=8)),
                ("changed_at", models.DateTimeField()),
                ("changed_by", models.CharField(max_length=512)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(mode__in=["", "off", "advise", "apply"]), name="routes_mode_is_known"
                    )
                ],
            },
        ),
    ]
