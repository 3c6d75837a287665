"""Location of this server: in a source tree, with manage.py beside it, or installed from its wheel, with `herald-server`.

Messages name the commands that work in the installation that prints them.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The source tree, or the folder of installed packages."""
DISTRIBUTION = "herald-gateway"
COMMAND = "herald-server"
CLIENT_COMMAND = "herald"


def from_source() -> bool:
    """Return whether the server runs from its source tree."""
    return (ROOT / "manage.py").is_file()


def run_command() -> str:
    """Return the command that starts a domain."""
    return "make run" if from_source() else f"{installed_command(COMMAND)} run"


def server_command() -> str:
    """Return the beginning of the server's commands, such as `login_link`."""
    return ".venv/bin/python manage.py" if from_source() else installed_command(COMMAND)


def client_command() -> str:
    """Return the `herald` command of this installation."""
    return f".venv/bin/{CLIENT_COMMAND}" if from_source() else installed_command(CLIENT_COMMAND)


def installed_command(name: str) -> str:
    """Return the name of an installed command if it is on PATH, else its path beside the interpreter, quoted for a shell."""
    return name if shutil.which(name) else shlex.quote(str(Path(sys.executable).with_name(name)))


def version() -> str:
    """Return the version of the installed server, `source` in a source tree."""
    return "source" if from_source() else metadata.version(DISTRIBUTION)


def lock_lines() -> list[str]:
    """Return the lines of locked requirements: of requirements/run.txt, else those that the installed wheel states."""
    lock = ROOT / "requirements" / "run.txt"
    if lock.is_file():
        return lock.read_text().splitlines()
    stated = metadata.requires(DISTRIBUTION) if not from_source() else None
    return [line for line in stated or () if ";" not in line]
