"""Promises of electors: votes lent to others, the home's signature of an endorsed plan, and since when they are remembered."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models
from django.db.models import F


def _carry_over(apps: Any, schema_editor: Any) -> None:
    """Take every vote of before for one that was lent, and every endorsement for one of the present home's term."""
    apps.get_model("eventing", "ElectorState").objects.update(
        lent=F("term"), plan_term=F("home_term"), used_ms=F("heard_ms")
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0030_routes_switch")]

    operations: ClassVar = [
        migrations.AddField("ElectorState", "lent", models.BigIntegerField(default=0)),
        migrations.AddField("ElectorState", "plan_term", models.BigIntegerField(default=0)),
        migrations.AddField("ElectorState", "plan_signature", models.BinaryField(default=bytes)),
        migrations.AddField("ElectorState", "since_ms", models.BigIntegerField(default=0)),
        migrations.AddField("ElectorState", "used_ms", models.BigIntegerField(default=0)),
        migrations.RunPython(_carry_over, migrations.RunPython.noop),
    ]
