"""What a principal holds is counted whenever it creates something: from indexes, so that it costs the same for all."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0004_audit")]

    operations: ClassVar = [
        migrations.AddIndex(
            model_name="rendezvouspoint", index=models.Index(fields=["creator", "max_bytes"], name="rp_of_creator")
        ),
        migrations.AddIndex(
            model_name="subscription", index=models.Index(fields=["owner"], name="subscription_of_owner")
        ),
    ]
