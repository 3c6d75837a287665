"""Paths of the management interface. Links are paths, which are valid behind any proxy."""

from __future__ import annotations

BASE = "/api/v1"
