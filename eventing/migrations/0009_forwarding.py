"""How forwarding to each peer goes: failures, the next try, what waits."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0008_replicas")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="PeerDelivery",
            fields=[
                (
                    "peer",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="delivery",
                        serialize=False,
                        to="eventing.peer",
                    ),
                ),
                ("failures", models.BigIntegerField(default=0)),
                (
                    "failure",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("unreachable", "unreachable"),
                            ("busy", "busy"),
                            ("refused", "refused"),
                            ("invalid", "invalid"),
                        ],
                        default="",
                        max_length=16,
                    ),
                ),
                ("detail", models.CharField(blank=True, default="", max_length=255)),
                ("first_failure_at", models.DateTimeField(null=True)),
                ("next_try_at", models.DateTimeField(null=True)),
                ("stopped_at", models.DateTimeField(null=True)),
                ("backlog", models.BigIntegerField(default=0)),
                ("oldest_at", models.DateTimeField(null=True)),
                ("changed_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["next_try_at"], name="delivery_by_next_try")],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(failure__in=["", "unreachable", "busy", "refused", "invalid"]),
                        name="delivery_failure_is_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(failures=0, failure="", first_failure_at=None, next_try_at=None, stopped_at=None)
                        | Q(failures__gte=1, first_failure_at__isnull=False) & ~Q(failure=""),
                        name="delivery_fails_or_not",
                    ),
                ],
            },
        ),
    ]
