"""Django's registration of the Celery tasks' app."""

from __future__ import annotations

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """Celery tasks: thin, idempotent, one service call each."""

    name = "workers"
    verbose_name = "Workers"
