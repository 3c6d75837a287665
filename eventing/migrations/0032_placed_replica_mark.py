"""When a placed replica was last found to keep up with its home."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0031_elector_promises")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="placedreplicarow", name="marked_at", field=models.DateTimeField(null=True)
        ),
    ]
