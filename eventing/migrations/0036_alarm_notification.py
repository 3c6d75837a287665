"""Mutes of alarms; contact points, and which alarms each was notified of."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0035_periodic_task")]

    operations: ClassVar = [
        migrations.AddField("alarm", "muted_until", models.DateTimeField(null=True)),
        migrations.AddField(
            "alarm", "muted_by", models.CharField(blank=True, db_default="", default="", max_length=512)
        ),
        migrations.AddField(
            "alarm", "mute_reason", models.CharField(blank=True, db_default="", default="", max_length=500)
        ),
        migrations.CreateModel(
            name="ContactPoint",
            fields=[
                ("id", models.CharField(max_length=29, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=64, unique=True)),
                ("kind", models.CharField(max_length=8)),
                ("shown", models.CharField(max_length=2748)),
                ("sealed", models.BinaryField()),
                ("severity", models.CharField(max_length=8)),
                ("resolved", models.BooleanField(default=True)),
                ("group_s", models.IntegerField()),
                ("created_at", models.DateTimeField()),
                ("created_by", models.CharField(max_length=512)),
                ("next_at", models.DateTimeField()),
                ("delivered_at", models.DateTimeField(null=True)),
                ("failures", models.IntegerField(default=0)),
                ("failure", models.CharField(blank=True, default="", max_length=255)),
            ],
            options={
                "indexes": [models.Index(fields=["next_at"], name="contact_point_due")],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(kind__in=("webhook", "mail")), name="contact_point_kind_is_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(severity__in=("warning", "critical")), name="contact_point_severity_is_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AlarmNotice",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("resolved", models.BooleanField(default=False)),
                (
                    "alarm",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="eventing.alarm"),
                ),
                (
                    "contact_point",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="eventing.contactpoint"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=Q(resolved=False), fields=["contact_point"], name="alarm_notice_open"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("contact_point", "alarm"), name="alarm_notice_is_one")
                ],
            },
        ),
    ]
