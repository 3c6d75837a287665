"""The target reliability of rendezvous points, and the home's statement that it is read from."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0024_intakes_of_websub")]

    operations: ClassVar = [
        migrations.AddField("rendezvouspoint", "reliability", models.FloatField(null=True)),
        migrations.AddField("rendezvouspoint", "property_statement", models.BinaryField(null=True)),
        migrations.AddIndex(
            "rendezvouspoint", models.Index(fields=["id"], condition=~Q(reliability=None), name="rp_with_target")
        ),
    ]
