"""Request bodies: JSON only, bounded, parsed strictly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from eventing.core import strict_json
from eventing.core.errors import InvalidRequest, TooLarge

BODY_BYTES_MAX = 64 * 1024  # bound: bytes of a REST body; 413 `too-large`


class BoundedJSONParser(BaseParser):
    """Strict JSON (core/strict_json.py) of at most BODY_BYTES_MAX bytes; an empty body is an empty object."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Parse the body. Raises TooLarge and InvalidRequest."""
        data = stream.read(BODY_BYTES_MAX + 1)
        if len(data) > BODY_BYTES_MAX:
            raise TooLarge(f"The body is at most {BODY_BYTES_MAX} bytes.", limit=BODY_BYTES_MAX)
        if not data:
            return {}
        try:
            return strict_json.parse(data)
        except strict_json.NotStrictJson as error:
            raise InvalidRequest(str(error)) from None
