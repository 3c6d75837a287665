"""Django's registration of the app with the domain's models."""

from __future__ import annotations

from django.apps import AppConfig


class EventingConfig(AppConfig):
    """Rendezvous points, subscriptions, keys: the control plane."""

    name = "eventing"
    verbose_name = "Eventing"

    def ready(self) -> None:
        """Connect the subjects with each other."""
        from eventing.composition import connect  # the subjects' models are loaded only now
        from eventing.sql.among import among_register

        among_register()
        connect()
