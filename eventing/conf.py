"""Access to the typed settings of the process: `config().port`."""

from __future__ import annotations

from django.conf import settings

from eventing.core.config import Config


def config() -> Config:
    """Return the process's settings, read once at start by portal.settings."""
    settings_in_use: Config = settings.HERALD
    return settings_in_use
