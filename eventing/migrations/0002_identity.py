"""The issuers that policies name, and room for the identities of foreign principals (issuer and subject)."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0001_rendezvous_points_subscriptions_keys_and_outbox")]

    operations: ClassVar = [
        migrations.AlterField(
            model_name="rendezvouspoint", name="creator", field=models.CharField(max_length=512)
        ),
        migrations.AlterField(model_name="subscription", name="owner", field=models.CharField(max_length=512)),
        migrations.CreateModel(
            name="PolicyIssuer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("issuer", models.CharField(max_length=255)),
                ("jwks", models.CharField(blank=True, default="", max_length=255)),
                (
                    "rp",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="policy_issuers",
                        to="eventing.rendezvouspoint",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["issuer", "jwks"], name="policy_issuer_by_name")],
                "constraints": [
                    models.UniqueConstraint(fields=("rp", "issuer", "jwks"), name="policy_issuer_is_named_once")
                ],
            },
        ),
    ]
