"""Durable subscriptions at `overlay.admin`, which belongs to no rendezvous point, as `domain.admin`."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q

AT_DOMAIN = ("domain.admin", "overlay.admin")


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0020_intakes")]

    operations: ClassVar = [
        migrations.RemoveConstraint(model_name="subscription", name="subscription_ends_with_its_rp"),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=Q(rp__isnull=False) | Q(at__in=AT_DOMAIN), name="subscription_ends_with_its_rp"
            ),
        ),
    ]
