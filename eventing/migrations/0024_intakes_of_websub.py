"""Intakes that are the callbacks of WebSub subscriptions."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations
from django.db.models import CheckConstraint, Q

FORMATS = ("plain", "cloudevents", "standard-webhooks", "github", "stripe", "grafana", "alertmanager", "websub")


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0023_push_rates_and_warnings")]

    operations: ClassVar = [
        migrations.RemoveConstraint("intake", "intake_format_is_known"),
        migrations.AddConstraint(
            "intake", CheckConstraint(condition=Q(format__in=FORMATS), name="intake_format_is_known")
        ),
    ]
