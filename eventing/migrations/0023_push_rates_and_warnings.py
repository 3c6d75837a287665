"""The rate that an endpoint allows, and warnings about endpoints that are paused."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0022_push")]

    operations: ClassVar = [
        migrations.AddField("pushendpoint", "allowed_rate", models.BigIntegerField(null=True)),
        migrations.AddField("pushendpoint", "warn_at", models.DateTimeField(null=True)),
        migrations.AddField("pushendpoint", "warnings", models.BigIntegerField(default=0)),
        migrations.AddIndex(
            "pushendpoint",
            models.Index(
                fields=["warn_at"],
                name="push_endpoint_to_warn_of",
                condition=models.Q(warn_at__isnull=False),
            ),
        ),
    ]
