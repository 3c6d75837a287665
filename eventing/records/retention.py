"""Removal of old segments. Only files with names of segments, in folders with names of dates, are ever removed."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from eventing.conf import config
from eventing.records.segments import NAME
from spark.locations import Location

FILES_AT_ONCE_MAX = 10_000  # files removed by one call; the next call continues
_DAY = re.compile(r"date=([0-9]{4}-[0-9]{2}-[0-9]{2})")
log = logging.getLogger(__name__)


def segments_purge() -> int:
    """Remove the segments beyond the domain's retention. Returns their number."""
    settings = config()
    before = datetime.now(UTC).date() - timedelta(days=settings.records_retention_days)
    if settings.records_url:
        return purge_store(Location(settings.records_url), before)
    return purge(settings.records_path, before)


def purge_store(place: Location, before: date) -> int:
    """Remove the segments of the days before `before` from an object store, at most FILES_AT_ONCE_MAX. Returns their number; raises OSError."""
    removed = 0
    for day in place.entries(place.root):
        if day.is_file or not _is_before(day.name, before):
            continue
        for entry in place.entries(day.path, recursive=True):
            if removed == FILES_AT_ONCE_MAX:
                return removed
            if entry.is_file and NAME.fullmatch(entry.name):
                place.filesystem.delete_file(entry.path)
                removed += 1
        if not any(entry.is_file for entry in place.entries(day.path, recursive=True)):
            place.remove_folder(day.path)  # where folders are objects too
    return removed


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
