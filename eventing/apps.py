"""Django's registration of the app that holds the domain's models."""

from __future__ import annotations

from django.apps import AppConfig


class EventingConfig(AppConfig):
    """Rendezvous points, subscriptions, keys: the control plane."""

    name = "eventing"
    verbose_name = "Eventing"
