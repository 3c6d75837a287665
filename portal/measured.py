"""First step of each process of a domain: join the folder in which metrics are combined, and leave out modules that libraries import
where they find them, and that nothing here uses.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import cast

from eventing.core.config import Config
from eventing.core.errors import ConfigError
from eventing.telemetry import folder

NEVER_USED = ("httpx._main",)
"""The command line of httpx, with rich, pygments and click: 5 MiB and 0.1 s of each process."""
ONLY_POSTGRESQL = ("django.contrib.postgres",)
"""Fields that Django REST framework looks for, with psycopg: 5 MiB."""


def measure_as(name: str) -> None:
    """Join as the process `name`, unless the supervisor has set a name. Call before importing other modules of Herald.

    Harmless when repeated. Settings that cannot be read are reported where they are needed.
    """
    try:
        config = Config.from_env(os.environ)
    except ConfigError:
        return
    folder.join(config.data_path, name)
    for module in (*NEVER_USED, *(() if config.database_url else ONLY_POSTGRESQL)):
        sys.modules.setdefault(
            module, cast(ModuleType, None)
        )  # an import raises ImportError, for which their importers are prepared
