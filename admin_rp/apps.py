"""Django's registration of the app of the administrative RPs' readers (the console's snapshots and live feed)."""

from __future__ import annotations

from django.apps import AppConfig


class AdminRpConfig(AppConfig):
    """Readers of administrative RPs. What is published there: eventing/services/administrative_events.py."""

    name = "admin_rp"
    verbose_name = "Administrative rendezvous points"
