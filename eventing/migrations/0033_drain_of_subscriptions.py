"""A drain that hands over subscriptions, and one of a domain that closes."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0032_placed_replica_mark")]

    operations: ClassVar = [
        migrations.AddField("DomainDrain", "closes", models.BooleanField(default=False)),
        migrations.AddField("DomainDrain", "closed", models.BigIntegerField(default=0)),
        migrations.AddField("DomainDrain", "shared", models.BigIntegerField(default=0)),
    ]
