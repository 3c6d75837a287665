"""Endpoints of push subscriptions, and dead letters."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

STATES = ["unverified", "active", "throttled", "failing", "paused", "gone"]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0021_overlay_admin")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="PushEndpoint",
            fields=[
                (
                    "subscription",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="push",
                        serialize=False,
                        to="eventing.subscription",
                    ),
                ),
                ("sealed", models.BinaryField()),
                ("host", models.CharField(max_length=253)),
                ("state", models.CharField(choices=[(one, one) for one in STATES], max_length=12)),
                ("state_at", models.DateTimeField()),
                ("verified", models.BooleanField(default=False)),
                ("failures", models.BigIntegerField(default=0)),
                ("failing_since", models.DateTimeField(null=True)),
                ("next_at", models.DateTimeField(null=True)),
                ("reason", models.CharField(blank=True, default="", max_length=100)),
                ("generation", models.BigIntegerField(default=1)),
                ("test_id", models.CharField(blank=True, default="", max_length=64)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=Q(state__in=STATES), name="push_endpoint_state_is_known")
                ],
                "indexes": [models.Index(fields=["state", "host"], name="push_endpoint_by_state")],
            },
        ),
        migrations.CreateModel(
            name="PushDeadLetter",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("epoch", models.CharField(max_length=26)),
                ("first", models.BigIntegerField()),
                ("last", models.BigIntegerField()),
                ("reason", models.CharField(max_length=100)),
                ("attempts", models.BigIntegerField(default=0)),
                ("replay", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                (
                    "subscription",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dead_letters",
                        to="eventing.subscription",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=Q(last__gte=F("first")), name="dead_letter_has_events")
                ],
                "indexes": [
                    models.Index(fields=["subscription", "id"], name="dead_letter_of"),
                    models.Index(fields=["replay", "id"], name="dead_letter_to_replay"),
                ],
            },
        ),
    ]
