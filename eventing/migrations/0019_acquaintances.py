"""Domains that the federation's directory identifies and no administrator approved."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q

FAILURES = ["unreachable", "busy", "refused", "invalid"]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0018_overlay")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Acquaintance",
            fields=[
                ("name", models.CharField(max_length=253, primary_key=True, serialize=False)),
                ("url", models.CharField(max_length=255)),
                ("fingerprint", models.CharField(max_length=64)),
                ("heard_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("failures", models.BigIntegerField(default=0)),
                (
                    "failure",
                    models.CharField(blank=True, choices=[(one, one) for one in FAILURES], default="", max_length=16),
                ),
                ("detail", models.CharField(blank=True, default="", max_length=255)),
                ("first_failure_at", models.DateTimeField(null=True)),
                ("next_try_at", models.DateTimeField(null=True)),
                ("stopped_at", models.DateTimeField(null=True)),
                ("backlog", models.BigIntegerField(default=0)),
                ("oldest_at", models.DateTimeField(null=True)),
                ("changed_at", models.DateTimeField()),
                ("asked_s", models.BigIntegerField(null=True)),
                ("granted_s", models.BigIntegerField()),
                ("warn_at", models.DateTimeField()),
                ("warned_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["expires_at"], name="acquaintance_by_end")],
                "constraints": [
                    models.CheckConstraint(condition=Q(granted_s__gte=1), name="acquaintance_lease_lasts"),
                    models.CheckConstraint(
                        condition=Q(failure__in=["", *FAILURES]), name="acquaintance_failure_is_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            failures=0, failure="", first_failure_at=None, next_try_at=None, stopped_at=None
                        )
                        | Q(failures__gte=1, first_failure_at__isnull=False) & ~Q(failure=""),
                        name="acquaintance_fails_or_not",
                    ),
                ],
            },
        ),
    ]
