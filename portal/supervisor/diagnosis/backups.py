"""Check of backups: how old the newest one is that was made with this data folder."""

from __future__ import annotations

from eventing.core.config import Config
from portal.supervisor.backup.newest import age_s, newest
from portal.supervisor.backup.progress import size
from portal.supervisor.diagnosis.findings import DiagnosisFinding, ok, warn

OLD_S = 8 * 86_400
"""Age of the newest backup that is a warning: one that is made weekly was left out."""


def backup_finding(config: Config) -> DiagnosisFinding:
    """State the age of the newest backup. A domain that never had one is not warned about: it may be kept elsewhere."""
    found = newest(config.data_path)
    if found is None:
        return ok("backup", "none was made with this data folder (herald backup FILE)")
    days, hours = divmod(int(age_s(found) // 3600), 24)
    age = f"{days} days old" if days >= 2 else f"{24 * days + hours} hours old"
    if age_s(found) > OLD_S:
        return warn(
            "backup", f"The newest backup is {age}.", "Run herald backup FILE, every day by a timer (docs/backup.md)."
        )
    return ok("backup", f"the newest is {age}, {size(found.bytes)}")
