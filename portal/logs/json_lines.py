"""Log lines as JSON objects (HERALD_LOG_FORMAT=json), including lines that Celery prints without logging."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from eventing.telemetry.folder import process_name
from portal.logs.log_lines import bounded

STDERR = 2


class JsonLines(JsonFormatter):
    """One object each: `time` (RFC 3339, UTC), `level`, `process`, `logger`, `message`; where there are any
    `request_id`, `trace_id` and `exception`. The level is near the start, where the supervisor reads it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "process": getattr(record, "of", ""),
            "logger": record.name,
        }
        for name in ("request_id", "trace_id"):
            if value := getattr(record, name, ""):
                line[name] = value
        line["message"] = bounded(record.getMessage())
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = bounded(logging.Formatter.formatException(self, record.exc_info))
        return self.serialize_log_record(line)


def said(message: str, *_: Any) -> None:
    """Write a line at once, bypassing the log: Celery reports its stop from within signal handlers."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": now, "level": "INFO", "process": process_name(), "logger": "celery", "message": message.strip()}
    os.write(STDERR, json.dumps(line).encode() + b"\n")
