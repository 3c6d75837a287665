"""Built scripts and styles of the console: their names for `{% static %}`, and whether they are built.

portal/web/build.mjs writes them with the hash of their content in their names, and a manifest of the names, which is read
anew when it changes: a domain that runs while the console is built names the new files, and serves them
(portal/middleware.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.storage import StaticFilesStorage

from eventing.core.container import memoized
from portal.installation import from_source

FOLDER = Path(__file__).resolve().parent / "static" / "portal" / "dist"
PREFIX = "portal/dist/"
NOT_BUILT = "The console's scripts and styles are not built."
HOW_TO_BUILD = (
    "Stop the domain and start it with make run, or run: make .venv/.console-built"
    if from_source()
    else "Install the server anew: its wheel contains them"
)


def manifest() -> dict[str, str]:
    """File names by the names that templates use (`overview.js`); empty when nothing is built."""
    try:
        changed_ns = (FOLDER / "manifest.json").stat().st_mtime_ns
    except OSError:
        return {}
    return _read(changed_ns)


class ConsoleFiles(StaticFilesStorage):
    """Django's storage of static files that finds built files by their names without the hash."""

    def url(self, name: str | None) -> str:
        """The address of the static file `name`; of a file that is not built, one that answers 404."""
        if name and name.startswith(PREFIX):
            short = name.removeprefix(PREFIX)
            name = PREFIX + manifest().get(short, short)
        return super().url(name)


@memoized(maxsize=1)
def _read(changed_ns: int) -> dict[str, str]:
    """Return the manifest that was written at that time: the argument is what it is remembered by."""
    try:
        found: Any = json.loads((FOLDER / "manifest.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
