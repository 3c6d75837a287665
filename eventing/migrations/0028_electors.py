"""What this domain has promised as an elector of the homes of rendezvous points."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0027_placement")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="ElectorState",
            fields=[
                ("rp", models.CharField(max_length=26, primary_key=True, serialize=False)),
                ("plan_version", models.BigIntegerField(default=0)),
                ("plan_payload", models.BinaryField(default=bytes)),
                ("home_term", models.BigIntegerField(default=0)),
                ("term", models.BigIntegerField(default=0)),
                ("voted", models.BinaryField(default=bytes)),
                ("heard_ms", models.BigIntegerField(default=0)),
                ("misses", models.BigIntegerField(default=0)),
                ("probed_ms", models.BigIntegerField(default=0)),
                ("stand_ms", models.BigIntegerField(default=0)),
            ],
        ),
    ]
