"""The server's place, for commands that need its secrets or settings: they run its manage.py, or its `herald-server`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import herald
from herald.commands.output import flush

SERVER_COMMAND = "herald-server"


def find_home() -> Path | None:
    """Return the folder in which the server's commands run: with its manage.py, HERALD_HOME, else this source tree, else the current
    folder; with a server that is installed beside this command, the current folder, if the data of a domain can be found from it.

    None if there is none; None also for a HERALD_HOME without manage.py, so that never another server is used silently.
    """
    stated = os.environ.get("HERALD_HOME")
    if stated:
        return _home(Path(stated))
    return _home(Path(herald.__file__).resolve().parents[2]) or _home(Path.cwd()) or _installed_home(Path.cwd())


def _home(folder: Path) -> Path | None:
    return folder if _has_source(folder) and (folder / "portal").is_dir() else None


def _has_source(folder: Path) -> bool:
    return (folder / "manage.py").is_file()


def _installed_home(folder: Path) -> Path | None:
    """Return the folder if `herald-server` is installed and a domain's data folder is named or lies here: the server would make a new
    one otherwise, and sign for a domain that does not exist."""
    data = folder / os.environ.get("HERALD_DATA_DIR", "var")
    there = bool(os.environ.get("HERALD_SECRET_KEY")) or (data / "secret_key").is_file()
    return folder if there and installed_server().is_file() else None


def installed_server() -> Path:
    """Return the path that `herald-server` has where the server is installed in the same environment."""
    return Path(sys.executable).with_name(SERVER_COMMAND)


def manage(home: Path, *arguments: str) -> int:
    """Run a command of the server in this folder, with this process's input and output; return its exit code."""
    flush()
    return subprocess.run([*server(home), *arguments], cwd=home, check=False).returncode


def server(home: Path) -> list[str]:
    """Return how the server's commands begin, run in the folder `home`."""
    if not _has_source(home):
        return [str(installed_server())]
    python = home / ".venv" / "bin" / "python"
    return [str(python) if python.exists() else sys.executable, "manage.py"]
