"""The server's folder, for commands that need its secrets or settings: they run its manage.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import herald
from herald.commands.output import flush


def find_home() -> Path | None:
    """Return the folder with the server's manage.py: HERALD_HOME, else this source tree, else the current folder.

    None if there is none; None also for a HERALD_HOME without manage.py, so that never another server is used silently.
    """
    stated = os.environ.get("HERALD_HOME")
    if stated:
        return _home(Path(stated))
    return _home(Path(herald.__file__).resolve().parents[2]) or _home(Path.cwd())


def _home(folder: Path) -> Path | None:
    return folder if (folder / "manage.py").is_file() and (folder / "portal").is_dir() else None


def manage(home: Path, *arguments: str) -> int:
    """Run manage.py in this folder, with this process's input and output; return its exit code."""
    python = home / ".venv" / "bin" / "python"
    command = [str(python) if python.exists() else sys.executable, "manage.py", *arguments]
    flush()
    return subprocess.run(command, cwd=home, check=False).returncode
