"""Terms of the home of rendezvous points: the record of hand-overs, what peers state of it, and consents to become a home."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0025_reliability")]

    operations: ClassVar = [
        migrations.AddField("rendezvouspoint", "term", models.BigIntegerField(default=0)),
        migrations.AddField("rendezvouspoint", "homes", models.BinaryField(null=True)),
        migrations.AddIndex("rendezvouspoint", models.Index(fields=["id"], condition=~Q(homes=None), name="rp_with_homes")),
        migrations.AddField("replicalink", "term", models.BigIntegerField(default=-1)),
        migrations.CreateModel(
            name="HomeConsent",
            fields=[
                ("rp", models.CharField(max_length=26, primary_key=True, serialize=False)),
                ("payload", models.BinaryField()),
                ("local", models.JSONField(default=dict)),
                ("until", models.DateTimeField()),
            ],
        ),
    ]
