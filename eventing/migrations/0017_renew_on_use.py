"""Whether the use of a rendezvous point renews its lease."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0016_withdrawals")]

    operations: ClassVar = [
        migrations.AddField("rendezvouspoint", "renew_on_use", models.BooleanField(default=True)),
    ]
