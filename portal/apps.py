"""The console as a Django application."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.apps.registry import Apps
from django.db.models.signals import post_migrate

from eventing.core.roles import ROLES


class PortalConfig(AppConfig):
    """Keeps a group for each role there, also in a database that was emptied or loaded anew."""

    name = "portal"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Create the groups after every migration, and register the task that forwards to a peer."""
        post_migrate.connect(_make_roles, sender=self)
        from eventing.replication import ports
        from portal.forwarding import forwards_waiting, send_forward

        ports.forward_start.connect(send_forward)
        ports.forwards_waiting.connect(forwards_waiting)


def _make_roles(using: str, apps: Apps = installed, **_: Any) -> None:
    try:
        groups = apps.get_model("auth", "Group").objects.using(using)
    except LookupError:
        return  # the accounts' own tables are not made yet
    for role in ROLES:
        groups.get_or_create(name=role)
