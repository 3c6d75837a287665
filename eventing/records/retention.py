"""Removal of old segments. Only files with names of segments, in folders with names of dates, are ever removed."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from eventing.conf import config
from eventing.records.segments import NAME

FILES_AT_ONCE_MAX = 10_000  # files removed by one call; the next call continues
_DAY = re.compile(r"date=([0-9]{4}-[0-9]{2}-[0-9]{2})")
log = logging.getLogger(__name__)


def segments_purge() -> int:
    """Remove the segments beyond the domain's retention. Returns their number."""
    settings = config()
    return purge(settings.records_path, datetime.now(UTC).date() - timedelta(days=settings.records_retention_days))


def purge(root: Path, before: date) -> int:
    """Remove the segments of the days before `before`, at most FILES_AT_ONCE_MAX. Returns their number."""
    removed = 0
    if not root.is_dir():
        return 0
    for folder in sorted(root.glob("date=*")):
        if not _is_before(folder.name, before):
            continue
        for path in sorted(folder.glob("hour=*/*.parquet")):
            if removed == FILES_AT_ONCE_MAX:
                return removed
            if NAME.fullmatch(path.name):
                path.unlink(missing_ok=True)
                removed += 1
        with suppress(OSError):  # the folder contains something else
            for hour in folder.glob("hour=*"):
                hour.rmdir()
            folder.rmdir()
    return removed


def _is_before(name: str, before: date) -> bool:
    match = _DAY.fullmatch(name)
    try:
        return match is not None and date.fromisoformat(match[1]) < before
    except ValueError:
        return False
