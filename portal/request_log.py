"""Log lines name the request that they are about, by the id that its client was answered."""

from __future__ import annotations

import logging

from eventing.core.origins import current_origin


class RequestId(logging.Filter):
    """Gives every record `request`: ` [ID]`, or nothing outside requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add it; nothing is filtered out."""
        request_id = current_origin.get().request_id
        record.request = f" [{request_id}]" if request_id else ""
        return True
