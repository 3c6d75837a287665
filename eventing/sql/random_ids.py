"""Random identifiers: 130 bits in lower-case base32, as long as an RP's id."""

from __future__ import annotations

import base64
import secrets

from eventing.core.ids import RP_ID_CHARS

_BYTES = 17  # the least number of bytes that gives 26 characters


def random_id() -> str:
    """Make an identifier of 26 characters, unguessable and unique."""
    return base64.b32encode(secrets.token_bytes(_BYTES)).decode().lower()[:RP_ID_CHARS]
