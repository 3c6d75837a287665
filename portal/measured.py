"""First step of each process of a domain: join the folder in which metrics are combined."""

from __future__ import annotations

import os

from eventing.core.config import Config
from eventing.core.errors import ConfigError
from eventing.telemetry import folder


def measure_as(name: str) -> None:
    """Join as the process `name`, unless the supervisor has set a name. Call before importing other modules of Herald.

    Harmless when repeated. Settings that cannot be read are reported where they are needed.
    """
    try:
        config = Config.from_env(os.environ)
    except ConfigError:
        return
    folder.join(config.data_path, name)
