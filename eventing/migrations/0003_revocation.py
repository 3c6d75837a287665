from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0002_identity")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Revocation",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[("token", "Token"), ("subject", "Subject"), ("key", "Key")], max_length=8
                    ),
                ),
                ("issuer", models.CharField(max_length=511)),
                ("value", models.CharField(max_length=255)),
                ("reason", models.CharField(blank=True, default="", max_length=255)),
                ("by", models.CharField(max_length=767)),
                ("before", models.DateTimeField(null=True)),
                ("lifted", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                ("until", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["until"], name="revocation_by_end")],
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "issuer", "value"), name="revocation_is_one"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["token", "subject", "key"])), name="revocation_kind_is_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "subject"), ("before__isnull", False)),
                            models.Q(models.Q(("kind", "subject"), _negated=True), ("before", None)),
                            _connector="OR",
                        ),
                        name="revocation_of_subject_has_moment",
                    ),
                ],
            },
        ),
    ]
