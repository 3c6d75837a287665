"""Heads of the domain's own seals; what other domains did wrong, the proofs of it, and who is quarantined."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0009_forwarding")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="SealHead",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("rp", models.CharField(max_length=64)),
                ("epoch", models.CharField(max_length=26)),
                ("last", models.BigIntegerField()),
                ("digest", models.BinaryField(max_length=32)),
                ("statement", models.BinaryField()),
                ("leaves", models.BinaryField()),
                ("sealed_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("rp", "epoch"), name="seal_head_is_one"),
                    models.CheckConstraint(condition=Q(("last__gte", 1)), name="seal_head_covers_something"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Evidence",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("origin", models.CharField(max_length=253)),
                ("rp", models.CharField(max_length=64)),
                ("epoch", models.CharField(max_length=26)),
                ("one", models.BinaryField()),
                ("other", models.BinaryField()),
                ("carrier", models.CharField(blank=True, default="", max_length=253)),
                ("found_at", models.DateTimeField()),
            ],
            options={"indexes": [models.Index(fields=["origin", "id"], name="evidence_by_origin")]},
        ),
        migrations.CreateModel(
            name="EvidenceSpread",
            fields=[
                ("peer", models.CharField(max_length=253, primary_key=True, serialize=False)),
                ("through", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Quarantine",
            fields=[
                ("origin", models.CharField(max_length=253, primary_key=True, serialize=False)),
                ("why", models.CharField(max_length=255)),
                (
                    "evidence",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="eventing.evidence",
                    ),
                ),
                ("since", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Misbehaviour",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=32)),
                ("carrier", models.CharField(max_length=253)),
                ("origin", models.CharField(blank=True, default="", max_length=253)),
                ("count", models.BigIntegerField(default=1)),
                ("rp", models.CharField(blank=True, default="", max_length=64)),
                ("detail", models.CharField(blank=True, default="", max_length=255)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("reported", models.BigIntegerField(default=0)),
                ("reported_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["last_at", "id"], name="misbehaviour_by_time"),
                    models.Index(fields=["carrier"], name="misbehaviour_by_carrier"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "carrier", "origin"), name="misbehaviour_is_counted_once"
                    ),
                    models.CheckConstraint(condition=Q(("count__gte", 1)), name="misbehaviour_happened"),
                ],
            },
        ),
    ]
