"""The first thing that a process of a domain does: it joins the folder that metrics are joined in."""

from __future__ import annotations

import os

from eventing.core.config import Config
from eventing.core.errors import ConfigError
from eventing.telemetry import folder


def measure_as(name: str) -> None:
    """Join, as the process `name` unless the supervisor has named it. Call it before anything else of ours is imported.

    Harmless when repeated. Settings that cannot be read are told of by those who need them.
    """
    try:
        config = Config.from_env(os.environ)
    except ConfigError:
        return
    folder.join(config.data_path, name)
