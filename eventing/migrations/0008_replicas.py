"""Replicas: whose an RP is and its signed descriptor, who is admitted to it, links with peers, and what has ended."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0007_peers")]

    operations: ClassVar = [
        migrations.AddField("rendezvouspoint", "home", models.CharField(blank=True, default="", max_length=253)),
        migrations.AddField("rendezvouspoint", "via", models.CharField(blank=True, default="", max_length=253)),
        migrations.AddField("rendezvouspoint", "descriptor", models.BinaryField(null=True)),
        migrations.AddField("rendezvouspoint", "history_asked", models.JSONField(default=dict)),
        migrations.AddField("rendezvouspoint", "statements", models.BigIntegerField(default=0)),
        migrations.AddField("rendezvouspoint", "renew_at", models.DateTimeField(null=True)),
        migrations.AddIndex(
            "rendezvouspoint",
            models.Index(
                condition=models.Q(("renew_at", None), _negated=True), fields=["renew_at"], name="rp_to_renew"
            ),
        ),
        migrations.AddIndex(
            "rendezvouspoint",
            models.Index(condition=models.Q(("home", ""), _negated=True), fields=["home"], name="rp_replicas"),
        ),
        migrations.CreateModel(
            name="ReplicaAdmission",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "rp",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="admissions",
                        to="eventing.rendezvouspoint",
                    ),
                ),
                ("domain", models.CharField(max_length=253)),
                ("url", models.CharField(blank=True, default="", max_length=255)),
                ("statement", models.BinaryField()),
                ("issued_at_ms", models.BigIntegerField()),
                ("asked_at_ms", models.BigIntegerField(default=0)),
                ("expires_at", models.DateTimeField()),
                ("revoked", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [models.Index(fields=["expires_at"], name="replica_admission_by_end")],
                "constraints": [models.UniqueConstraint(fields=("rp", "domain"), name="replica_admission_is_one")],
            },
        ),
        migrations.CreateModel(
            name="ReplicaLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("asked_s", models.BigIntegerField(null=True)),
                ("granted_s", models.BigIntegerField()),
                ("warn_at", models.DateTimeField()),
                ("warned_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField()),
                (
                    "rp",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="links",
                        to="eventing.rendezvouspoint",
                    ),
                ),
                ("peer", models.CharField(max_length=253)),
                (
                    "state",
                    models.CharField(choices=[("live", "Live"), ("stopped", "Stopped")], default="live", max_length=8),
                ),
                ("detail", models.CharField(blank=True, default="", max_length=255)),
                ("told", models.BigIntegerField(default=-1)),
                ("changed_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["peer", "rp"], name="replica_link_of_peer"),
                    models.Index(fields=["expires_at"], name="replica_link_by_end"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("rp", "peer"), name="replica_link_is_one"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["live", "stopped"])), name="replica_link_state_is_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReplicaEnd",
            fields=[
                ("rp", models.CharField(max_length=26, primary_key=True, serialize=False)),
                ("home", models.CharField(max_length=253)),
                ("name", models.CharField(blank=True, default="", max_length=255)),
                (
                    "reason",
                    models.CharField(
                        choices=[("deleted", "Deleted"), ("left", "Left"), ("lapsed", "Lapsed")], max_length=8
                    ),
                ),
                ("urls", models.JSONField(default=list)),
                ("statement", models.BinaryField(null=True)),
                ("pending", models.JSONField(default=list)),
                ("tries", models.IntegerField(default=0)),
                ("next_try_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["until"], name="replica_end_by_end"),
                    models.Index(fields=["next_try_at"], name="replica_end_to_tell"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("reason__in", ["deleted", "left", "lapsed"])),
                        name="replica_end_reason_is_known",
                    )
                ],
            },
        ),
    ]
