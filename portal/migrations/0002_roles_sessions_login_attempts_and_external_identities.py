"""The console's roles as groups, its sessions, throttled logins, and users of an identity provider."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

ROLES = ("viewer", "operator", "administrator")


def make_groups(apps: Any, schema_editor: Any) -> None:
    """A group for each role; those who administer today are administrators. Running it again changes nothing."""
    groups = {name: apps.get_model("auth", "Group").objects.get_or_create(name=name)[0] for name in ROLES}
    for user in apps.get_model("auth", "User").objects.filter(is_superuser=True):
        user.groups.add(groups["administrator"])


class Migration(migrations.Migration):
    dependencies = [
        ("portal", "0001_login_link"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ConsoleSession",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_key", models.CharField(max_length=40, unique=True)),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("address", models.CharField(max_length=64)),
                ("agent", models.CharField(max_length=200)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LoginAttempts",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64, unique=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("failed_at", models.DateTimeField()),
                ("locked_until", models.DateTimeField(null=True)),
                ("succeeded_at", models.DateTimeField(null=True)),
            ],
            options={"indexes": [models.Index(fields=["failed_at"], name="login_attempts_failed_at")]},
        ),
        migrations.CreateModel(
            name="ExternalIdentity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="external_identity",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("issuer", "subject"), name="external_identity_is_one_user")
                ]
            },
        ),
        migrations.RunPython(make_groups, migrations.RunPython.noop),
    ]
