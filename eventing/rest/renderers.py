"""JSON of answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from rest_framework.renderers import JSONRenderer


class ShapeRenderer(JSONRenderer):
    """JSON renderer for shapes (core/shapes.py) and plain data."""

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """Encode `data`; an answer without content is empty."""
        return b"" if data is None else msgspec.json.encode(data)
