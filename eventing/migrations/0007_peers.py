"""Peers: other domains, the trust in them, and how far the two have agreed."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0006_domain_documents")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Peer",
            fields=[
                ("asked_s", models.BigIntegerField(null=True)),
                ("granted_s", models.BigIntegerField()),
                ("warn_at", models.DateTimeField()),
                ("warned_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField()),
                ("name", models.CharField(max_length=253, primary_key=True, serialize=False)),
                ("url", models.CharField(max_length=255)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("proposed", "proposed"),
                            ("asked", "asked"),
                            ("active", "active"),
                            ("suspended", "suspended"),
                        ],
                        max_length=16,
                    ),
                ),
                ("fingerprint", models.CharField(max_length=64)),
                ("push", models.BooleanField(default=True)),
                ("host", models.BooleanField(default=False)),
                ("gossip", models.BooleanField(default=True)),
                ("events_per_s", models.BigIntegerField(default=20000)),
                ("bytes_per_s", models.BigIntegerField(default=33554432)),
                ("requests_per_s", models.BigIntegerField(default=100)),
                (
                    "theirs",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("proposes", "proposes"),
                            ("approves", "approves"),
                            ("suspends", "suspends"),
                            ("waits", "waits"),
                            ("leaves", "leaves"),
                        ],
                        default="",
                        max_length=16,
                    ),
                ),
                ("theirs_at_ms", models.BigIntegerField(default=0)),
                ("asked_document", models.BinaryField(null=True)),
                ("hello_at", models.DateTimeField(null=True)),
                ("hello_failures", models.BigIntegerField(default=0)),
                ("hello_problem", models.CharField(blank=True, default="", max_length=400)),
                ("hello_told", models.CharField(blank=True, default="", max_length=64)),
                ("heard_at", models.DateTimeField(null=True)),
                ("note", models.CharField(blank=True, default="", max_length=255)),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["state", "name"], name="peer_by_state"),
                    models.Index(fields=["hello_at"], name="peer_to_greet"),
                    models.Index(fields=["expires_at"], name="peer_by_end"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("state__in", ["proposed", "asked", "active", "suspended"])),
                        name="peer_state_is_known",
                    ),
                    models.CheckConstraint(condition=Q(("granted_s__gte", 1)), name="peer_lease_lasts"),
                    models.CheckConstraint(
                        condition=Q(("events_per_s__gte", 1), ("bytes_per_s__gte", 1), ("requests_per_s__gte", 1)),
                        name="peer_may_send_something",
                    ),
                    models.CheckConstraint(
                        condition=Q(("state", "asked"), ("asked_document", None), _connector="OR"),
                        name="peer_shows_a_document_while_it_asks",
                    ),
                ],
            },
        ),
    ]
