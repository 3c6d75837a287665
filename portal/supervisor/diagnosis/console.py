"""Check of the console's scripts and styles."""

from __future__ import annotations

from portal.console.files import FOLDER, HOW_TO_BUILD, NOT_BUILT, manifest
from portal.supervisor.diagnosis.findings import DiagnosisFinding, ok, warn


def console_finding() -> DiagnosisFinding:
    """Check that scripts and styles of the pages are built."""
    missing = [name for name in manifest().values() if not (FOLDER / name).is_file()]
    if missing or not manifest():
        return warn("console", NOT_BUILT, f"{HOW_TO_BUILD}.")
    return ok("console", "its scripts and styles are built")
