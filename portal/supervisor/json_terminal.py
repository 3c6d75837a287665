"""The supervisor's lines as JSON objects, one each, like those of its children, for log collectors."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TextIO

from portal.logs.log_lines import without_credentials
from portal.supervisor.terminal import Terminal


class JsonTerminal(Terminal):
    """Terminal that writes JSON lines. JSON lines of children are passed on unchanged. Secrets are never written,
    because logs are kept."""

    tells_secrets = False

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._coloured = False

    def line(self, text: str = "") -> None:
        """A line of the supervisor's own."""
        if text.strip():
            self._object(text.strip())

    def state(self, name: str, state: str, about: str = "") -> None:
        """Write the state of a component at the start."""
        self._object(f"{name}: {state} {about}".strip())

    def note(self, name: str, text: str) -> None:
        """Write a message of or about a child."""
        if text.startswith('{"time"'):
            super().line(text)
        else:
            self._object(f"{name}: {text}", "WARNING")

    def _object(self, message: str, level: str = "INFO") -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "level": level, "process": "supervisor", "logger": "portal.supervisor"}
        super().line(json.dumps({**line, "message": without_credentials(message)}))
