"""Indexes by which an operator's lists stay quick at 100,000 rendezvous points."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0012_pause")]

    operations: ClassVar = [
        migrations.RemoveIndex("rendezvouspoint", "rp_by_end"),
        migrations.AddIndex("rendezvouspoint", models.Index(fields=["expires_at", "id"], name="rp_by_end")),
        migrations.AddIndex(
            "rendezvouspoint",
            models.Index(fields=["expires_at", "id"], condition=~Q(home=""), name="rp_replicas_by_end"),
        ),
        migrations.AddIndex("rendezvouspoint", models.Index(fields=["id"], condition=Q(name=None), name="rp_nameless")),
        migrations.AddIndex("rendezvouspoint", models.Index(fields=["title", "name", "id"], name="rp_to_search")),
        migrations.RemoveIndex("subscription", "subscription_by_end"),
        migrations.AddIndex("subscription", models.Index(fields=["expires_at", "id"], name="subscription_by_end")),
        migrations.RemoveIndex("subscription", "subscription_of_owner"),
        migrations.AddIndex("subscription", models.Index(fields=["owner", "id"], name="subscription_of_owner")),
    ]
