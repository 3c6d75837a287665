"""Context of log lines: the domain's process, the request id as sent to the client, the trace."""

from __future__ import annotations

import asyncio
import logging

from eventing.core.request_origin import current_origin
from eventing.telemetry import tracing
from eventing.telemetry.folder import process_name


class RequestId(logging.Filter):
    """Adds to every record `of` (the process), `request_id` and `trace_id`, empty where there is none, and for lines of
    text `request`: ` [ID]`, with the trace behind it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes; no record is filtered out."""
        request_id, trace_id = current_origin.get().request_id, tracing.trace_id()
        request = f" [{request_id}]" if request_id else ""
        record.of, record.request_id, record.trace_id = process_name(), request_id, trace_id
        record.request = f"{request} [trace {trace_id}]" if trace_id else request
        return True


class NoCancellations(logging.Filter):
    """Drops asyncio's lines about unretrieved cancellations: a client that disconnects during a request makes asgiref
    leave one, with a traceback, so a client could fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is kept."""
        return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
