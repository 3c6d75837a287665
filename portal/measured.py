"""First step of each process of a domain: join the folder in which metrics are combined, and leave out modules that libraries import
where they find them, and that nothing here uses. What is loaded then stays, so nothing is collected before `loaded`.
"""

from __future__ import annotations

import gc
import os
import sys
from types import ModuleType
from typing import cast

from eventing.core.config import Config
from eventing.core.errors import ConfigError
from eventing.telemetry import folder, tracing

NEVER_USED = ("httpx._main", "sniffio")
"""The command line of httpx, with rich, pygments and click: 5 MiB and 0.1 s of each process. And a package that is not there, for which
httpcore searches all folders with each request: a fifth of what a request costs."""
ONLY_POSTGRESQL = ("django.contrib.postgres",)
"""Fields that Django REST framework looks for, with psycopg: 5 MiB."""
ONLY_TRACING = ("opentelemetry.sdk", "requests")
"""Modules that the client of Redis and Django REST framework look for, and only the export of spans uses: 6 MiB and 0.1 s."""


def measure_as(name: str) -> None:
    """Join as the process `name`, unless the supervisor has set a name. Call before importing other modules of Herald, and `loaded` after.

    Harmless when repeated. Settings that cannot be read are reported where they are needed.
    """
    gc.disable()  # a tenth of the processor time of a start
    try:
        config = Config.from_env(os.environ)
    except ConfigError:
        return
    folder.join(config.data_path, name)
    unused = list(NEVER_USED)
    if not config.database_url:
        unused += ONLY_POSTGRESQL
    if not tracing.endpoint(config):
        unused += ONLY_TRACING
    for module in unused:
        sys.modules.setdefault(
            module, cast(ModuleType, None)
        )  # an import raises ImportError, for which their importers are prepared


def loaded() -> None:
    """Begin to collect garbage, but for what the start has made, which stays: walking it would cost again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()
