"""Where the management interface is. Links are paths: they hold behind any proxy."""

from __future__ import annotations

BASE = "/api/v1"
